package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// in runs f in a network namespace of iproute2, on a thread that ends with it;
// or here, if no namespace is named.
func in(namespace string, f func() error) error {
	if namespace == "" {
		return f()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- enter(namespace, f)
	}()
	return <-result
}

func enter(namespace string, f func() error) error {
	file, err := os.Open(filepath.Join("/run/netns", namespace))
	if err != nil {
		return err
	}
	defer file.Close()
	numbers := map[string]uintptr{
		"amd64": 308, "386": 346, "arm": 375, "arm64": 268, "loong64": 268, "riscv64": 268, "ppc64le": 350, "s390x": 339,
	}
	number, ok := numbers[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("%s: the system call number of setns is unknown", runtime.GOARCH)
	}
	if _, _, errno := syscall.RawSyscall(number, file.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return permitted(fmt.Errorf("namespace %s: %w", namespace, errno))
	}
	return f()
}
