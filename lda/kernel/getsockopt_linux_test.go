//go:build !386

package kernel

import "syscall"

const getsockopt = syscall.SYS_GETSOCKOPT
