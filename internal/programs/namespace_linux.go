package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// setns are the numbers of that system call.
var setns = map[string]uintptr{
	"amd64": 308, "386": 346, "arm": 375, "arm64": 268, "loong64": 268, "riscv64": 268, "ppc64le": 350, "s390x": 339,
}

// In runs f in a network namespace of iproute2, on a thread that ends with it, or on the calling thread if no namespace is
// named.
func In(namespace string, f func() error) error {
	number, ok := setns[runtime.GOARCH]
	if namespace == "" {
		return f()
	} else if !ok {
		return fmt.Errorf("%s: the system call number of setns is unknown", runtime.GOARCH)
	}
	file, err := os.Open(filepath.Join("/run/netns", namespace))
	if err != nil {
		return err
	}
	defer file.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(number, file.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
			result <- fmt.Errorf("namespace %s: %w", namespace, errno)
			return
		}
		result <- f()
	}()
	return <-result
}

// A Lab is some network namespaces, and what is in them.
type Lab struct{ Names []string }

var labs atomic.Int64 // of this process

// NewLab makes namespaces that forward, and have no IPv6, whose own messages would be counted with what a
// program sends. Then it runs commands of iproute2, in which {0}, {1} and so on stand for the namespaces.
func NewLab(namespaces int, commands ...string) (l *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("not root: network namespaces need it")
	}
	l = new(Lab)
	defer func(made *Lab) {
		if err != nil {
			made.Remove()
		}
	}(l)
	number := labs.Add(1)
	for i := range namespaces {
		name := fmt.Sprintf("hoplag%d.%d.%d", os.Getpid(), number, i)
		if err := Command("ip netns add " + name); err != nil {
			return nil, err
		}
		l.Names = append(l.Names, name)
		if err := In(name, settings); err != nil {
			return nil, err
		}
	}
	return l, l.Run(commands...)
}

// Run runs more commands.
func (l *Lab) Run(commands ...string) error {
	var names []string
	for i, name := range l.Names {
		names = append(names, fmt.Sprintf("{%d}", i), name)
	}
	for _, line := range commands {
		if err := Command(strings.NewReplacer(names...).Replace(line)); err != nil {
			return err
		}
	}
	return nil
}

// settings are those of a new namespace.
func settings() error {
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// Remove removes the namespaces with everything in them.
func (l *Lab) Remove() {
	for _, name := range l.Names {
		exec.Command("ip", "netns", "del", name).Run()
	}
}

// Command runs a command, such as one of iproute2.
func Command(line string) error {
	words := strings.Fields(line)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install iproute2", err)
	} else if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
