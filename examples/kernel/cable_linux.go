package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// device is the name of both ends of the cable, in separate namespaces.
const device = "eth0"

// A cable is two namespaces, and a virtual cable with a queue between them.
type cable struct{ sender, receiver string }

func newCable(bandwidth float64) (c *cable, err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("not root: it makes network namespaces and loads programs into the kernel: run it with sudo")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is missing: install iproute2", tool)
		}
	}
	c = &cable{fmt.Sprintf("hoplag%ds", os.Getpid()), fmt.Sprintf("hoplag%dr", os.Getpid())}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	for _, name := range []string{c.sender, c.receiver} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip netns add: %w: %s", err, strings.TrimSpace(string(out)))
		}
		if err := in(name, silence); err != nil {
			return nil, err
		}
	}
	queue := fmt.Sprintf("rate %.0fkbit burst 20000 limit 80000", bandwidth*1e3)
	for _, line := range []string{
		"ip link add " + device + " netns S type veth peer name " + device + " netns R",
		"ip -n S addr add 10.98.0.1/24 dev " + device,
		"ip -n R addr add 10.98.0.2/24 dev " + device,
		"ip -n S link set " + device + " up", "ip -n R link set " + device + " up",
		"tc -n S qdisc add dev " + device + " root tbf " + queue,
	} {
		words := strings.Fields(line)
		for i, word := range words {
			switch word {
			case "S":
				words[i] = c.sender
			case "R":
				words[i] = c.receiver
			}
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return c, nil
}

// silence turns IPv6 off, because its own messages would be counted with the
// traffic.
func silence() error {
	for _, name := range []string{"all", "default"} {
		path := "/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6"
		if err := os.WriteFile(path, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// remove removes the namespaces and the cable.
func (c *cable) remove() {
	for _, name := range []string{c.sender, c.receiver} {
		exec.Command("ip", "netns", "del", name).Run()
	}
}

// in runs f in a network namespace, on a thread that ends with it.
func in(namespace string, f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- enter(namespace, f)
	}()
	return <-result
}

func enter(namespace string, f func() error) error {
	file, err := os.Open(filepath.Join("/var/run/netns", namespace))
	if err != nil {
		return err
	}
	defer file.Close()
	numbers := map[string]uintptr{"amd64": 308, "386": 346, "arm": 375, "arm64": 268, "loong64": 268, "riscv64": 268}
	number, ok := numbers[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("%s: the system call number of setns is unknown", runtime.GOARCH)
	}
	if _, _, errno := syscall.RawSyscall(number, file.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return fmt.Errorf("namespace %s: %w", namespace, errno)
	}
	return f()
}
