//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// What linux/if_packet.h of the kernel calls PACKET_VERSION, TPACKET_V3, and so on, as far as package syscall lacks it.
const (
	packetVersion  = 10
	packetHeaders  = 15 // PACKET_VNET_HDR: a header that describes bundles
	version3       = 2
	headerSize     = 10 // of virtio_net_hdr
	blockSize      = 1 << 18
	snapLength     = 192
	statusUser     = 1
	mirrorReceived = 1 // PACKET_MR_PROMISC
)

// blockTime is the number of milliseconds after which the kernel hands over a block of packets that is not full.
const blockTime = 10

// A captured packet is what the kernel says about it. The frame is valid until the next one.
type captured struct {
	at     int64 // wall clock, ns
	frame  []byte
	bundle bool // of segments that a card cuts or has merged
}

// A ring is memory that the kernel fills with packets and their times, block
// by block, and that a program empties without a system call.
type ring struct {
	file   *os.File
	index  int // of the interface
	memory []byte
	taken  atomic.Uint64 // packets handed over

	mu              sync.Mutex
	passed, dropped uint64 // by the kernel: into the ring, and for lack of room in it
	drops           []drop // that none asked for yet
}

// A drop is how many packets a ring had no room for once it was full.
type drop struct {
	at int64 // of the last packet in it, ns
	n  uint64
}

// openRing opens a ring for what passes an interface, in or out, in the calling thread's network namespace. It
// stays empty until begin.
func openRing(p place, bytes int, promiscuous bool) (*ring, error) {
	r, err := newRing(bytes)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", p, permitted(err))
	}
	if err := r.find(p, promiscuous); err != nil {
		r.close()
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	return r, nil
}

// find looks for the interface, perhaps one that has been made again.
func (r *ring) find(p place, promiscuous bool) error {
	nic, err := net.InterfaceByName(p.device)
	if err != nil {
		return err
	}
	r.index = nic.Index
	return r.control(func(fd int) error { return attach(fd, nic.Index, p.out, promiscuous) })
}

// bound returns the interface that fills the ring; its index is negative if it went away.
func (r *ring) bound() (l syscall.SockaddrLinklayer) {
	r.control(func(fd int) error {
		a, err := syscall.Getsockname(fd)
		if p, ok := a.(*syscall.SockaddrLinklayer); ok {
			l = *p
		}
		return err
	})
	return l
}

// newRing makes a ring that nothing fills yet.
func newRing(bytes int) (*ring, error) {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	const frameSize = 2048 // without meaning in version 3, but checked
	blocks := max(bytes/blockSize, 2)
	var request []byte
	for _, v := range []int{blockSize, blocks, frameSize, blocks * (blockSize / frameSize), blockTime, 0, 0} {
		request = binary.NativeEndian.AppendUint32(request, uint32(v))
	}
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_PACKET, packetVersion, version3),
		syscall.SetsockoptInt(fd, syscall.SOL_PACKET, packetHeaders, 1),
		syscall.SetsockoptString(fd, syscall.SOL_PACKET, syscall.PACKET_RX_RING, string(request)))
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("ring of %d MiB: %w", bytes>>20, err)
	}
	memory, err := syscall.Mmap(fd, 0, blocks*blockSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("mapping a ring of %d MiB: %w", bytes>>20, err)
	}
	return &ring{file: os.NewFile(uintptr(fd), "ring"), memory: memory}, nil
}

// attach says what a ring takes of an interface. A filter in the kernel selects the direction,
// so that the other direction takes no room and is not counted among the drops.
func attach(fd, index int, out, promiscuous bool) error {
	const pktType, outgoing = 0xfffff004, 4 // SKF_AD_OFF + SKF_AD_PKTTYPE, PACKET_OUTGOING
	yes, no := uint8(1), uint8(0)
	if out {
		yes, no = no, yes
	}
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: pktType},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jt: yes, Jf: no, K: outgoing},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: snapLength},
		{Code: syscall.BPF_RET | syscall.BPF_K},
	}
	//lint:ignore SA1019 what replaces it is not in the standard library
	if err := syscall.AttachLsf(fd, filter); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	if promiscuous {
		member := binary.NativeEndian.AppendUint32(nil, uint32(index))
		member = binary.NativeEndian.AppendUint16(member, mirrorReceived)
		member = append(member, make([]byte, 10)...)
		if err := syscall.SetsockoptString(fd, syscall.SOL_PACKET, syscall.PACKET_ADD_MEMBERSHIP, string(member)); err != nil {
			return fmt.Errorf("promiscuous: %w", err)
		}
	}
	return nil
}

// begin starts filling a ring.
func (r *ring) begin() error {
	protocol := binary.NativeEndian.Uint16([]byte{0, syscall.ETH_P_ALL}) // in network order
	err := r.control(func(fd int) error {
		return syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: protocol, Ifindex: r.index})
	})
	if kind := r.bound().Hatype; err == nil && kind != syscall.ARPHRD_ETHER && kind != syscall.ARPHRD_LOOPBACK {
		return fmt.Errorf("its packets do not begin with Ethernet (ARPHRD %d): try -kernel", kind)
	}
	return err
}

