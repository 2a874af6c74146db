package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// A batch sends frames, many with one system call.
type batch struct {
	file     *os.File
	address  syscall.RawSockaddrLinklayer
	frames   [maxBurst][frameSize]byte
	vectors  [maxBurst]syscall.Iovec
	messages [maxBurst]message
}

// A message is what the kernel calls struct mmsghdr.
type message struct {
	header syscall.Msghdr
	_      uint32 // number of bytes sent
}

// newBatch returns a batch that sends through an interface of the calling
// thread's network namespace.
func newBatch(device string) (*batch, error) {
	nic, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", permitted(err))
	}
	b := &batch{file: os.NewFile(uintptr(fd), "batch")}
	b.address = syscall.RawSockaddrLinklayer{
		Family: syscall.AF_PACKET, Ifindex: int32(nic.Index),
		Protocol: binary.NativeEndian.Uint16([]byte{syscall.ETH_P_IP >> 8, syscall.ETH_P_IP & 0xff}),
	}
	for i := range b.messages {
		b.vectors[i].Base = &b.frames[i][0]
		b.vectors[i].SetLen(frameSize)
		h := &b.messages[i].header
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.address)), uint32(unsafe.Sizeof(b.address))
		h.Iov = &b.vectors[i]
		h.Iovlen = 1
	}
	return b, nil
}

// send sends the first n frames.
func (b *batch) send(n int) error {
	numbers := map[string]uintptr{
		"amd64": 307, "386": 345, "arm": 374, "arm64": 269, "loong64": 269, "riscv64": 269, "ppc64le": 349, "s390x": 358,
	}
	number, ok := numbers[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("%s: the system call number of sendmmsg is unknown", runtime.GOARCH)
	}
	raw, err := b.file.SyscallConn()
	if err != nil {
		return err
	}
	for sent := 0; sent < n; {
		var done uintptr
		var errno syscall.Errno
		err := raw.Control(func(fd uintptr) {
			done, _, errno = syscall.Syscall6(number, fd, uintptr(unsafe.Pointer(&b.messages[sent])), uintptr(n-sent), 0, 0, 0)
		})
		switch {
		case err != nil:
			return err
		case errno == syscall.ENOBUFS: // the frame is lost before anybody counts it
			sent++
		case errno != 0 && errno != syscall.EINTR:
			return errors.Join(errors.New("sendmmsg"), errno)
		case errno == 0:
			sent += int(done)
		}
	}
	return nil
}

func (b *batch) close() { b.file.Close() }
