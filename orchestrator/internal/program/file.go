package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// Version is one content of a program's file.
type Version struct {
	// Sum is its SHA-256 in hexadecimal; empty when the file may be run but not read.
	Sum string
	// Path is what to start now, with the configured path as its argument 0: that path itself, or the copy.
	Path string
	// Since is when the manager first saw it.
	Since time.Time
}

// version is a content that was met.
type version struct {
	content
	since time.Time
}

// File is the program of one plugin.
type File struct {
	store *Store
	path  string
	pin   string

	mu      sync.Mutex
	current *version // nil before it could be read
	trial   *version // taken and not judged; nil for none
	known   identity // whose content is current, on trial, or rejected
	unquiet identity // what the last look found, when that was not known
}

// Current returns the version to start. An error says why there is none and what to do: the file is missing, or it is not the pinned
// one. It reads the file only when there is no current version yet, or to check a changed one that has no copy.
func (f *File) Current() (Version, error) {
	f.store.taking.Lock()
	defer f.store.taking.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := look(f.path)
	switch {
	case f.current != nil && f.current.copy != "" && exists(f.current.copy):
		return f.show(f.current, now), nil
	case err != nil:
		return Version{}, fmt.Errorf("the program %s: %w: put it there, or correct the command", f.path, err)
	case f.current != nil && f.current.identity == now && f.current.copy == "":
		return f.show(f.current, now), nil
	}
	// The first time, or there is no other way than what the file is now.
	v, err := f.read()
	if err != nil {
		return Version{}, err
	}
	f.current, f.trial, f.known = v, nil, v.identity
	return f.show(v, v.identity), nil
}

// exists reports whether a copy is still there: somebody may have emptied the directory.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// show says where a version is, given what the file is now.
func (f *File) show(v *version, now identity) Version {
	shown := Version{Sum: v.sum, Path: f.path, Since: v.since}
	if v.copy != "" && (f.pin != "" || v.identity != now) {
		shown.Path = v.copy
	}
	return shown
}

// read takes what the file is now, and checks it. The caller holds mu.
func (f *File) read() (*version, error) {
	c, err := f.store.take(f.path, f.check)
	if errors.Is(err, fs.ErrPermission) && f.pin == "" {
		if now, lookErr := look(f.path); lookErr == nil { // it may be run all the same
			return &version{content: content{identity: now}, since: time.Now()}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &version{content: c, since: time.Now()}, nil
}

// check compares a sum with the pinned one.
func (f *File) check(sum string) error {
	if f.pin == "" || strings.EqualFold(sum, f.pin) {
		return nil
	}
	return fmt.Errorf("the program %s is not the one that the configuration asks for: its SHA-256 is %s, sha256 says %s; if the file is right, correct sha256 and restart the manager, else put the right file there", f.path, sum, strings.ToLower(f.pin))
}

// Changed reports whether the file has another content than any that was taken, as far as stat tells, and has stayed the same since the
// last call: one that is being written is not looked at yet. It is to be called about every second. A file that is gone has not
// changed.
func (f *File) Changed() bool {
	now, err := look(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.current == nil || now == f.known {
		f.unquiet = identity{}
		return false
	}
	settled := now == f.unquiet
	f.unquiet = now
	return settled
}

// Take reads the changed file and puts it on trial, until Adopt or Reject. It reports false when its content is that of the current
// version. An error says that it is not the pinned one, or cannot be read; the current version stays, and the file is
// looked at again when it changes again.
func (f *File) Take() (Version, bool, error) {
	f.store.taking.Lock()
	defer f.store.taking.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	now, _ := look(f.path) // zero for one that is gone again
	v, err := f.read()
	if err != nil {
		if !errors.Is(err, errMoving) {
			f.known = now
		}
		return Version{}, false, err
	}
	f.known = v.identity
	if f.current != nil && v.sum != "" && v.sum == f.current.sum {
		f.current.identity, f.trial = v.identity, nil
		return f.show(f.current, v.identity), false, nil
	}
	f.trial = v
	return f.show(v, v.identity), true, nil
}

// Adopt makes the version on trial the current one. Copies of older ones are removed.
func (f *File) Adopt() {
	f.mu.Lock()
	if f.trial != nil {
		f.current, f.trial = f.trial, nil
	}
	f.mu.Unlock()
	f.store.Prune()
}

// Reject drops the version on trial; the same content is not tried again before the file is touched. It reports whether there is a way back: without a copy of the current version, what the file is
// now is all there is to start.
func (f *File) Reject() (back bool) {
	f.mu.Lock()
	f.trial = nil
	back = f.current != nil && f.current.copy != "" && exists(f.current.copy)
	f.mu.Unlock()
	f.store.Prune()
	return back
}

// sums are the versions whose copies are needed.
func (f *File) sums() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, v := range []*version{f.current, f.trial} {
		if v != nil && v.copy != "" {
			found = append(found, v.sum)
		}
	}
	return found
}
