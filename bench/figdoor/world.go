package figdoor

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/heap"
)

// A setting is one world: two points, the traffic between them, their clocks and what goes wrong.
type setting struct {
	Ways   string  // one or two
	Clock  string  // of the first point
	Rate   float64 // messages a second
	Path   string
	Fault  string
	Loss   string
	Seed   uint64
	Length int // seconds
}

// The levels of each factor.
var (
	ways   = []string{"one", "two"}
	clocks = []string{"agree", "same", "1 ms", "1 s", "1 day", "50 ppm", "500 ppm", "2000 ppm", "step"}
	rates  = []float64{0.5, 3, 30, 1000, 10_000}
	paths  = []string{"even", "0.1 ms", "2 ms", "20 ms", "standing queue", "80 ms", "300 ms"}
	faults = []string{"none", "slow body", "slow exchanges", "failing", "truncated", "restart there", "restart here", "pause", "busy"}
	losses = []string{"0", "0.1 %", "1 %", "10 %", "bursts"}
)

// An outcome is what the reports of a setting say, against the truth.
type outcome struct {
	Setting                            setting
	Reports, Idle, Silent, Refused     int       // of both ways
	Answered, Unbounded, Missed, Wrong int       // with a mean; of these, without an upper end; the truth outside; the certain interval wrong
	Whole, Sampled, Clock              widths    // of means, and what sampling adds to these, and the clock
	Relative, Assumed                  []float64 // half widths over the mean, and the clock's over what the assumed asymmetry leaves
	SaidLost, Lost, SaidSent, Sent     uint64
	Unlike                             int // reports whose loss is beyond chance, where losses are even
}

// widths are half widths, and the errors of what they belong to.
type widths [][2]float64

// sharp is the median width over the median error, or over 1 ns if that is more.
func (w widths) sharp() float64 {
	var all [2][]float64
	for _, x := range w {
		all[0], all[1] = append(all[0], x[0]), append(all[1], math.Abs(x[1]))
	}
	return median(all[0]) / max(median(all[1]), 1)
}

// A clock is a machine's.
type clock struct {
	since time.Time
	rate  float64
	ahead atomic.Int64
}

// Now returns what the clock shows.
func (c *clock) Now() time.Time {
	now := time.Now().Round(0)
	return now.Add(time.Duration(c.ahead.Load()) + time.Duration(c.rate*float64(now.Sub(c.since))))
}

// A passage is one message, at one of the points or on its way.
type passage struct {
	at   time.Time
	id   uint64
	back bool
	far  bool // it arrives
	sent time.Time
}

// Before orders passages by time.
func (p passage) Before(o passage) bool { return p.at.Before(o.at) }

// An arrival is the truth about a message.
type arrival struct {
	at    time.Time
	shown time.Time // by the clock of the point that it arrives at
	delay float64
}

// A world is a setting that runs.
type world struct {
	setting
	config  hoplag.Config
	random  *rand.Rand
	first   atomic.Pointer[hoplag.Point]
	second  atomic.Pointer[hoplag.Point]
	far     *clock // the first point's
	near    *clock // and the second one's, which is right
	began   time.Time
	bad     bool // losses come in a burst
	resume  time.Time
	mu      sync.Mutex
	arrived [2][]arrival
	lost    uint64
	sent    uint64
}

const (
	least  = 5 * time.Millisecond // of the path
	queued = 5 * time.Millisecond // more on average
)

func newWorld(s setting) *world {
	w := &world{setting: s, random: rand.New(rand.NewPCG(s.Seed, 77)), began: time.Now().Round(0), far: &clock{since: time.Now().Round(0)}}
	w.near = &clock{since: w.began}
	w.config = hoplag.Config{Key: hoplag.NewKey("a key of an experiment"), ClocksAgree: s.Clock == "agree"}
	w.far.ahead.Store(map[string]int64{"1 ms": 1e6, "1 s": 1e9, "1 day": 86_400e9}[s.Clock])
	w.far.rate = map[string]float64{"50 ppm": 50e-6, "500 ppm": 500e-6, "2000 ppm": 2e-3}[s.Clock]
	if s.Path == "20 ms" { // five times as long one way: more than is assumed unless it is said
		w.config.Asymmetry = 20 * time.Millisecond
	}
	return w
}

