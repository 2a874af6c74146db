package kernel

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// sendUDP sends a given number of datagrams from each of several goroutines.
func (w *wire) sendUDP(senders, each int) error {
	errs := make([]error, senders)
	var group sync.WaitGroup
	for i := range senders {
		group.Go(func() {
			var c net.Conn
			errs[i] = in(w.a, func() (err error) {
				c, err = net.Dial("udp4", "10.99.0.2:6000")
				return err
			})
			for n := 0; n < each && errs[i] == nil; {
				_, err := c.Write([]byte{byte(i), byte(n), byte(n >> 8), byte(n >> 16), 39: 0})
				switch {
				case err == nil:
					n++
				case !errors.Is(err, syscall.ECONNREFUSED): // of an earlier one: this one was not sent
					errs[i] = err
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Rotations lose and double no packet, however many processors send meanwhile, and each is stamped within its
// interval.
func TestRotateLosesNothing(t *testing.T) {
	w := newWire(t, "")
	p := newPoint(t, bootConfig())
	w.attach(t, p, w.a, Egress)
	const senders, each = 4, 30_000
	done := make(chan error, 1)
	go func() { done <- w.sendUDP(senders, each) }()
	var counted uint64
	var began, last int64 // when the rotation before began, and the end that it told
	intervals, stamps := 0, 0
	rotate := func() {
		before, _ := now(systemBoot)
		i, err := p.Rotate()
		if err != nil {
			t.Fatal(err)
		}
		after, _ := now(systemBoot)
		if last != 0 && i.Start != last || i.End < before || i.End > after {
			t.Errorf("interval from %d to %d after one to %d, rotated from %d to %d", i.Start, i.End, last, before, after)
		}
		alone, _ := lda.NewSparse(p.Config().LDA)
		alone.AddPacked(i.Aggregator.AppendPacked(nil, i.Start))
		alone.Singles(func(_ int, _ uint32, stamp uint64) {
			if stamps++; int64(stamp) < began || int64(stamp) > after {
				t.Errorf("a stamp of %d between rotations at %d and %d", stamp, began, after)
			}
		})
		began, last = before, i.End
		r, _ := estimateSelf(i)
		counted += r
		intervals++
		if err := p.Release(i); err != nil {
			t.Fatal(err)
		}
	}
	rotate()
	for running := true; running; rotate() {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
	}
	rotate()
	if counted != senders*each || stamps == 0 {
		t.Errorf("%d packets counted in %d intervals, want %d; %d stamps are known", counted, intervals, senders*each, stamps)
	}
	t.Logf("%d packets in %d intervals, %d stamps", counted, intervals, stamps)
}

// A reader that keeps an interval costs nothing but a longer next one; foreign intervals are refused; a closed
// Point says so.
func TestRelease(t *testing.T) {
	p := newPoint(t, testConfig)
	w := newTwin(t, p, XDP, 1)
	frame := benchFrame()
	first, err := p.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.update(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Rotate(); !errors.Is(err, estimate.ErrBusy) {
			t.Errorf("error %v, want ErrBusy", err)
		}
	}
	if err := p.Release(new(Interval)); !errors.Is(err, estimate.ErrRelease) {
		t.Errorf("a foreign interval: error %v, want ErrRelease", err)
	}
	if err := p.Release(first); err != nil {
		t.Fatal(err)
	}
	second, err := p.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := estimateSelf(second); n != 2 {
		t.Errorf("%d packets after two rotations that found the reader busy, want 2", n)
	}
	p.Close()
	p.Close()
	if _, err := p.Rotate(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("closed: error %v, want EBADF", err)
	}
	if err := p.Attach("lo", Ingress); !errors.Is(err, syscall.EBADF) {
		t.Errorf("closed: error %v, want EBADF", err)
	}
}

func TestAttachErrors(t *testing.T) {
	p := newPoint(t, DefaultConfig)
	if err := p.Attach("no-such-device", Ingress); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("error %v, want ENODEV", err)
	}
	if err := p.Attach("lo", 0); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("error %v, want ErrConfig", err)
	}
}

// Stamps are those of the clock that was asked for.
func TestClocks(t *testing.T) {
	for _, kind := range []Clock{Wall, Boot} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			config := testConfig
			config.Clock = kind
			p := newPoint(t, config)
			run := runner{program: p.loadTest(t, XDP, false, false)}
			before, _ := now(systemBoot)
			if _, err := run.run(benchFrame(), 1); err != nil {
				t.Fatal(err)
			}
			after, _ := now(systemBoot)
			stamp := int64(0) // of the only packet
			for lane := range slices.Chunk(p.memory, p.config.laneSize()/8) {
				for cell := range slices.Chunk(lane[countersSize/8:], cellSize/8) {
					stamp += int64(cell[0])
				}
			}
			if stamp < before || stamp > after {
				t.Errorf("stamp %d, want from %d to %d", stamp, before, after)
			}
			if stamp += p.clock.offset; kind == Wall {
				if now := time.Now().UnixNano(); math.Abs(float64(now-stamp)) > 10e9 {
					t.Errorf("stamp %d at %d", stamp, now)
				}
			}
		})
	}
}

// That the wall clock was set is noticed, once.
func TestClockStep(t *testing.T) {
	p := newPoint(t, testConfig)
	p.clock = clock{kind: Wall}
	if err := p.clock.begin(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := p.clock.check(); err != nil {
			t.Fatalf("nobody set the clock: %v", err)
		}
	}
	p.clock.offset -= 50_000 // as if somebody had set it forward by 50 µs
	i, err := p.Rotate()
	if !errors.Is(err, ErrStep) || i == nil {
		t.Errorf("error %v, want ErrStep", err)
	}
	if err := p.Release(i); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Rotate(); err != nil {
		t.Errorf("the interval after: %v", err)
	}
}

func TestProcessors(t *testing.T) {
	for list, want := range map[string]int{"0\n": 1, "0-3\n": 4, "0-3,8-11\n": 12, "0,5": 6} {
		if n, err := parseProcessors(list); n != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", list, n, err, want)
		}
	}
	for _, list := range []string{"", "a", "0-", "70000"} {
		if n, err := parseProcessors(list); err == nil {
			t.Errorf("%q: %d, want an error", list, n)
		}
	}
}
