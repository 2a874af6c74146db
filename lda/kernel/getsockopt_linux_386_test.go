package kernel

// getsockopt is the system call's number, which package syscall does not have for this machine.
const getsockopt = 365
