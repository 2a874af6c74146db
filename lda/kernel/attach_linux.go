package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Attach types of programs.
const (
	attachXDP        = 37
	attachTCXIngress = 46
	attachTCXEgress  = 47
)

// Flags of links.
const (
	driverMode   = 1 << 2 // XDP_FLAGS_DRV_MODE
	beforeOthers = 1 << 3 // BPF_F_BEFORE
)

// Attach starts counting what passes a hook of an interface in the calling thread's network namespace. It
// counts until Close or the end of the process. A Point may be attached to several interfaces, such as those of
// a bond or all ports of a host, if no packet passes more than one of them.
//
// The Point sees packets before the tcx programs that are already there, any of which may hide packets from
// later ones. Programs that ask later to be first come before it. XDP is the driver's own hook, because the
// kernel's generic one comes after segments are merged; where the driver has none, the error is [ErrKernel].
//
// When an interface goes away, Rotate returns [ErrDetached]. A later Attach to an interface of the same name
// replaces it.
func (p *Point) Attach(name string, hook Hook) error {
	if err := p.attach(name, hook); err != nil {
		return fmt.Errorf("kernel: attaching to %s of %s: %w", hook, name, err)
	}
	return nil
}

// An attachment is a hook of an interface that a Point counts at.
type attachment struct {
	name string
	hook Hook
	link int // its descriptor
}

func (p *Point) attach(name string, hook Hook) error {
	if p.closed {
		return syscall.EBADF
	}
	a, err := p.newAttachment(name, hook)
	if err != nil {
		return err
	}
	same := func(old *attachment) bool { return old.name == name && old.hook == hook && !linked(old.link) }
	if i := slices.IndexFunc(p.attachments, same); i >= 0 {
		syscall.Close(p.attachments[i].link)
		p.attachments[i] = a
		return nil
	}
	p.attachments = append(p.attachments, a)
	return nil
}

// detached returns an error that names the interfaces that went away.
func (p *Point) detached() error {
	var errs []error
	for _, a := range p.attachments {
		if !linked(a.link) {
			errs = append(errs, fmt.Errorf("%w: %s of %s", ErrDetached, a.hook, a.name))
		}
	}
	return errors.Join(errs...)
}

func (p *Point) newAttachment(name string, hook Hook) (*attachment, error) {
	if hook < Ingress || hook > XDP {
		return nil, fmt.Errorf("%w: want Ingress, Egress or XDP", estimate.ErrConfig)
	}
	index, layer, err := lookInterface(name)
	if err != nil {
		return nil, err
	}
	program, err := p.program(hook, layer)
	if err != nil {
		return nil, err
	}
	kind, flags := uint32(attachTCXIngress), uint32(beforeOthers)
	switch hook {
	case Egress:
		kind = attachTCXEgress
	case XDP:
		kind, flags = attachXDP, driverMode
	}
	link, err := newLink(program, index, kind, flags)
	switch {
	case err == nil:
		return &attachment{name, hook, link}, nil
	case hook == XDP:
		return nil, explainXDP(err)
	}
	return nil, explain("tcx, which is new in Linux 6.6", err)
}

// explainXDP explains why XDP is not available.
func explainXDP(err error) error {
	switch err {
	case syscall.EBUSY:
		return fmt.Errorf("%w: another XDP program is attached: %w", ErrKernel, err)
	case syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ERANGE:
		return fmt.Errorf("%w: the driver has no XDP, or not with this MTU or these offloads (ethtool -K … lro off): use Ingress: %w",
			ErrKernel, err)
	}
	return explain("XDP", err)
}

// program returns a program for a hook and a link layer, and loads the first of its kind.
func (p *Point) program(hook Hook, link hashing.LinkType) (int, error) {
	key := programKind{hook == XDP, link}
	if descriptor, ok := p.programs[key]; ok {
		return descriptor, nil
	}
	g := &program{config: p.config, hook: hook, raw: link == hashing.LinkRaw, cells: p.cells, control: p.control, lanes: p.lanes,
		after: p.after}
	code := g.generate()
	var descriptor int
	var err error
	if hook == XDP {
		descriptor, err = loadProgram(progXDP, attachXDP, xdpFragments, code)
	} else {
		descriptor, err = loadProgram(progSchedule, 0, 0, code)
	}
	if err != nil {
		return -1, err
	}
	p.programs[key] = descriptor
	p.closers = append(p.closers, func() { syscall.Close(descriptor) })
	return descriptor, nil
}

// programKind is what distinguishes the programs of one Point.
type programKind struct {
	xdp  bool
	link hashing.LinkType
}

// An interfaceRequest is the kernel's struct ifreq.
type interfaceRequest struct {
	name [syscall.IFNAMSIZ]byte
	data [24]byte
}

// lookInterface returns an interface's index, and what its frames begin with.
func lookInterface(name string) (index int, link hashing.LinkType, err error) {
	var request interfaceRequest
	if len(name) == 0 || len(name) >= len(request.name) {
		return 0, 0, fmt.Errorf("no such interface: %w", syscall.ENODEV)
	}
	copy(request.name[:], name)
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer syscall.Close(socket)
	if err := request.do(socket, syscall.SIOCGIFINDEX); err != nil {
		return 0, 0, fmt.Errorf("no such interface: %w", err)
	}
	index = int(*(*int32)(unsafe.Pointer(&request.data)))
	if err := request.do(socket, syscall.SIOCGIFHWADDR); err != nil {
		return 0, 0, err
	}
	const rawIP, none = 519, 0xfffe
	switch hardware := *(*uint16)(unsafe.Pointer(&request.data)); hardware {
	case syscall.ARPHRD_ETHER, syscall.ARPHRD_LOOPBACK:
		return index, hashing.LinkEthernet, nil
	case rawIP, none, syscall.ARPHRD_PPP, syscall.ARPHRD_TUNNEL, syscall.ARPHRD_TUNNEL6, syscall.ARPHRD_SIT, syscall.ARPHRD_IPGRE:
		return index, hashing.LinkRaw, nil
	default:
		return 0, 0, fmt.Errorf("%w: the interface's packets begin with neither Ethernet nor IP (ARPHRD %d)", ErrKernel, hardware)
	}
}

func (r *interfaceRequest) do(socket int, command uintptr) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), command, uintptr(unsafe.Pointer(r)))
	runtime.KeepAlive(r)
	if errno != 0 {
		return errno
	}
	return nil
}
