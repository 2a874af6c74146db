package kernel

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// processors returns the number of processors that the machine may ever have: their numbers are below it.
func processors() (int, error) {
	const path = "/sys/devices/system/cpu/possible"
	text, n := make([]byte, 4096), 0
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		n, err = syscall.Read(file, text)
		syscall.Close(file)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return parseProcessors(string(text[:n]))
}

// parseProcessors reads a list such as "0-3,8": one more than its last number.
func parseProcessors(list string) (int, error) {
	last := strings.TrimSpace(list)
	last = last[strings.LastIndexAny(last, "-,")+1:]
	n, err := strconv.Atoi(last)
	if err != nil || n < 0 || n >= 1<<16 {
		return 0, fmt.Errorf("list of processors %q: want one such as 0-3", list)
	}
	return n + 1, nil
}
