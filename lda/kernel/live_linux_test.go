package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
)

// A link is two network namespaces and a virtual cable between them.
type wire struct {
	lab  *programs.Lab
	a, b string // namespaces, in which the ends are called eth0

	socketSegments uint64 // that the receiving socket was given
}

// received closes a connection that the other end has closed, and returns how many segments its socket says it
// was given, with the acknowledgement of the close: unlike the namespace it looks into bundles.
func received(c *net.TCPConn) (n uint64, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	c.CloseWrite()
	const closed, patience = 7, 10 * time.Second // TCP_CLOSE
	for end, state := time.Now().Add(patience), byte(0); state != closed; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return 0, fmt.Errorf("the close is not acknowledged: state %d", state)
		}
		err := raw.Control(func(fd uintptr) {
			var info [256]byte // struct tcp_info
			const atSegments = 140
			size := uint32(len(info))
			syscall.Syscall6(getsockopt, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
				uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
			state, n = info[0], uint64(*(*uint32)(unsafe.Pointer(&info[atSegments])))
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// cable makes a link. Its ends know each other's address, so that what is sent passes at once.
var cable = []string{
	"ip link add eth0 netns {0} address 02:00:00:00:00:01 type veth peer name eth0 netns {1} address 02:00:00:00:00:02",
	"ip -n {0} addr add 10.99.0.1/24 dev eth0", "ip -n {1} addr add 10.99.0.2/24 dev eth0",
	"ip -n {0} link set eth0 up", "ip -n {1} link set eth0 up",
	"ip -n {0} neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent",
	"ip -n {1} neigh add 10.99.0.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
}

// newWire makes a link whose end a has a queue, or skips the test.
func newWire(t testing.TB, queue string) *wire {
	t.Helper()
	lab, err := programs.NewLab(2)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(lab.Remove)
	w := &wire{lab: lab, a: lab.Names[0], b: lab.Names[1]}
	w.connect(t)
	if queue != "" {
		if err := lab.Run("tc -n {0} qdisc add dev eth0 root " + queue); err != nil {
			t.Skip(err)
		}
	}
	return w
}

// connect makes the link and waits until it is up.
func (w *wire) connect(t testing.TB) {
	t.Helper()
	if err := w.lab.Run(cable...); err != nil {
		t.Skip(err)
	}
	for _, end := range w.lab.Names {
		for range 500 {
			var running net.Flags
			in(end, func() error {
				nic, err := net.InterfaceByName("eth0")
				if err == nil {
					running = nic.Flags & net.FlagRunning
				}
				return err
			})
			if running != 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// in runs f in a network namespace.
func in(namespace string, f func() error) error { return programs.In(namespace, f) }

// attach attaches a point to an end of the link.
func (w *wire) attach(t testing.TB, p *Point, namespace string, hook Hook) {
	t.Helper()
	if err := in(namespace, func() error { return p.attach("eth0", hook) }); err != nil {
		t.Fatal(err)
	}
}

// drop attaches to end a, behind the point, a program that drops one bundle or packet of IPv4 in 200 (no point
// counts ARP), and counts the segments that the kernel says it has.
func (w *wire) drop(t testing.TB, both *pair) {
	p := both.up
	var a assembler
	pass, one := a.label(), a.label()
	a.move(r6, r1)
	a.call(7) // random number
	a.move(r1, r0)
	a.with(opMove, r0, scheduleNext)
	a.set(r2, 1<<32/200)
	a.do(opMove32, r1, r1)
	a.jump(ifGreater, r1, r2, pass)
	const drop, protocol, segments = 2, 16, 164
	a.load(word, r2, r6, protocol)
	a.jumpWith(ifNotEqual, r2, int32(binary.NativeEndian.Uint16([]byte{typeIPv4 >> 8, typeIPv4 & 0xff})), pass)
	a.load(word, r2, r6, segments)
	a.jumpWith(ifNotEqual, r2, 0, one)
	a.with(opMove, r2, 1)
	a.place(one)
	a.setMap(r1, mapValue, both.exact.sums)
	a.emit(opAtomic, r1, r2, 16, 0)
	a.with(opMove, r0, drop)
	a.place(pass)
	a.exit()
	program := p.loadCode(t, Egress, a.assemble())
	w.attachCode(t, p, program)
}

// sendTCP sends a given number of bytes through the link.
func (w *wire) sendTCP(n int) error {
	var listener net.Listener
	err := in(w.b, func() (err error) {
		listener, err = net.Listen("tcp4", "10.99.0.2:5000")
		return err
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	finished := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			var got int64
			if got, err = io.Copy(io.Discard, c); err == nil && got != int64(n) {
				err = fmt.Errorf("received %d bytes of %d", got, n)
			}
			var closing error
			w.socketSegments, closing = received(c.(*net.TCPConn))
			err = errors.Join(err, closing, c.Close())
		}
		finished <- err
	}()
	var c net.Conn
	if err := in(w.a, func() (err error) {
		c, err = net.Dial("tcp4", "10.99.0.2:5000")
		return err
	}); err != nil {
		return err
	}
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for left := n; left > 0; {
		sent, err := c.Write(block[:min(left, len(block))])
		if err != nil {
			return err
		}
		left -= sent
	}
	c.Close()
	return <-finished
}

// A match matches packets one by one, in maps of the kernel.
type match struct {
	times, sums int
	totals      []uint64 // of the delays, of packets, and of those dropped
}

func newMatch(t testing.TB, p *Point) *match {
	t.Helper()
	const hashMap = 1
	times, err := newMap(hashMap, 8, 8, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := &match{times: times}
	if m.sums, m.totals, err = p.openMap(4096); err != nil {
		t.Fatal(err)
	}
	p.closers = append(p.closers, func() { closeDescriptor(times) })
	return m
}

// key points r2 at the digest and r1 to the map.
func (m *match) key(p *program) {
	const scratch = -120
	p.store(double, fp, scratch, r8)
	p.move(r2, fp)
	p.with(opAdd, r2, scratch)
	p.setMap(r1, mapDescriptor, m.times)
}

// up remembers when a packet passed.
func (m *match) up(p *program) {
	m.key(p)
	p.move(r3, fp)
	p.with(opAdd, r3, stackTime)
	p.with(opMove, r4, 0)
	p.call(2) // update
}

// down adds up the delay of a packet that is remembered, and forgets it.
func (m *match) down(p *program) {
	unknown := p.label()
	m.key(p)
	p.call(1) // lookup
	p.jumpWith(ifEqual, r0, 0, unknown)
	p.load(double, r1, r0, 0)
	p.load(double, r2, fp, stackTime)
	p.do(opSub, r2, r1)
	p.setMap(r1, mapValue, m.sums)
	p.emit(opAtomic, r1, r2, 0, 0)
	p.with(opMove, r2, 1)
	p.emit(opAtomic, r1, r2, 8, 0)
	m.key(p)
	p.call(3) // delete
	p.place(unknown)
}

// A pair is a point at each end of a link, and what both counted.
type pair struct {
	up, down *Point
	exact    *match
	total    *lda.Accumulator
	interval uint64
	// How many packets the intervals have together, and bundled segments.
	sent, received, upSegments, downSegments uint64
}

func newPair(t testing.TB, w *wire, hook Hook) *pair {
	t.Helper()
	p := &pair{up: newPoint(t, bootConfig()), down: newPoint(t, bootConfig())}
	p.exact = newMatch(t, p.up)
	p.up.after, p.down.after = p.exact.up, p.exact.down
	var err error
	if p.total, err = lda.NewAccumulator(p.up.Config().LDA); err != nil {
		t.Fatal(err)
	}
	w.attach(t, p.down, w.b, hook)
	w.attach(t, p.up, w.a, Egress)
	return p
}

// rotateBoth ends an interval at two points, first at the one that packets pass last.
func rotateBoth(last, first *Point) (down, up *Interval, err error) {
	last.Cut()
	first.Cut()
	if down, err = last.Rotate(); err == nil {
		up, err = first.Rotate()
	}
	return down, up, err
}

// rotate ends an interval at both points.
func (p *pair) rotate() error {
	down, up, err := rotateBoth(p.down, p.up)
	if err != nil {
		return err
	}
	one, _ := lda.Estimate(up.Aggregator, down.Aggregator) // for its counts; crossed packets spoil the rest
	p.sent += one.Sent
	p.received += one.Received
	p.upSegments += up.Counters.Segments
	p.downSegments += down.Counters.Segments
	p.interval++
	return errors.Join(p.total.Add(up.Start, up.End, up.Aggregator, down.Aggregator), p.up.Release(up), p.down.Release(down))
}

// rotateDuring rotates every 50 ms while f runs, and twice after it.
func (p *pair) rotateDuring(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	for {
		select {
		case err := <-done:
			time.Sleep(300 * time.Millisecond)
			for range 2 {
				if err == nil {
					err = p.rotate()
				}
			}
			return err
		case <-time.After(50 * time.Millisecond):
			if err := p.rotate(); err != nil {
				return err
			}
		}
	}
}

// TCP with all offloads on, through queues that cut bundles or leave them, and drop packets. Over tens of
// intervals the counts equal the receiving socket's count of segments plus what was dropped, and the mean is
// that of matching packet by packet.
func TestTCPOffloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, queue string
		hook        Hook
		merge       bool
		bytes       int
	}{
		{"bundles", "tbf rate 400mbit burst 100kb limit 4mb", Ingress, false, 15e6},
		{"cut", "tbf rate 300mbit burst 5kb limit 4mb", Ingress, false, 8e6},
		{"cut and merged", "tbf rate 400mbit burst 100kb limit 4mb", Ingress, true, 8e6},
		{"XDP", "tbf rate 300mbit burst 5kb limit 4mb", XDP, false, 8e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			try := func() error {
				w := newWire(t, c.queue)
				if c.merge {
					const setTSO, setGRO = 0x1f, 0x2c // the sender cuts behind its queue, and the receiver merges
					err := in(w.a, func() error { return setOffload(setTSO, 0) })
					if err = errors.Join(err, in(w.b, func() error { return setOffload(setGRO, 1) })); err != nil {
						t.Skipf("offloads: %v", err)
					}
				}
				p := newPair(t, w, c.hook)
				if c.name == "bundles" {
					w.drop(t, p)
				}
				if err := p.rotateDuring(func() error { return w.sendTCP(c.bytes) }); err != nil {
					return err
				}
				if dropped := p.exact.totals[2]; p.sent-p.received != dropped || p.received != w.socketSegments {
					return fmt.Errorf("lost %d segments, dropped %d; received %d, the socket says %d",
						p.sent-p.received, dropped, p.received, w.socketSegments)
				}
				if p.upSegments == 0 || c.merge && p.downSegments == 0 {
					return errors.New("no bundles were sent, or no segments merged: the test tries nothing")
				}
				return p.checkMeans(t)
			}
			// A close that is acknowledged twice, or a mean outside its interval by chance, does not happen
			// three times in a row.
			var err error
			for range 3 {
				if err = try(); err == nil {
					return
				}
				t.Log(err)
			}
			t.Error(err)
		})
	}
}

// surely is the confidence of an interval that chance does not miss.
const surely = 1 - 1e-7

// checkMeans holds what the points say to packets matched one by one.
func (p *pair) checkMeans(t *testing.T) (err error) {
	t.Helper()
	r, err := p.total.Estimate()
	if err != nil {
		return err
	}
	exact := float64(p.exact.totals[0]) / float64(p.exact.totals[1])
	t.Logf("%d intervals, sent %d (%d in bundles), received %d (%d in bundles), matched %d, mean %.0f ns, "+
		"exact %.0f ns (%+.2f %%), sample %d",
		p.interval, p.sent, p.upSegments, p.received, p.downSegments, p.exact.totals[1], r.Mean, exact, 100*(r.Mean/exact-1), r.N)
	lost := r.Lost + r.Outstanding - r.Extra
	if lost != p.sent-p.received || p.exact.totals[1] != p.received {
		err = fmt.Errorf("lost %d, want %d; %d packets matched one by one, of %d received",
			lost, p.sent-p.received, p.exact.totals[1], p.received)
	}
	// An Accumulator need not have all packets in the sample where some are lost, and its doubt is of 99 %
	// only.
	i := r.MeanInterval(surely)
	i.Low, i.High = i.Low-2*r.MeanError, i.High+2*r.MeanError
	if !i.Contains(exact) || r.N == r.Received && math.Abs(r.Mean-exact) > 1 {
		err = errors.Join(err, fmt.Errorf("accumulated mean %.0f ns in %.0f to %.0f, exact %.0f ns", r.Mean, i.Low, i.High, exact))
	}
	return err
}

// setOffload turns an offload of eth0 on or off (SIOCETHTOOL).
func setOffload(command, data uint32) error {
	value := struct{ command, data uint32 }{command, data}
	var r interfaceRequest
	copy(r.name[:], "eth0")
	*(*unsafe.Pointer)(unsafe.Pointer(&r.data)) = unsafe.Pointer(&value)
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	const ethtool = 0x8946
	return r.do(socket, ethtool)
}
