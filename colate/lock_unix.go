//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package colate

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file until it is closed or its process ends.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