// control calls a function with the ring's descriptor.
func (r *ring) control(f func(fd int) error) error {
	raw, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Control(func(fd uintptr) { result = f(int(fd)) })
	return errors.Join(err, result)
}

// run hands over blocks of packets until stop.
func (r *ring) run(take func(iter.Seq[captured])) error {
	raw, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	for at := 0; ; at = (at + blockSize) % len(r.memory) {
		block := r.memory[at : at+blockSize]
		status := (*atomic.Uint32)(unsafe.Pointer(&block[8]))
		err := raw.Read(func(uintptr) bool { return status.Load()&statusUser != 0 })
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		take(packets(block))
		r.taken.Add(uint64(binary.NativeEndian.Uint32(block[12:])))
		r.statistics()  // before there is room again
		status.Store(0) // the kernel's again
	}
}

// packets yields the packets in a block: see struct tpacket_block_desc and struct tpacket3_hdr.
func packets(block []byte) iter.Seq[captured] {
	word := func(b []byte, at int) int { return int(binary.NativeEndian.Uint32(b[at:])) }
	return func(yield func(captured) bool) {
		next := block[word(block, 16):]
		for range word(block, 12) {
			mac := int(binary.NativeEndian.Uint16(next[24:]))
			ok := yield(captured{
				at:     int64(word(next, 4))*1e9 + int64(word(next, 8)),
				frame:  next[mac : mac+word(next, 12)],
				bundle: next[mac-headerSize+1]&^0x80 != 0, // gso_type
			})
			if step := word(next, 0); ok && step != 0 {
				next = next[step:]
			} else {
				return
			}
		}
	}
}

// statistics returns how many packets the kernel has put into the ring, and
// how many it found no room for, since the ring was opened.
func (r *ring) statistics() (passed, dropped uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control(func(fd int) error {
		// Reads struct tpacket_stats_v3 into any type of 12 bytes: packets,
		// including dropped ones, drops, freezes. Reading sets them to 0.
		stats, err := syscall.GetsockoptIPv6Mreq(fd, syscall.SOL_PACKET, syscall.PACKET_STATISTICS)
		if err == nil {
			all, drops := binary.NativeEndian.Uint32(stats.Multiaddr[:]), binary.NativeEndian.Uint32(stats.Multiaddr[4:])
			r.passed += uint64(all - drops)
			r.dropped += uint64(drops)
			if drops > 0 {
				r.drops = append(r.drops, drop{r.newest(), uint64(drops)})
			}
		}
		return err
	})
	return r.passed, r.dropped
}

// newest returns the time of the last packet in the ring.
func (r *ring) newest() (at int64) {
	for block := r.memory; len(block) > 0; block = block[blockSize:] {
		if (*atomic.Uint32)(unsafe.Pointer(&block[8])).Load()&statusUser != 0 {
			seconds, rest := binary.NativeEndian.Uint32(block[40:]), binary.NativeEndian.Uint32(block[44:])
			at = max(at, int64(seconds)*1e9+int64(rest))
		}
	}
	return at
}

// droppedBefore returns how many packets the ring had no room for until then, and since the last call.
func (r *ring) droppedBefore(t time.Time) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.drops) > 0 && r.drops[0].at < t.UnixNano() {
		n, r.drops = n+r.drops[0].n, r.drops[1:]
	}
	return n
}

// drain stops the filling of the ring, so that packets nobody wants do not
// count as dropped, and waits until everything in it was handed over.
func (r *ring) drain() error {
	err := r.control(func(fd int) error {
		nothing := []syscall.SockFilter{*syscall.LsfStmt(syscall.BPF_RET|syscall.BPF_K, 0)} //lint:ignore SA1019 golang.org/x is a dependency
		return syscall.AttachLsf(fd, nothing)                                               //lint:ignore SA1019 likewise
	})
	const patience = 5 * time.Second
	for end := time.Now().Add(patience); err == nil; time.Sleep(blockTime * time.Millisecond / 2) {
		passed, _ := r.statistics()
		taken := r.taken.Load()
		if taken == passed {
			break
		}
		if time.Now().After(end) {
			err = fmt.Errorf("%d packets of %d are still in the ring after %v", passed-taken, passed, patience)
		}
	}
	return err
}

// problem returns what went wrong with the interface since the last call.
func (r *ring) problem() error {
	return r.control(func(fd int) error {
		code, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
		if err == nil && code != 0 {
			err = syscall.Errno(code)
		}
		return err
	})
}

// stop makes run return.
func (r *ring) stop() { r.file.SetReadDeadline(time.Now()) }

// close frees the ring, after run returned.
func (r *ring) close() {
	syscall.Munmap(r.memory)
	r.file.Close()
}
