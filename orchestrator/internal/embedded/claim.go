package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	lockName   = "redis.lock"
	accessName = "redis.json"
)

// Access is what redis.json says: how another process of the same user reaches
// the broker. The file exists while the broker runs; after a kill it is left
// behind with an address that nobody answers.
type Access struct {
	Address  string `json:"address"`  // host:port
	Password string `json:"password"` // of the user "default"
	PID      int    `json:"pid"`      // the process that serves
}

// claim takes the lock of the state directory, so that two brokers never write
// the same snapshot. The lock is the kernel's: it goes with the process however
// that ends. The file stays, since removing it would let two hold it at once.
func (f files) claim() (release func() error, err error) {
	file, err := os.OpenFile(f.path(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: opening the lock of the state directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("embedded broker: locking %s: %w", file.Name(), err)
		}
		return nil, fmt.Errorf("embedded broker: another manager%s already runs with the state directory %s; stop it or give this one a directory of its own",
			holderOf(file.Name()), f.dir)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintf("%d\n", os.Getpid()))); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded broker: writing %s: %w", file.Name(), err), file.Close())
	}
	return file.Close, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

func holderOf(path string) string {
	raw, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(raw)); err == nil && pid != "" && len(pid) < 20 {
		return " (process " + pid + ")"
	}
	return ""
}

// announce writes redis.json; it appears whole or not at all.
func (f files) announce(a Access) error {
	raw, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = f.replace(accessName, false, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("embedded broker: writing its address: %w", err)
	}
	return nil
}

func (f files) withdraw() error {
	if err := os.Remove(f.path(accessName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("embedded broker: removing its address: %w", err)
	}
	return nil
}
