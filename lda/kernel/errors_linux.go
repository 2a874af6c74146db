package kernel

import (
	"fmt"
	"syscall"
)

// explain turns an error of the kernel into one that says what it means for
// the caller.
func explain(what string, err error) error {
	switch err {
	case nil:
		return nil
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%s: %w: want root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: %w", what, ErrPrivilege, err)
	case syscall.ENOSYS:
		return fmt.Errorf("%s: %w: want CONFIG_BPF_SYSCALL: %w", what, ErrKernel, err)
	}
	return fmt.Errorf("%s: %w: %w", what, ErrKernel, err)
}