func (w *world) newPoint(name string, c *clock) *hoplag.Point {
	config := w.config
	config.Name, config.Clock = name, c
	p, err := hoplag.NewPoint(config)
	if err != nil {
		panic(err)
	}
	return p
}

// delay is how long a message is on its way.
func (w *world) delay(back bool) time.Duration {
	d := least + time.Duration(w.random.ExpFloat64()*float64(queued))
	switch {
	case back && w.Path == "0.1 ms":
		d += 100 * time.Microsecond
	case back && w.Path == "2 ms":
		d += 2 * time.Millisecond
	case back && w.Path == "20 ms":
		d += 20 * time.Millisecond
	case !back && w.Path == "standing queue":
		d += 8 * time.Millisecond
	case w.Path == "80 ms":
		d = least + time.Duration(w.random.ExpFloat64()*80e6)
	case w.Path == "300 ms":
		d = 100*time.Millisecond + time.Duration(w.random.ExpFloat64()*200e6)
	}
	return d
}

// loses decides whether a message is lost.
func (w *world) loses() bool {
	if w.Loss == "bursts" { // of five messages on average, 1 % in all
		if w.bad {
			w.bad = w.random.Float64() > 0.2
		} else {
			w.bad = w.random.Float64() < 0.002
		}
		return w.bad
	}
	return w.random.Float64() < even[w.Loss]
}

// even are the shares of losses that do not come in bursts.
var even = map[string]float64{"0.1 %": 0.001, "1 %": 0.01, "10 %": 0.1}

// traffic sends messages until the end, and tells the points.
func (w *world) traffic(ctx context.Context) {
	var due heap.Heap[passage]
	due.Push(passage{at: time.Now()})
	if w.Ways == "two" {
		due.Push(passage{at: time.Now(), back: true})
	}
	for ctx.Err() == nil {
		p := due.Pop()
		if now := time.Now(); p.at.Before(w.resume) {
			p.at = w.resume
			due.Push(p)
			continue
		} else if p.at.After(now) {
			time.Sleep(p.at.Sub(now))
		}
		w.pass(&p)
		if p.far {
			w.mu.Lock()
			i := map[bool]int{true: 1}[p.back]
			w.arrived[i] = append(w.arrived[i], arrival{p.at, []*clock{w.near, w.far}[i].Now(), float64(p.at.Sub(p.sent))})
			w.mu.Unlock()
			continue
		}
		w.sent++
		if w.loses() {
			w.lost++
		} else {
			due.Push(passage{at: p.at.Add(w.delay(p.back)), id: p.id, back: p.back, far: true, sent: p.at})
		}
		due.Push(passage{at: p.at.Add(time.Duration(w.random.ExpFloat64() / w.Rate * 1e9)), id: w.random.Uint64(), back: p.back})
	}
}

// pass tells the point that a message passes. On a busy host every other goroutine waits after reading the
// clock.
func (w *world) pass(p *passage) {
	here, clock := w.first.Load(), w.far
	if p.far != p.back {
		here, clock = w.second.Load(), w.near
	}
	direction := here.Direction
	if p.back {
		direction = here.Back
	}
	if w.Fault != "busy" || w.random.IntN(2) == 0 {
		direction.PassedNumber(p.id)
		return
	}
	stamp, packet := clock.Now(), direction.Packet(binary.LittleEndian.AppendUint64(nil, p.id))
	time.AfterFunc(time.Duration(w.random.ExpFloat64()*50e6), func() { direction.Record(0, stamp, packet) })
}

