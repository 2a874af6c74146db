package figclock

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
)

// A wire is two network namespaces with a veth pair between them, each end's
// egress shaped, and a socket in each.
type wire struct {
	ends  [2]*net.UDPConn
	peers [2]*net.UDPAddr
	group sync.WaitGroup
}

func newWire(t *testing.T) *wire {
	lab, err := programs.NewLab(2, "ip link add hc0 netns {0} type veth peer name hc0 netns {1}",
		"ip -n {0} addr add 10.77.0.1/24 dev hc0", "ip -n {0} link set hc0 up",
		"ip -n {1} addr add 10.77.0.2/24 dev hc0", "ip -n {1} link set hc0 up",
		"tc -n {0} qdisc add dev hc0 root tbf rate 20mbit burst 4k latency 50ms",
		"tc -n {1} qdisc add dev hc0 root tbf rate 20mbit burst 4k latency 50ms")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(lab.Remove)
	w := &wire{}
	for i, name := range lab.Names {
		address := &net.UDPAddr{IP: net.IPv4(10, 77, 0, byte(i+1)), Port: 7777}
		w.peers[1-i] = address
		err := programs.In(name, func() (err error) {
			w.ends[i], err = net.ListenUDP("udp4", address)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := w.ends[i].SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// A liveInterval is one interval of one direction: as both points measure it,
// and as they would if the far clock had no fault.
type liveInterval struct{ up, down, trueUp, trueDown *lda.Aggregator }

// A liveFlow is the packets of one direction.
type liveFlow struct {
	side   int // 0: there
	fake   *falseClock
	length int64

	mu   sync.Mutex
	ring [8]liveInterval
}

func newLiveFlow(t *testing.T, side int, fake *falseClock, length time.Duration) *liveFlow {
	f := &liveFlow{side: side, fake: fake, length: int64(length)}
	config := lda.DefaultConfig
	config.DigestBits = 16
	for i := range f.ring {
		for _, a := range []**lda.Aggregator{&f.ring[i].up, &f.ring[i].down, &f.ring[i].trueUp, &f.ring[i].trueDown} {
			made, err := lda.New(config)
			if err != nil {
				t.Fatal(err)
			}
			*a = made
		}
	}
	return f
}

// stamp is a time by the clock of the point that sends or receives.
func (f *liveFlow) stamp(now int64, far bool) int64 {
	if far {
		now += int64(math.Floor(f.fake.ahead(now)))
	}
	return now
}

// take returns an interval whose packets have come, and makes room for a later one.
func (f *liveFlow) take(number int64) *liveInterval {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.ring[(number+4)%8]
	for _, a := range []*lda.Aggregator{old.up, old.down, old.trueUp, old.trueDown} {
		a.Reset()
	}
	taken := f.ring[number%8]
	return &taken
}

// send sends bursts that fill the queue now and then. A packet says its
// interval, so that both points put it in the same.
func (f *liveFlow) send(t *testing.T, conn *net.UDPConn, peer *net.UDPAddr, done chan struct{}, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	payload := make([]byte, 1200)
	for sequence := uint64(0); ; {
		select {
		case <-done:
			return
		default:
		}
		for range int(min(math.Pow(1-rng.Float64(), -1/1.5), 40)) {
			sequence++
			size := 100 + rng.IntN(1100)
			now := time.Now().UnixNano()
			number := now / f.length
			binary.BigEndian.PutUint64(payload, sequence)
			binary.BigEndian.PutUint64(payload[8:], uint64(number))
			if _, err := conn.WriteToUDP(payload[:size], peer); err != nil {
				t.Logf("send: %v", err)
				continue
			}
			p := hashing.Word(seed+100, sequence)
			f.mu.Lock()
			f.ring[number%8].up.Update(p, f.stamp(now, f.side == 1))
			f.ring[number%8].trueUp.Update(p, now)
			f.mu.Unlock()
		}
		time.Sleep(time.Duration(rng.ExpFloat64() * 1.5e6))
	}
}

// receive takes the kernel's stamps, until the socket is closed.
func (f *liveFlow) receive(conn *net.UDPConn) {
	payload, control := make([]byte, 2048), make([]byte, 256)
	for {
		n, c, _, _, err := conn.ReadMsgUDP(payload, control)
		if err != nil {
			return
		}
		messages, err := syscall.ParseSocketControlMessage(control[:c])
		if err != nil || len(messages) == 0 || n < 16 || len(messages[0].Data) < 16 {
			continue
		}
		seconds := binary.NativeEndian.Uint64(messages[0].Data)
		now := int64(seconds)*1e9 + int64(binary.NativeEndian.Uint64(messages[0].Data[8:]))
		number := int64(binary.BigEndian.Uint64(payload[8:]))
		p := hashing.Word(uint64(f.side)+100, binary.BigEndian.Uint64(payload))
		f.mu.Lock()
		f.ring[number%8].down.Update(p, f.stamp(now, f.side == 0))
		f.ring[number%8].trueDown.Update(p, now)
		f.mu.Unlock()
	}
}
