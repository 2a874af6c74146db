package figclock

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// setns is the number of the system call, which package syscall lacks.
var setns = map[string]uintptr{"amd64": 308, "arm64": 268}

// A wire is two network namespaces with a veth pair between them, each end's
// egress shaped.
type wire struct {
	names [2]string
	group sync.WaitGroup
}

func newWire(t *testing.T) *wire {
	if os.Geteuid() != 0 || setns[runtime.GOARCH] == 0 {
		t.Skip("needs root, to make network namespaces")
	}
	w := &wire{}
	for i := range w.names {
		w.names[i] = fmt.Sprintf("hoplag-clock-%d-%d", os.Getpid(), i)
	}
	commands := []string{
		"ip netns add " + w.names[0],
		"ip netns add " + w.names[1],
		"ip link add hc0 netns " + w.names[0] + " type veth peer name hc0 netns " + w.names[1],
	}
	for i, name := range w.names {
		commands = append(commands,
			fmt.Sprintf("ip -n %s addr add 10.77.0.%d/24 dev hc0", name, i+1),
			fmt.Sprintf("ip -n %s link set hc0 up", name),
			fmt.Sprintf("tc -n %s qdisc add dev hc0 root tbf rate 20mbit burst 4k latency 50ms", name))
	}
	t.Cleanup(func() {
		for _, name := range w.names {
			_ = exec.Command("ip", "netns", "del", name).Run()
		}
	})
	for _, c := range commands {
		words := strings.Fields(c)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", c, err, out)
		}
	}
	return w
}

// run starts what wait waits for.
func (w *wire) run(f func()) {
	w.group.Add(1)
	go func() {
		defer w.group.Done()
		f()
	}()
}

func (w *wire) wait() { w.group.Wait() }

// An endpoint is a socket in one of the namespaces.
type endpoint struct {
	conn *net.UDPConn
	peer *net.UDPAddr
}

func (w *wire) points(t *testing.T) (near, far *endpoint) {
	ends := [2]*endpoint{}
	for i := range ends {
		address := func(i int) *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(10, 77, 0, byte(i+1)), Port: 7777} }
		ends[i] = &endpoint{peer: address(1 - i)}
		opened := make(chan error)
		go func() {
			// The thread stays in the namespace, and ends with the goroutine.
			runtime.LockOSThread()
			opened <- ends[i].open(w.names[i], address(i))
		}()
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

func (e *endpoint) open(namespace string, address *net.UDPAddr) error {
	f, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, errno := syscall.RawSyscall(setns[runtime.GOARCH], f.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return errno
	}
	if e.conn, err = net.ListenUDP("udp4", address); err != nil {
		return err
	}
	raw, err := e.conn.SyscallConn()
	if err != nil {
		return err
	}
	var option error
	err = raw.Control(func(fd uintptr) {
		option = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
	})
	if err != nil {
		return err
	}
	return option
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
func (f *liveFlow) send(t *testing.T, e *endpoint, done chan struct{}, seed uint64) {
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
			if _, err := e.conn.WriteToUDP(payload[:size], e.peer); err != nil {
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
func (f *liveFlow) receive(e *endpoint) {
	payload, control := make([]byte, 2048), make([]byte, 256)
	for {
		n, c, _, _, err := e.conn.ReadMsgUDP(payload, control)
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
