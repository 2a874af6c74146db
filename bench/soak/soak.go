// Package soak runs two points of the front door that follow each other under hostile load for a given time,
// and reports what it tried. It fails on a panic, on an answer that is not a number, and on memory that grows.
//
// Messages are lost, repeated or of impossible times, strangers send damaged
// requests, and one of the points is restarted again and again.
package soak

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
)

// allowance is how much the live heap may grow, in bytes, between the first tenth of a run and its second half, where
// the least counts: what is held for a moment is no leak.
const allowance = 8 << 20

// points are two points of the front door, the near one of which follows the far one.
type points struct {
	near *hoplag.Point
	far  atomic.Pointer[hoplag.Point]

	rounds, messages, requests, refused, restarts int

	mu       sync.Mutex
	recorded []byte // a request of the follower
	reports  int
	wrong    error // in a report
}

// Run runs for the duration, or until the context ends. It logs its progress now and then, and prints to out
// what it tried.
func Run(ctx context.Context, duration time.Duration, seed uint64, out, log io.Writer) (err error) {
	ctx, stop := context.WithTimeout(ctx, duration)
	p := &points{near: newPoint()}
	p.far.Store(newPoint())
	var follower sync.WaitGroup
	follower.Go(func() {
		for r := range p.near.Follow(ctx, p.answer) {
			p.report(&r)
		}
	})
	defer func() {
		stop()
		follower.Wait()
		p.far.Load().Close()
		p.near.Close()
	}()
	random := rand.New(rand.NewPCG(seed, 0x736f616b))
	begun, shown := time.Now(), time.Now()
	early, late := uint64(0), uint64(math.MaxUint64)
	for ctx.Err() == nil {
		if err := p.round(random); err != nil {
			return fmt.Errorf("soak: round %d of seed %d: %w", p.rounds, seed, err)
		}
		if time.Since(shown) < min(10*time.Second, duration/20) {
			continue
		}
		shown = time.Now()
		heap := live()
		if early == 0 || time.Since(begun) < max(duration/10, time.Second) { // sooner nothing is steady
			early = max(early, heap)
		}
		if time.Since(begun) > duration/2 {
			late = min(late, heap)
		}
		fmt.Fprintf(log, "soak %v of %v, %d rounds, %d MiB\n", time.Since(begun).Round(time.Second), duration, p.rounds, heap>>20)
	}
	if late > early+allowance && late < math.MaxUint64 {
		return fmt.Errorf("soak: the heap has grown from %d to at least %d bytes", early, late)
	}
	stop()
	follower.Wait() // it counts reports
	_, err = fmt.Fprintf(out, "%v: %d messages, %d damaged requests of which %d were refused, %d restarts, %d reports; "+
		"live heap %.1f MiB at first and %.1f at the end\n", time.Since(begun).Round(time.Second), p.messages, p.requests, p.refused,
		p.restarts, p.reports, float64(early)/(1<<20), float64(live())/(1<<20))
	return err
}

func newPoint() *hoplag.Point {
	key := hoplag.NewKey("a key of the soak test")
	p, err := hoplag.NewPoint(hoplag.Config{Key: key, Cut: 5 * time.Millisecond, History: 256 << 10, Flows: 100})
	if err != nil {
		panic(err)
	}
	return p
}

// live returns how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// report counts a report, and looks for answers in it that are not numbers.
func (p *points) report(r *hoplag.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports++
	for _, d := range [2]hoplag.Traffic{r.Forth, r.Back} {
		if sum := d.Mean + d.StdDev; math.IsNaN(sum) || math.IsInf(sum, 0) {
			p.wrong = cmp.Or(p.wrong, fmt.Errorf("report %d: the answer is %+v", r.Number, d))
		}
	}
}

// answer passes a request to the far point, and keeps it for strangers to damage.
func (p *points) answer(_ context.Context, request []byte) ([]byte, error) {
	p.mu.Lock()
	p.recorded = bytes.Clone(request)
	p.mu.Unlock()
	return p.far.Load().Answer(request)
}

// round passes messages and sends damaged requests. At every 200th message the far point is restarted, and then
// knows nothing.
func (p *points) round(random *rand.Rand) error {
	if p.rounds++; p.rounds%200 == 0 {
		p.restarts++
		p.far.Swap(newPoint()).Close()
	}
	for range 300 {
		p.message(random)
	}
	p.mu.Lock()
	recorded, wrong := p.recorded, p.wrong
	p.mu.Unlock()
	for range 3 {
		p.requests++
		if _, err := p.far.Load().Answer(damage(random, recorded)); err != nil {
			p.refused++
		}
	}
	return wrong
}

// message passes a message, which may be lost, repeated or of an impossible time.
func (p *points) message(random *rand.Rand) {
	p.messages++
	far, id := p.far.Load(), random.Uint32()
	if random.IntN(3) == 0 {
		id %= 3
	}
	name, flow := []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}, far.Flow([]byte{byte(random.IntN(300))})
	switch random.IntN(20) {
	case 0:
		far.Passed(name)
	case 1:
		p.near.Passed(name)
	case 2:
		at := []int64{math.MinInt64, math.MaxInt64, int64(random.Uint64()), time.Now().UnixNano()}[min(3, random.IntN(1000))]
		far.Record(0, time.Unix(0, at), far.Packet(name))
	default:
		far.Passed(name, flow)
		p.near.Passed(name, flow)
		p.near.Back.Passed(name)
		far.Back.Passed(name)
	}
}

// damage changes some bytes, cuts some off or adds some.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range random.IntN(8) {
		if len(b) > 0 {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		b = b[:random.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(random.Uint32()))
	}
	return b
}
