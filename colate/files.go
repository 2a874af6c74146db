package colate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A fileSystem is the directory in which a [Store] keeps its files: a
// dir, or in tests others, which fail.
type fileSystem interface {
	// Lock makes the directory if it is missing, and keeps other writers out
	// until the lock is closed, or returns ErrLocked.
	Lock() (io.Closer, error)
	// List returns the names of all files.
	List() ([]string, error)
	// Open opens a file for reading, and Create one that does not exist for
	// appending too. Errors match fs.ErrNotExist and fs.ErrExist.
	Open(name string) (openFile, error)
	Create(name string) (openFile, error)
	Remove(name string) error
	// Sync makes the effects of Create and Remove survive a crash.
	Sync() error
}

// An openFile is an open file of a fileSystem.
type openFile interface {
	io.ReaderAt
	io.Writer // appends
	io.Closer
	// Truncate cuts the file to a size; Write continues from there.
	Truncate(size int64) error
	// Sync makes what was written survive a crash.
	Sync() error
	// Size returns the file's length in bytes.
	Size() (int64, error)
}

// ErrLocked means that a store already has a writer.
var ErrLocked = errors.New("the store already has a writer")

// A dir is a directory, as a fileSystem. Only a writer creates it.
type dir string

// Lock implements fileSystem.
func (d dir) Lock() (io.Closer, error) {
	if err := os.MkdirAll(string(d), 0o777); err != nil {
		return nil, err
	}
	// The file stays, and is empty.
	f, err := os.OpenFile(filepath.Join(string(d), "LOCK"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List implements fileSystem.
func (d dir) List() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Open implements fileSystem.
func (d dir) Open(name string) (openFile, error) { return d.open(name, os.O_RDONLY) }

// Create implements fileSystem.
func (d dir) Create(name string) (openFile, error) {
	return d.open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
}

func (d dir) open(name string, flags int) (openFile, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), flags, 0o666)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

// Remove implements fileSystem.
func (d dir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

// Sync implements fileSystem.
func (d dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A diskFile is an openFile on disk.
type diskFile struct{ *os.File }

// Size implements openFile.
func (f diskFile) Size() (int64, error) { return f.Seek(0, io.SeekEnd) }
