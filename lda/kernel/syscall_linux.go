package kernel

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// Commands of bpf(2).
const (
	mapCreate  = 0
	mapUpdate  = 2
	progLoad   = 5
	progTest   = 10
	objInfo    = 15
	linkCreate = 28
)

// numbers holds the number of the system call bpf, for the little-endian architectures that have it.
var numbers = map[string]uintptr{"386": 357, "amd64": 321, "arm": 386, "arm64": 280, "loong64": 280, "riscv64": 280}

// maxTries limits how often a call is repeated after a signal interrupted it, such as the signals with which
// Go's runtime preempts: the verifier gives up on any signal.
const maxTries = 1000

// bpf makes the system call bpf(2). Its attributes are a struct of the kernel's, as far as it is known here.
func bpf(command int, attributes unsafe.Pointer, size uintptr) (int, error) {
	number := numbers[runtime.GOARCH]
	if number == 0 {
		return -1, ErrUnsupported
	}
	for try := 0; ; try++ {
		r, _, errno := syscall.Syscall(number, uintptr(command), uintptr(attributes), size)
		switch {
		case (errno == syscall.EAGAIN || errno == syscall.EINTR) && try < maxTries:
		case errno != 0:
			return -1, errno
		default:
			return int(r), nil
		}
	}
}

// pointer returns a pointer as bpf takes it, 64 bits wide everywhere. The caller must keep alive what it points
// to. That cannot be on the stack, which moves when it grows: the compiler takes it to be stored elsewhere.
func pointer(p unsafe.Pointer) uint64 {
	if stored != nil { // never
		stored = p
	}
	return uint64(uintptr(p))
}

var stored unsafe.Pointer

// newMap creates a map.
func newMap(kind, key, value, entries, flags uint32) (int, error) {
	attributes := struct{ kind, key, value, entries, flags uint32 }{kind, key, value, entries, flags}
	descriptor, err := bpf(mapCreate, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	if err != nil {
		return -1, explain(fmt.Sprintf("map of %d × %d bytes", entries, value), err)
	}
	return descriptor, nil
}

// Kinds of maps.
const (
	arrayMap       = 2
	arrayOfMapsMap = 12

	mappable = 1 << 10 // flag: user space may map the values
)

// Kinds of programs.
const (
	progSchedule = 3 // tc
	progXDP      = 6

	xdpFragments = 1 << 5 // flag: packets may lie in several buffers
)

// loadProgram loads a program, after the kernel has verified it.
func loadProgram(kind, attach, flags uint32, code []instruction) (int, error) {
	license := [...]byte{'M', 'I', 'T', 0}
	attributes := struct {
		kind, count            uint32
		code, license          uint64
		logLevel, logSize      uint32
		log                    uint64
		version, flags         uint32
		name                   [16]byte
		interfaceIndex, attach uint32
	}{
		kind: kind, count: uint32(len(code)), code: pointer(unsafe.Pointer(&code[0])),
		license: pointer(unsafe.Pointer(&license)), flags: flags, name: [16]byte{'h', 'o', 'p', 'l', 'a', 'g'}, attach: attach,
	}
	descriptor, err := bpf(progLoad, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	switch {
	case err == nil:
		return descriptor, nil
	case err == syscall.EPERM, !capable(): // without CAP_PERFMON the verifier wants other programs
		return -1, explain("program", syscall.EPERM)
	}
	// Try again for the verifier's messages: its last lines.
	log := make([]byte, 1<<20)
	attributes.logLevel, attributes.logSize, attributes.log = 1, uint32(len(log)), pointer(unsafe.Pointer(&log[0]))
	if descriptor, err := bpf(progLoad, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes)); err == nil {
		return descriptor, nil
	}
	runtime.KeepAlive(code)
	text, _, _ := strings.Cut(string(log), "\x00")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return -1, explain("program", fmt.Errorf("%w; the verifier: %s", err, strings.Join(lines[max(0, len(lines)-4):], "; ")))
}

// newLink attaches a program to a hook of an interface until the link's descriptor is closed, or until the
// process ends.
func newLink(program, interfaceIndex int, attach, flags uint32) (int, error) {
	attributes := struct {
		program, target, attach, flags uint32
		rest                           [48]byte
	}{program: uint32(program), target: uint32(interfaceIndex), attach: attach, flags: flags}
	return bpf(linkCreate, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
}

// linked reports whether a link still has its interface.
func linked(descriptor int) bool {
	var info struct { // struct bpf_link_info
		kind, id, program, _ uint32
		interfaceIndex       uint32
		_                    [44]byte
	}
	attributes := struct {
		descriptor, size uint32
		info             uint64
	}{uint32(descriptor), uint32(unsafe.Sizeof(info)), pointer(unsafe.Pointer(&info))}
	_, err := bpf(objInfo, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	runtime.KeepAlive(&info)
	return err == nil && info.interfaceIndex != 0
}

// updateMap sets the value of a key of four bytes.
func updateMap(descriptor int, key, value uint32) error {
	attributes := struct {
		descriptor, pad   uint32
		key, value, flags uint64
	}{descriptor: uint32(descriptor), key: pointer(unsafe.Pointer(&key)), value: pointer(unsafe.Pointer(&value))}
	_, err := bpf(mapUpdate, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	runtime.KeepAlive(&key)
	runtime.KeepAlive(&value)
	return err
}

// mapMemory maps the only value of a map into memory, as words.
func mapMemory(descriptor, size int) ([]uint64, func(), error) {
	page := syscall.Getpagesize()
	memory, err := syscall.Mmap(descriptor, 0, (size+page-1)/page*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, explain("mapping a map", err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), size/8), func() { syscall.Munmap(memory) }, nil
}

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
