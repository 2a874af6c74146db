package colate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A fileSystem is the directory in which a [Store] keeps its files. [Dir] is
// the real one; tests use others that fail.
type fileSystem interface {
	// Lock makes the directory if it is missing, and keeps other writers out
	// until the lock is closed. It returns ErrLocked if there is another
	// writer.
	Lock() (io.Closer, error)
	// List returns the names of all files.
	List() ([]string, error)
	// Open opens a file for reading. If the file does not exist, the error
	// matches fs.ErrNotExist.
	Open(name string) (openFile, error)
	// Create creates a file for appending and reading. The file must not
	// exist.
	Create(name string) (openFile, error)
	// Append opens a file to append to it.
	Append(name string) (openFile, error)
	// Remove deletes a file.
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

// Dir returns the file system of one directory. Only a writer creates the
// directory.
func Dir(path string) fileSystem { return dir(path) }

type dir string

// lockName is the file that a writer holds. It stays, and is empty.
const lockName = "LOCK"

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

// Lock makes this process the only writer until the lock is closed.
func (d dir) Lock() (io.Closer, error) {
	if err := os.MkdirAll(string(d), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.path(lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List returns the names of all files in the directory.
func (d dir) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Open opens a file for reading.
func (d dir) Open(name string) (openFile, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

// Create makes a file that is only appended to.
func (d dir) Create(name string) (openFile, error) { return d.append(name, os.O_CREATE|os.O_EXCL) }

// Append opens a file to append to it.
func (d dir) Append(name string) (openFile, error) { return d.append(name, 0) }

func (d dir) append(name string, flags int) (openFile, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_APPEND|flags, 0o666)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

// Remove removes a file.
func (d dir) Remove(name string) error { return os.Remove(d.path(name)) }

// Sync makes the names in the directory survive a crash.
func (d dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type diskFile struct{ *os.File }

// Size returns the length of the file in bytes.
func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
