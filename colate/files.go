package colate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A FileSystem is the directory that a [Store] keeps its files in. [Dir] is
// the real one; tests put faults into theirs.
type FileSystem interface {
	// List returns the names of all files.
	List() ([]string, error)
	// Open opens a file to be read. A file that does not exist gives an error
	// that is fs.ErrNotExist.
	Open(name string) (File, error)
	// Create makes a file, empty even if there was one.
	Create(name string) (File, error)
	// Rename gives a file another name, in one step, replacing what had it.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// Sync makes what Create, Rename and Remove did survive a crash.
	Sync() error
}

// A File is an open file of a FileSystem.
type File interface {
	io.ReaderAt
	io.Writer // appends
	io.Closer
	// Sync makes what was written survive a crash.
	Sync() error
	// Size returns the file's length in bytes.
	Size() (int64, error)
}

// Dir returns the file system of one directory, which is made if missing.
func Dir(path string) (FileSystem, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	return dir(path), nil
}

type dir string

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (d dir) Open(name string) (File, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (d dir) Create(name string) (File, error) {
	f, err := os.Create(d.path(name))
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (d dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d dir) Remove(name string) error { return os.Remove(d.path(name)) }

func (d dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type file struct{ *os.File }

func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