// exchange carries a request to the first point.
func (w *world) exchange(random *rand.Rand) func(context.Context, []byte) ([]byte, error) {
	wait := func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return ctx.Err()
	}
	return func(ctx context.Context, request []byte) ([]byte, error) {
		there, home := least+time.Duration(random.ExpFloat64()*1e6), least+time.Duration(random.ExpFloat64()*3e6)
		if w.Fault == "slow exchanges" && random.IntN(10) == 0 {
			home += time.Duration(random.Float64() * 10e9)
		}
		if w.Fault == "failing" && random.IntN(10) != 0 {
			return nil, errors.New("no route")
		}
		if err := wait(ctx, there); err != nil {
			return nil, err
		}
		reply, err := w.first.Load().Answer(request)
		if err == nil {
			err = wait(ctx, home)
		}
		if w.Fault == "truncated" && random.IntN(2) == 0 && err == nil {
			reply = reply[:random.IntN(len(reply))]
		}
		return reply, err
	}
}

// run runs the setting in a bubble of virtual time.
func run(s setting) outcome {
	w := newWorld(s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.Length)*time.Second)
	defer cancel()
	w.first.Store(w.newPoint("first", w.far))
	w.second.Store(w.newPoint("second", w.near))
	defer func() {
		w.first.Load().Close()
		w.second.Load().Close()
	}()
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() { w.traffic(ctx) })
	half := time.Duration(s.Length) * time.Second / 2
	switch {
	case s.Clock == "step":
		time.AfterFunc(half+40*time.Millisecond, func() { w.far.ahead.Add(37e6) })
	case s.Fault == "restart there":
		time.AfterFunc(half+40*time.Millisecond, func() { w.first.Swap(w.newPoint("first", w.far)).Close() })
	}
	var reports []hoplag.Report
	follow := func(ctx context.Context) {
		body := 0
		random := rand.New(rand.NewPCG(s.Seed, 78))
		for r := range w.second.Load().Follow(ctx, w.exchange(random)) {
			reports = append(reports, r)
			body++
			switch {
			case s.Fault == "slow body":
				time.Sleep(1500 * time.Millisecond)
			case s.Fault == "busy":
				time.Sleep(time.Duration(random.ExpFloat64() * 1e9))
			case s.Fault == "pause" && body == s.Length/3:
				length := time.Duration(0.5e9 + random.Float64()*float64(s.Length)/4*1e9)
				w.resume = time.Now().Add(length)
				time.Sleep(length)
			}
		}
	}
	if s.Fault == "restart here" {
		some, stop := context.WithTimeout(ctx, half)
		follow(some)
		stop()
		w.second.Swap(w.newPoint("second", w.near)).Close()
	}
	follow(ctx)
	cancel()
	done.Wait()
	return w.judge(reports)
}

// judge compares reports with the truth.
func (w *world) judge(reports []hoplag.Report) outcome {
	o := outcome{Setting: w.setting, Lost: w.lost, Sent: w.sent}
	for i := range w.arrived {
		slices.SortFunc(w.arrived[i], func(a, b arrival) int { return a.at.Compare(b.at) })
	}
	for _, r := range reports {
		for i, d := range [2]hoplag.Traffic{r.Forth, r.Back} {
			if i == 1 && w.Ways == "one" {
				continue
			}
			o.Reports++
			if !r.Begins || d.Lost > 0 { // else it may not be known
				o.SaidLost, o.SaidSent = o.SaidLost+d.Lost, o.SaidSent+d.Sent
				if share, ok := even[w.Loss]; ok {
					expected := share * float64(d.Sent)
					if off := math.Abs(float64(d.Lost) - expected); off > 4*math.Sqrt(expected)+2 {
						o.Unlike++
					}
				}
			}
			if errors.Is(r.Err, hoplag.ErrSilent) && d.Err != nil {
				o.Silent++
				continue
			}
			if errors.Is(d.Err, hoplag.ErrIdle) {
				o.Idle++
				continue
			} else if d.Err != nil {
				o.Refused++
				continue
			}
			truths := w.truth(i, &r, int(d.Received))
			if truths == nil {
				continue
			}
			truth := truths[0]
			o.Answered++
			if !slices.ContainsFunc(truths, d.MeanInterval95.Contains) {
				o.Missed++
			}
			if !slices.ContainsFunc(truths, d.Certain.Contains) {
				o.Wrong++
			}
			if !d.MeanInterval95.Bounded() {
				o.Unbounded++
				continue
			}
			half := (d.MeanInterval95.High - d.MeanInterval95.Low) / 2
			o.Whole = append(o.Whole, [2]float64{half, d.Mean - truth})
			o.Relative = append(o.Relative, half/truth)
			w.apart(&o, &r, half, (d.Mean-truth)*float64(1-2*i)) // the clock's offset has the other sign on the way back
		}
	}
	return o
}

