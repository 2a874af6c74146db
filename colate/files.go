package colate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A fileSystem is the directory in which a [Store] keeps its files: a dir, or in tests others, which fail.
type fileSystem interface {
	// lock makes the directory if it is missing, and keeps other writers out
	// until the lock is closed, or returns ErrLocked.
	lock() (io.Closer, error)
	list() (names []string, err error)
	// open opens a file for reading, and create one that does not exist for
	// appending too. Errors match fs.ErrNotExist and fs.ErrExist.
	open(name string) (openFile, error)
	create(name string) (openFile, error)
	remove(name string) error
	sync() error // makes the effects of create and remove survive a crash
}

// An openFile is an open file of a fileSystem. Write appends, also behind what Truncate left.
type openFile interface {
	io.ReaderAt
	io.WriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// ErrLocked means that a store already has a writer.
var ErrLocked = errors.New("the store already has a writer")

// A dir is a directory, as a fileSystem. Only a writer creates it.
type dir string

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) lock() (io.Closer, error) {
	if err := os.MkdirAll(string(d), 0o777); err != nil {
		return nil, err
	}
	// The file stays, and is empty.
	f, err := os.OpenFile(d.path("LOCK"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d dir) list() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d dir) open(name string) (openFile, error) { return os.Open(d.path(name)) }

func (d dir) create(name string) (openFile, error) {
	return os.OpenFile(d.path(name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
}

func (d dir) remove(name string) error { return os.Remove(d.path(name)) }

func (d dir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
