package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// adoptedName is the file beside the copies in which stands which version of each program worked last: a JSON object of sums by the
// paths of the programs.
const adoptedName = "adopted.json"

// Prove takes down that a version works: should the file not work when a manager starts, its copy goes on. To say it again costs
// nothing. It does nothing for a version that has no copy.
func (f *File) Prove(v Version) {
	f.mu.Lock()
	proven := f.current != nil && f.current.sum == v.Sum && f.current.copy != ""
	f.mu.Unlock()
	if proven {
		f.store.adopt(f.path, v.Sum)
	}
}

// Recall puts the copy of the version that worked last in the place of the current version, which does not work: it was changed while no
// manager looked. The file is looked at again when it changes. It reports false when there is no such copy, or another version is pinned.
func (f *File) Recall() (Version, bool) {
	f.store.taking.Lock()
	defer f.store.taking.Unlock()
	sum := f.store.adopted(f.path)
	if sum == "" || f.pin != "" && !strings.EqualFold(sum, f.pin) {
		return Version{}, false
	}
	path := filepath.Join(f.store.dir, sum)
	if !f.store.holds(path, sum) {
		return Version{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, _ := look(f.path) // zero for one that is gone
	f.current = &version{content: content{identity: nowhere(), sum: sum, native: true, copy: path}, since: time.Now()}
	f.trial, f.known = nil, now
	return Version{Sum: sum, Path: path, Since: f.current.since}, true
}

// nowhere is the identity of a version that is in no file: of none, and of no missing one.
func nowhere() identity { return identity{size: -1} }

// Forget drops what was recalled and did not work either: what the file is now is all there is to start.
func (f *File) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current, f.trial = nil, nil
}

// adopted is the sum of the version of a program that worked last; empty when there is none.
func (s *Store) adopted(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	return s.works[path]
}

// holds reports whether there is a copy with the right content.
func (s *Store) holds(path, sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isSound(path, sum)
}

// adopt takes down that a version of a program works.
func (s *Store) adopt(path, sum string) {
	if s.adopted(path) == sum {
		return
	}
	s.taking.Lock() // no Prune meanwhile
	defer s.taking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.works[path] = sum
	if err := s.save(); err != nil {
		s.log.Warn("which program of a plugin worked last cannot be kept; should it not work at the next start of the manager, there is no way back", "program", path, "error", err)
	}
}

// load reads once what an earlier manager took down; what cannot be read is nothing. The caller holds mu.
func (s *Store) load() {
	if s.works != nil {
		return
	}
	s.works = map[string]string{}
	data, err := os.ReadFile(filepath.Join(s.dir, adoptedName))
	if err == nil {
		err = json.Unmarshal(data, &s.works)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("which programs of the plugins worked last is not known", "error", err)
	}
	for path, sum := range s.works {
		if !isSum(sum) {
			delete(s.works, path)
		}
	}
	if s.works == nil { // the file says null
		s.works = map[string]string{}
	}
}

// isSum reports whether a text can be the name of a copy, and of nothing else.
func isSum(text string) bool {
	const digits = 64
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

// save writes what load reads; the old stays whole until the new one is. The caller holds mu.
func (s *Store) save() (err error) {
	data, err := json.MarshalIndent(s.works, "", "  ")
	if err != nil {
		return fmt.Errorf("write it as JSON: %w", err)
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return fmt.Errorf("make the directory of copies: %w", err)
	}
	to, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", adoptedName, err)
	}
	_, err = to.Write(append(data, '\n'))
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(to.Name(), filepath.Join(s.dir, adoptedName))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", adoptedName, errors.Join(err, os.Remove(to.Name())))
	}
	return nil
}
