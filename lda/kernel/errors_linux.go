package kernel

import (
	"fmt"
	"syscall"
	"unsafe"
)

// explain turns an error of the kernel into one that says what it means for the caller.
func explain(what string, err error) error {
	switch err {
	case nil:
		return nil
	case syscall.EPERM:
		return fmt.Errorf("%s: %w: want root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: %w", what, ErrPrivilege, err)
	case syscall.ENOSYS:
		return fmt.Errorf("%s: %w: want CONFIG_BPF_SYSCALL: %w", what, ErrKernel, err)
	}
	return fmt.Errorf("%s: %w: %w", what, ErrKernel, err)
}

// Capabilities of Linux.
const (
	capAdmin     = 21
	capPerfmon   = 38
	capabilities = 0x20080522 // version 3: 64 bits
)

// capable reports whether the calling thread may load programs that work with addresses, if it can be known.
func capable() bool {
	head := struct {
		version uint32
		process int32
	}{version: capabilities}
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&sets)), 0)
	has := uint64(sets[1].effective)<<32 | uint64(sets[0].effective)
	return errno != 0 || has&(1<<capAdmin|1<<capPerfmon) != 0
}