// apart returns what sampling adds to a half width and what the clock adds, including its drift up to a cut's ends.
func (w *world) apart(o *outcome, r *hoplag.Report, half, off float64) {
	k, middle := &r.Clock, r.Start.Add(r.Length/2)
	switch {
	case w.config.ClocksAgree:
		o.Sampled = append(o.Sampled, [2]float64{half, off})
	case r.ClockErr == nil && w.setting.Clock != "step":
		owed := (k.Likely.High-k.Likely.Low)/2 + w.far.rate*float64(50*time.Millisecond)
		ahead := k.Offset - float64(w.far.ahead.Load()) - w.far.rate*float64(middle.Sub(w.began))
		assumed := cmp.Or(float64(w.config.Asymmetry), k.RoundTrip/2) / 2
		if w.Ways == "one" { // exchanges, whose ways may differ by all that they take
			assumed = k.RoundTrip / 2
		}
		o.Sampled = append(o.Sampled, [2]float64{max(0, half-owed), off - ahead})
		o.Clock, o.Assumed = append(o.Clock, [2]float64{owed, ahead}), append(o.Assumed, owed/assumed)
	}
}

// truth is the mean delay of what arrived in a report's time, by the second point's clock, which is right, or
// on the way back in the first point's cuts, which end up to three quarters of a cut sooner or later. Where a
// point begins, what was sent or what arrived before is not counted: then there are two truths.
func (w *world) truth(way int, r *hoplag.Report, received int) (means []float64) {
	const cut = 100 * time.Millisecond
	starts := []time.Time{r.Start}
	if way == 1 {
		i, _ := slices.BinarySearchFunc(w.arrived[1], r.Start, func(a arrival, t time.Time) int { return a.at.Compare(t) })
		if i == len(w.arrived[1]) {
			return nil
		}
		start := r.Start.Add(w.arrived[1][i].shown.Sub(w.arrived[1][i].at))
		starts = []time.Time{start.Round(cut), start.Round(cut).Add(cut), start.Round(cut).Add(-cut)}
		starts = slices.DeleteFunc(starts, func(s time.Time) bool { return s.Sub(start).Abs() > 3*cut/4 })
	}
	for _, from := range starts {
		other := func(a arrival) bool { return a.shown.Before(from) || a.shown.Sub(from) >= r.Length }
		all := slices.DeleteFunc(slices.Clone(w.arrived[way]), other)
		if len(all) == 0 {
			continue
		}
		if r.Begins && received < len(all) {
			sent := func(a arrival) time.Time { return a.at.Add(-time.Duration(a.delay)) }
			means = append(means, meanDelay(all[len(all)-received:]))
			slices.SortFunc(all, func(a, b arrival) int { return sent(b).Compare(sent(a)) })
			all = all[:received]
		}
		means = append(means, meanDelay(all))
	}
	return means
}

func meanDelay(all []arrival) (mean float64) {
	for _, a := range all {
		mean += a.delay / float64(len(all))
	}
	return mean
}

// median returns the middle one.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.SortFunc(x, cmp.Compare)
	return x[len(x)/2]
}
