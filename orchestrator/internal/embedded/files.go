package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

const (
	snapshotName = "redis.snapshot"
	previousName = "redis.snapshot.previous"
	tempSuffix   = ".tmp"
	damagedMark  = ".damaged-"
)

// files is the snapshot and the one before it, in the state directory.
type files struct {
	dir string
	log *slog.Logger
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

// prepare makes the directory and refuses one in which any user of the machine
// could put a snapshot or an address.
func (f files) prepare() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("embedded broker: making the state directory: %w", err)
	}
	info, err := os.Stat(f.dir)
	if err != nil {
		return fmt.Errorf("embedded broker: looking at the state directory: %w", err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("embedded broker: everybody may write to the state directory %s; run chmod 700 on it", f.dir)
	}
	return nil
}

// read returns the content of a snapshot for restoring it. good is asked to use
// the body and says what is wrong with it. The newest file that is good wins;
// damaged ones are set aside under another name. found is false when there is
// none at all.
func (f files) read(good func(body []byte, at time.Time) error) (found bool, err error) {
	for _, name := range []string{snapshotName, previousName} {
		raw, err := os.ReadFile(f.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("embedded broker: reading the snapshot: %w", err)
		}
		body, at, err := openFile(raw)
		if err == nil {
			err = good(body, at)
		}
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, errDamaged):
			if err := f.setAside(name, err); err != nil {
				return false, err
			}
		default:
			return false, fmt.Errorf("embedded broker: snapshot %s: %w", f.path(name), err)
		}
	}
	return false, nil
}

func (f files) setAside(name string, why error) error {
	to := f.path(snapshotName + damagedMark + time.Now().UTC().Format("20060102T150405.000000000Z"))
	if err := os.Rename(f.path(name), to); err != nil {
		return fmt.Errorf("embedded broker: setting a damaged snapshot aside: %w", err)
	}
	f.log.Error("embedded broker: a snapshot is damaged; it is kept under another name and an older one is used if there is one",
		"file", f.path(name), "kept_as", to, "error", why)
	return nil
}

// write replaces the snapshot. At every moment, a power cut included, the
// directory holds a whole snapshot under one of the two names.
func (f files) write(body []byte, at time.Time) error {
	if err := f.replace(snapshotName, true, header(body, at), body); err != nil {
		return fmt.Errorf("embedded broker: writing the snapshot: %w", err)
	}
	return nil
}

// replace writes parts to a file beside name, makes it durable and gives it the
// name. With keep, what had the name before becomes the previous one.
func (f files) replace(name string, keep bool, parts ...[]byte) error {
	temp := f.path(name + tempSuffix)
	if err := writeDurably(temp, parts...); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if keep {
		if err := f.keepPrevious(); err != nil {
			_ = os.Remove(temp)
			return err
		}
	}
	if err := os.Rename(temp, f.path(name)); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(f.dir)
}

// keepPrevious gives the present snapshot a second name. Where the file system
// has no hard links it is renamed, and for a moment only the previous exists.
func (f files) keepPrevious() error {
	temp := f.path(previousName + tempSuffix)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Link(f.path(snapshotName), temp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the first snapshot, or the last one was damaged
	case err != nil:
		return os.Rename(f.path(snapshotName), f.path(previousName))
	}
	return os.Rename(temp, f.path(previousName))
}

func writeDurably(path string, parts ...[]byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err == nil {
			_, err = file.Write(p)
		}
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
