package kernel

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Numbers of traffic control that package syscall does not have.
const (
	newQueue     = 36 // RTM_NEWQDISC
	newFilter    = 44 // RTM_NEWTFILTER
	removeFilter = 45 // RTM_DELTFILTER
	askFilter    = 46 // RTM_GETTFILTER

	attributeKind    = 1 // TCA_KIND
	attributeOptions = 2 // TCA_OPTIONS
	filterDescriptor = 6 // TCA_BPF_FD
	filterName       = 7 // TCA_BPF_NAME
	filterFlags      = 8 // TCA_BPF_FLAGS
	filterDirect     = 1 // TCA_BPF_FLAG_ACT_DIRECT

	clsactHandle  = 0xffff0000
	clsactParent  = 0xfffffff1
	parentIngress = 0xfffffff2
	parentEgress  = 0xfffffff3

	// filterInfo distinguishes the package's filter from others of an
	// interface: its priority, and that it is for all protocols.
	filterPriority = 0xb1a6
	filterInfo     = filterPriority<<16 | 0x0300 // ETH_P_ALL, big-endian
	filterHandle   = 1
)

// A trafficMessage is the kernel's struct tcmsg.
type trafficMessage struct {
	family         uint8
	_              [3]uint8
	index          int32
	handle, parent uint32
	info           uint32
}

// attachFilter attaches a program as a tc filter.
func attachFilter(program, index int, hook Hook) (*attachment, error) {
	parent := uint32(parentIngress)
	if hook == Egress {
		parent = parentEgress
	}
	queue := trafficMessage{index: int32(index), handle: clsactHandle, parent: clsactParent}
	err := trafficControl(newQueue, syscall.NLM_F_CREATE|syscall.NLM_F_EXCL, queue, attribute(attributeKind, []byte("clsact\x00")))
	if err != nil && err != syscall.EEXIST {
		return nil, fmt.Errorf("clsact: %w", err)
	}
	filter := trafficMessage{index: int32(index), handle: filterHandle, parent: parent, info: filterInfo}
	options := attribute(filterDescriptor, number(uint32(program)))
	options = append(options, attribute(filterName, []byte("hoplag\x00"))...)
	options = append(options, attribute(filterFlags, number(filterDirect))...)
	kind := attribute(attributeKind, []byte("bpf\x00"))
	err = trafficControl(newFilter, syscall.NLM_F_CREATE, filter, append(kind, attribute(attributeOptions, options)...))
	if err != nil {
		return nil, fmt.Errorf("tc filter: %w", err)
	}
	// The interface may be in another namespace when the filter is removed:
	// the socket that removes the filter stays in this one.
	socket, err := trafficSocket()
	if err != nil {
		return nil, err
	}
	return &attachment{
		attached: func() bool { return exchange(socket, askFilter, 0, filter, kind) == nil },
		detach: func() {
			exchange(socket, removeFilter, 0, filter, kind)
			syscall.Close(socket)
		},
	}, nil
}

// number returns the value of a 32-bit attribute.
func number(v uint32) []byte {
	return append([]byte(nil), (*[4]byte)(unsafe.Pointer(&v))[:]...)
}

// attribute returns the kernel's struct nlattr with its value, padded.
func attribute(kind uint16, value []byte) []byte {
	const head = 4
	b := make([]byte, (head+len(value)+3)&^3)
	*(*[2]uint16)(unsafe.Pointer(&b[0])) = [2]uint16{uint16(head + len(value)), kind}
	copy(b[head:], value)
	return b
}

// trafficControl sends one request on its own socket.
func trafficControl(kind, flags uint16, message trafficMessage, attributes []byte) error {
	socket, err := trafficSocket()
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	return exchange(socket, kind, flags, message, attributes)
}

func trafficSocket() (int, error) {
	return syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
}

// exchange sends a request and waits for the kernel's answer.
func exchange(socket int, kind, flags uint16, message trafficMessage, attributes []byte) error {
	const head = syscall.NLMSG_HDRLEN
	body := int(unsafe.Sizeof(message))
	request := make([]byte, head+body, head+body+len(attributes))
	request = append(request, attributes...)
	*(*syscall.NlMsghdr)(unsafe.Pointer(&request[0])) = syscall.NlMsghdr{
		Len: uint32(len(request)), Type: kind, Flags: flags | syscall.NLM_F_REQUEST | syscall.NLM_F_ACK, Seq: 1,
	}
	*(*trafficMessage)(unsafe.Pointer(&request[head])) = message
	if err := syscall.Sendto(socket, request, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	for answer := make([]byte, 8192); ; {
		n, _, err := syscall.Recvfrom(socket, answer, 0)
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(answer[:n])
		if err != nil {
			return fmt.Errorf("%w: what netlink answers", ErrKernel)
		}
		for _, m := range messages { // what was asked for, and then the end
			if m.Header.Type != syscall.NLMSG_ERROR || len(m.Data) < 4 {
				continue
			}
			if code := *(*int32)(unsafe.Pointer(&m.Data[0])); code != 0 {
				return syscall.Errno(-code)
			}
			return nil
		}
	}
}
