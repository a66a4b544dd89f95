package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// sweepEvery is how often what has expired is looked for; one process after the other does it, when it writes.
const sweepEvery = 10 * time.Minute

// staleTemp is the age of a temporary file whose writer must be gone.
const staleTemp = time.Hour

// files is the cache in a directory. A file holds the time at which it expires, in Unix milliseconds, its key, and the value.
type files struct {
	dir string

	mu    sync.Mutex
	swept time.Time
}

var _ Cache = (*files)(nil)

func newFiles(dir string) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the cache: %w", err)
	}
	return &files{dir: dir}, nil
}

func (f *files) path(key string) string { return filepath.Join(f.dir, hash(key)) }

func (f *files) Get(_ context.Context, key string) ([]byte, bool, error) {
	content, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the cache: %w", err)
	}
	until, value, ok := unpack(content, key)
	if !ok || !time.Now().Before(until) {
		return nil, false, nil
	}
	return value, true, nil
}

func (f *files) Put(_ context.Context, key string, value []byte, ttl time.Duration) error {
	if len(value) > MaxValue {
		return fmt.Errorf("writing the cache: the value has %d bytes; at most %d are kept", len(value), MaxValue)
	}
	f.sweep()
	temporary, err := os.CreateTemp(f.dir, "tmp-*")
	if err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	_, err = temporary.Write(pack(time.Now().Add(ttl), key, value))
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), f.path(key))
	}
	if err != nil {
		return fmt.Errorf("writing the cache: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}

// pack and unpack are the form of a file.
func pack(until time.Time, key string, value []byte) []byte {
	var head [12]byte
	binary.LittleEndian.PutUint64(head[:], uint64(until.UnixMilli())) //nolint:gosec // read back the same way
	binary.LittleEndian.PutUint32(head[8:], uint32(len(key)))         //nolint:gosec // an address
	return append(append(head[:], key...), value...)
}

func unpack(content []byte, key string) (until time.Time, value []byte, ok bool) {
	const head = 12
	if len(content) < head+len(key) || !bytes.Equal(content[head:head+len(key)], []byte(key)) ||
		binary.LittleEndian.Uint32(content[8:]) != uint32(len(key)) { //nolint:gosec // an address
		return time.Time{}, nil, false
	}
	return time.UnixMilli(int64(binary.LittleEndian.Uint64(content))), content[head+len(key):], true //nolint:gosec // written from one
}

// sweep removes what has expired. Files that another process removes or renames meanwhile are no error.
func (f *files) sweep() {
	now := time.Now()
	f.mu.Lock()
	due := now.Sub(f.swept) >= sweepEvery
	if due {
		f.swept = now
	}
	f.mu.Unlock()
	if !due {
		return
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(f.dir, entry.Name())
		if expired(path, entry, now) {
			_ = os.Remove(path)
		}
	}
}

// expired reads only the head of a file.
func expired(path string, entry fs.DirEntry, now time.Time) bool {
	if !entry.Type().IsRegular() {
		return false
	}
	if temporary, err := filepath.Match("tmp-*", entry.Name()); err != nil || temporary {
		info, err := entry.Info()
		return err == nil && now.Sub(info.ModTime()) > staleTemp
	}
	if len(entry.Name()) != len(hash("")) {
		return false // not ours
	}
	file, err := os.Open(path) //nolint:gosec // a file of our own directory
	if err != nil {
		return false
	}
	defer file.Close()
	var head [8]byte
	if _, err := file.Read(head[:]); err != nil {
		return true
	}
	return !now.Before(time.UnixMilli(int64(binary.LittleEndian.Uint64(head[:])))) //nolint:gosec // see unpack
}

func (f *files) Close() error { return nil }
