package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Modes of the directory of copies, which is closed, and of the copies: whoever gets one opened for it may run it.
const (
	dirMode  = 0o700
	copyMode = 0o555
)

// Store is the private directory of copies. It belongs to one manager.
type Store struct {
	dir string
	log *slog.Logger

	taking sync.Mutex // held while files are read and while copies are removed; before the mutex of a file

	mu    sync.Mutex // after the mutex of a file
	files []*File
	sound map[string]bool   // sums of the copies whose content was checked by this manager
	works map[string]string // sums of the versions that worked last, by the paths of the programs; nil before they were read
}

// NewStore returns the store in a directory, which is made when it is needed. A leftover of another manager is used if its content is
// right, and removed by the next Prune if nobody wants it.
func NewStore(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, sound: map[string]bool{}}
}

// Open returns the program at a path, which is not touched yet. A pin is the SHA-256 that it must have, in hexadecimal; empty takes
// any.
func (s *Store) Open(path, pin string) *File {
	f := &File{store: s, path: path, pin: pin}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.mu.Unlock()
	return f
}

// Prune removes the copies that no program needs any more. Processes that were started from them go on.
func (s *Store) Prune() {
	s.taking.Lock()
	defer s.taking.Unlock()
	s.mu.Lock()
	files := slices.Clone(s.files)
	s.mu.Unlock()
	wanted := map[string]bool{adoptedName: true}
	for _, f := range files {
		wanted[s.adopted(f.path)] = true
		for _, sum := range f.sums() {
			wanted[sum] = true
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // there is none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if wanted[e.Name()] {
			continue
		}
		delete(s.sound, e.Name())
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			s.log.Warn("the copy of an old program could not be removed", "error", err)
		}
	}
}

// content is what was read of a file.
type content struct {
	identity identity
	sum      string
	native   bool
	copy     string // path of the copy; empty for none
}

// errMoving says that a file was changed while it was read.
var errMoving = errors.New("it is being changed right now")

// take reads a program and copies it, if check accepts its sum and it is native. That there can be no copy is no error.
func (s *Store) take(path string, check func(sum string) error) (content, error) {
	file, err := os.Open(path) //nolint:gosec // the operator's
	if err != nil {
		return content{}, fmt.Errorf("read the program %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	before, err := identityIn(file)
	if err != nil {
		return content{}, fmt.Errorf("read the program %s: %w", path, err)
	}
	c := content{identity: before}
	head := make([]byte, 4)
	n, _ := io.ReadFull(file, head) // a shorter one is not native
	c.native = isNative(head[:n])
	if c.sum, err = sumOf(file); err != nil {
		return content{}, fmt.Errorf("read the program %s: %w", path, err)
	}
	if err := check(c.sum); err != nil {
		return content{}, err
	}
	if c.native {
		c.copy, err = s.copy(file, c.sum)
		if err != nil && !errors.Is(err, errMoving) {
			s.log.Warn("a plugin's program cannot be copied; should a new version of it fail, there is no way back, and it is started by its own path",
				"program", path, "error", err)
			err = nil
		}
	}
	if after, lookErr := identityIn(file); err == nil && (lookErr != nil || after != before) {
		err = errMoving
	}
	if err != nil {
		return content{}, fmt.Errorf("read the program %s: %w", path, err)
	}
	return c, nil
}

func identityIn(file *os.File) (identity, error) {
	info, err := file.Stat()
	if err != nil {
		return identity{}, err
	}
	return identityOf(info)
}

// sumOf reads a whole file.
func sumOf(file *os.File) (string, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// copy makes the copy of a file that has a sum, unless it is there, and returns its path. The copy appears whole or not at all.
func (s *Store) copy(file *os.File, sum string) (path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = filepath.Join(s.dir, sum)
	if s.isSound(path, sum) {
		return path, nil
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return "", fmt.Errorf("make the directory of copies: %w", err)
	}
	to, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return "", fmt.Errorf("make a copy: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(to.Name())
		}
	}()
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return "", errors.Join(err, to.Close())
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, hash), file)
	if err == nil {
		err = to.Chmod(copyMode)
	}
	if err == nil {
		err = to.Sync() // a copy that is short after a crash of the machine would have the right name
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("write a copy: %w", err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != sum {
		return "", errMoving
	}
	if err = os.Rename(to.Name(), path); err != nil {
		return "", fmt.Errorf("name a copy: %w", err)
	}
	s.sound[sum] = true
	return path, nil
}

// isSound reports whether there is a copy with the right content, which is read once. The caller holds mu.
func (s *Store) isSound(path, sum string) bool {
	file, err := os.Open(path) //nolint:gosec // a directory of our own
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	if !s.sound[sum] {
		is, err := sumOf(file)
		s.sound[sum] = err == nil && is == sum && file.Chmod(copyMode) == nil
	}
	return s.sound[sum]
}
