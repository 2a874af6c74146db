package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue"
)

// A wire is a veth pair between two namespaces, behind a token bucket if wanted. Packets, and references behind
// them, are sent into it by a socket of AF_PACKET; one at its far end sees them arrive, with the kernel's time.
type wire struct {
	*programs.Lab
	out, in int // sockets
	frame   []byte
	number  uint64
	sent    [1 << 16]atomic.Int64 // when packets were sent, by number
	done    sync.WaitGroup
	closed  atomic.Bool
}

const (
	references = 4739        // the UDP port of references
	headers    = 14 + 20 + 8 // bytes of a frame
)

// newWire makes the namespaces, and opens the sockets.
func newWire(o *options) (w *wire, err error) {
	commands := []string{
		"ip -n {0} link add eth0 type veth peer name eth0 netns {1}", "ip -n {0} link set eth0 up", "ip -n {1} link set eth0 up",
	}
	if o.live == "tbf" {
		const bucket = "tc -n {0} qdisc add dev eth0 root tbf rate %.0fkbit burst 3100 limit %d"
		commands = append(commands, fmt.Sprintf(bucket, o.rate*1e3, o.queue*1000))
	}
	w = &wire{frame: make([]byte, 0, 2048)}
	if w.Lab, err = programs.NewLab(2, commands...); err != nil {
		return nil, err
	}
	if w.out, err = open(w.Names[0], 0); err == nil {
		w.in, err = open(w.Names[1], syscall.ETH_P_ALL)
	}
	if err != nil {
		w.Remove()
	}
	return w, err
}

// open opens a socket of AF_PACKET in a namespace.
func open(namespace string, protocol uint16) (fd int, err error) {
	err = programs.In(namespace, func() error {
		nic, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		if fd, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		const plenty = 1 << 24 // bytes: neither sending nor receiving waits for room
		return errors.Join(
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUFFORCE, plenty),
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, plenty),
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1),
			syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 100_000}),
			syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: nic.Index}))
	})
	return fd, err
}

// close ends the receiving goroutine and removes the namespaces.
func (w *wire) close() {
	w.closed.Store(true)
	w.done.Wait()
	syscall.Close(w.out)
	syscall.Close(w.in)
	w.Remove()
}

// send sends a UDP datagram of the given payload, as part of a frame of the given size. It reports
// whether the queue took it.
func (w *wire) send(t *hashing.Tuple, payload []byte, size int) bool {
	size = max(size, headers+len(payload))
	f := append(w.frame[:0], 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0)
	f = binary.BigEndian.AppendUint16(f, uint16(size-14))
	f = append(f, 0, 0, 0x40, 0, 64, 17, 0, 0) // of UDP
	f = append(f, t.Src[12:]...)
	f = append(f, t.Dst[12:]...)
	f = binary.BigEndian.AppendUint16(f, t.SrcPort)
	f = binary.BigEndian.AppendUint16(f, t.DstPort)
	f = binary.BigEndian.AppendUint16(f, uint16(size-34))
	f = append(append(f, 0, 0), payload...)
	_, err := syscall.Write(w.out, f[:size])
	return err == nil
}

// forwardLive sends the next packet, and a reference behind it if one is due.
func (p *port) forwardLive() {
	w, size := p.wires, max(int(p.next.Bytes), headers+8)
	tuple := tupleOf(p.next.Flow)
	before := time.Now().UnixNano()
	w.sent[w.number%uint64(len(w.sent))].Store(before)
	taken := w.send(&tuple, binary.BigEndian.AppendUint64(p.wire[:0], w.number), size)
	reference, due := p.injector.Packet(size, before)
	w.number++
	p.mu.Lock()
	if p.now.Packets++; !taken {
		p.now.Dropped++
	}
	p.mu.Unlock()
	if due {
		tuple.DstPort = references
		p.wire = p.injector.Append(p.wire[:0], reference, time.Now().UnixNano())
		w.send(&tuple, p.wire, p.bytes)
	}
}

// receiveLive reports what arrives, until the wire is closed.
func (p *port) receiveLive() {
	w := p.wires
	defer w.done.Done()
	data, control := make([]byte, 2048), make([]byte, 256)
	var frame hashing.Frame
	for !w.closed.Load() {
		n, c, _, _, err := syscall.Recvmsg(w.in, data, control, 0)
		at, ok := stamp(control[:max(c, 0)])
		if err != nil || !ok || frame.Parse(hashing.LinkEthernet, data[:n]) != nil || n < headers+8 {
			continue
		}
		p.mu.Lock()
		if payload := data[headers:n]; frame.Tuple.DstPort == references {
			p.receiver.Active().Accept(payload, at) // the receiver counts what it refuses
		} else {
			sent := w.sent[binary.BigEndian.Uint64(payload)%uint64(len(w.sent))].Load()
			p.depart(frame.Tuple, &queue.Packet{Bytes: int32(n), Sent: sent, Time: at})
		}
		p.mu.Unlock()
	}
}

// stamp returns the kernel's time of a packet.
func stamp(control []byte) (int64, bool) {
	list, err := syscall.ParseSocketControlMessage(control)
	if err != nil || len(list) == 0 || list[0].Header.Type != syscall.SO_TIMESTAMPNS || len(list[0].Data) < 16 {
		return 0, false
	}
	word := func(at int) int64 { return int64(binary.NativeEndian.Uint64(list[0].Data[at:])) }
	return word(0)*1e9 + word(8), true
}
