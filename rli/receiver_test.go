package rli_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

func TestConfig(t *testing.T) {
	change := func(f func(*rli.Config)) rli.Config {
		c := config(rli.BusyAware)
		f(&c)
		return c
	}
	for i, c := range []rli.Config{
		rli.DefaultConfig,
		config(rli.BusyAware), config(rli.Linear), config(rli.Left),
		change(func(c *rli.Config) { c.Buckets, c.Floor = 2, 8 }),
		change(func(c *rli.Config) { c.Rate, c.ReferenceBytes, c.Tolerance = rli.MaxRate, 1<<16, 1e6 }),
		change(func(c *rli.Config) { c.Inactive, c.Active, c.Buckets, c.Floor = 1<<62, 1<<62, 2, rli.MaxFloor }),
	} {
		if _, err := rli.NewReceiver(c); err != nil {
			t.Errorf("config %d: %v", i, err)
		}
	}
	for i, c := range []rli.Config{
		{},
		change(func(c *rli.Config) { c.Method = 4 }),
		change(func(c *rli.Config) { c.Rate = 0 }),
		change(func(c *rli.Config) { c.Rate = -1 }),
		change(func(c *rli.Config) { c.Rate = rli.MaxRate + 1 }),
		change(func(c *rli.Config) { c.ReferenceBytes = 0 }),
		change(func(c *rli.Config) { c.ReferenceBytes = 1<<16 + 1 }),
		change(func(c *rli.Config) { c.Tolerance = 0 }),
		change(func(c *rli.Config) { c.Tolerance = 1e6 + 1 }),
		change(func(c *rli.Config) { c.Buffer = 0 }),
		change(func(c *rli.Config) { c.Buffer = rli.MaxBuffer + 1 }),
		change(func(c *rli.Config) { c.Method = rli.Left }),
		change(func(c *rli.Config) { c.Flows = 0 }),
		change(func(c *rli.Config) { c.Flows = rli.MaxFlows + 1 }),
		change(func(c *rli.Config) { c.Sample = 0 }),
		change(func(c *rli.Config) { c.Sample = math.NaN() }),
		change(func(c *rli.Config) { c.Hold = 1.1 }),
		change(func(c *rli.Config) { c.Inactive = -1 }),
		change(func(c *rli.Config) { c.Active = math.MaxInt64 }),
		change(func(c *rli.Config) { c.Buckets, c.Floor = 1, 8 }),
		change(func(c *rli.Config) { c.Buckets = 8 }),
		change(func(c *rli.Config) { c.Floor = 8 }),
	} {
		if _, err := rli.NewReceiver(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("config %d: %v", i, err)
		}
	}
}

// TestMemorySize: it is what a receiver allocates, but for a few hundred bytes
// and what the allocator adds.
func TestMemorySize(t *testing.T) {
	for i, change := range []func(*rli.Config){
		func(c *rli.Config) {},
		func(c *rli.Config) { c.Flows = 100_000 },
		func(c *rli.Config) { c.Buffer = 100_000 },
		func(c *rli.Config) { c.Method, c.Buffer = rli.Linear, 100_000 },
		func(c *rli.Config) { c.Buckets, c.Floor = 50, 8 },
	} {
		c := config(rli.BusyAware)
		change(&c)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := newReceiver(t, c)
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
		got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(c.MemorySize())
		if got < want || got > 1.1*want+8192 {
			t.Errorf("%d: allocates %v bytes, MemorySize says %v", i, got, want)
		}
	}
}

// TestAuto: the method is the busy-aware one where the rate is known.
func TestAuto(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 5000, source(t, "poisson", 0.5, 1), nil)
	c := config(rli.Auto)
	if r := receive(t, c, events); !r.Trusted() || r.Counts().Idle == 0 {
		t.Errorf("rate known: %+v", r.Counts())
	}
	c.Rate = 0
	if r := receive(t, c, events); r.Trusted() || r.Counts().Linear == 0 {
		t.Errorf("rate not known: %+v", r.Counts())
	}
}

func TestNothing(t *testing.T) {
	r := newReceiver(t, config(rli.BusyAware))
	r.Flush()
	if _, err := r.Estimate(1); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("flow: %v", err)
	}
	if _, err := r.Total(); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("total: %v", err)
	}
	if _, err := r.Quantile(1, 0.5); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("quantile without buckets: %v", err)
	}
	r.Update(1, 100, 1000)
	r.Flush()
	if _, err := r.Estimate(1); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("flow without any reference: %v", err)
	}
	if c := r.Counts(); c.Unestimated != 1 || c.Packets != 1 {
		t.Errorf("%+v", c)
	}
}

// small is a receiver whose rate is not known, so that estimates are plain.
func small(t testing.TB, f func(*rli.Config)) *rli.Receiver {
	c := rli.DefaultConfig
	c.Buffer, c.Flows = 4, 16
	if f != nil {
		f(&c)
	}
	return newReceiver(t, c)
}

func ref(sequence int, sent int64) rli.ReferencePacket {
	return rli.ReferencePacket{Sequence: uint64(sequence), Sent: sent}
}

func wantMean(t *testing.T, r *rli.Receiver, f hashing.Flow, mean float64, n uint64) {
	t.Helper()
	got, err := r.Estimate(f)
	if err != nil || got.Mean != mean || got.N != n {
		t.Errorf("flow %d: %+v, %v; want %v of %d", f, got, err, mean, n)
	}
}

func TestBeforeTheFirstReference(t *testing.T) {
	r := small(t, nil)
	r.Update(1, 100, 1000)
	r.Reference(ref(0, 1400), 1900)
	wantMean(t, r, 1, 500, 1)
	if c := r.Counts(); c.Right != 1 {
		t.Errorf("%+v", c)
	}
	r = small(t, func(c *rli.Config) { c.Method, c.Buffer = rli.Left, 0 })
	r.Update(1, 100, 1000)
	r.Reference(ref(0, 1400), 1900)
	if c := r.Counts(); c.Unestimated != 1 {
		t.Errorf("%+v", c)
	}
}

func TestReferenceBeforeAnyPacket(t *testing.T) {
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear} {
		r := small(t, func(c *rli.Config) { c.Method, c.Rate = m, linkRate })
		r.Reference(ref(0, 0), 100)
		r.Reference(ref(1, 1000), 1300)
		r.Update(1, r.Config().ReferenceBytes, 1800)
		r.Reference(ref(2, 2000), 2300)
		wantMean(t, r, 1, 300, 1)
	}
}

func TestFlush(t *testing.T) {
	r := small(t, nil)
	r.Reference(ref(0, 0), 100)
	r.Update(1, 100, 1000)
	if _, err := r.Estimate(1); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("a packet that waits: %v", err)
	}
	r.Flush()
	wantMean(t, r, 1, 100, 1)
	if c := r.Counts(); c.Left != 1 {
		t.Errorf("%+v", c)
	}
}

// TestOverflow: four packets fill the buffer, the fifth has them estimated.
func TestOverflow(t *testing.T) {
	r := small(t, nil)
	r.Reference(ref(0, 0), 100)
	for i := range 5 {
		r.Update(1, 100, 200+int64(i))
	}
	r.Reference(ref(1, 900), 1204)
	got, _ := r.Estimate(1)
	if want := (4*100 + 118.5); math.Abs(got.Mean*5-want) > 0.5 || got.N != 5 {
		t.Errorf("%+v, want a sum of %v", got, want)
	}
	if c := r.Counts(); c.Overflowed != 4 || c.Left != 4 || c.Linear != 1 {
		t.Errorf("%+v", c)
	}
}

// TestIdleHour: nothing overflows or goes astray, and the packet after an hour
// is between its references.
func TestIdleHour(t *testing.T) {
	const hour = 3600e9
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		events, _ := pass(t, queue.RLIConfig, adaptive(), 5000, source(t, "poisson", 0.5, 1), nil)
		late := events[:len(events):len(events)]
		for _, e := range events {
			e.time += hour
			e.ref.Sent += hour
			e.ref.Sequence += events[len(events)-1].ref.Sequence + 1000
			late = append(late, e)
		}
		r := receive(t, config(m), late)
		var truth, worst float64
		for i := range events {
			truth = max(truth, float64(events[i].delay))
		}
		for _, res := range r.All() {
			worst = max(worst, res.Mean, -res.Mean)
		}
		// The largest packet may take 1.2 µs longer to send than a reference.
		if worst > truth+1200 {
			t.Errorf("%v: a mean of %v, no delay is over %v", m, worst, truth)
		}
		if m == rli.BusyAware && !r.Trusted() {
			t.Errorf("an hour costs the trust: %+v", r.Counts())
		}
	}
}

func TestSequence(t *testing.T) {
	r := small(t, nil)
	at := int64(0)
	give := func(sequence int) {
		at += 1e6
		r.Reference(ref(sequence, 1000*int64(sequence)), at)
	}
	want := func(want rli.Counts) {
		t.Helper()
		if got := r.Counts(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, n := range []int{10, 11, 14} { // 12 and 13 are missing
		give(n)
	}
	want(rli.Counts{References: 3, Lost: 2})
	give(13) // late
	give(14) // again
	give(13) // again
	want(rli.Counts{References: 6, Lost: 1, Reordered: 1, Duplicated: 2})
	give(1000) // far ahead: 985 are missing
	give(900)  // late by more than is remembered, so taken for the first of its number
	give(900)
	want(rli.Counts{References: 9, Lost: 1 + 985 - 2, Reordered: 3, Duplicated: 2})
	r.Reference(ref(0, 2e6), at) // sent later than the larger number: begun anew
	r.Reference(ref(1, 3e6), at)
	want(rli.Counts{References: 11, Lost: 1 + 985 - 2, Reordered: 3, Duplicated: 2, Restarts: 1})
	r = small(t, nil)
	give(10)
	give(10) // the first one again
	want(rli.Counts{References: 2, Duplicated: 1})
}

// TestRestartWithClockBehind: an injector that begins anew with a clock that has
// not been set yet is believed after some of its references.
func TestRestartWithClockBehind(t *testing.T) {
	r := small(t, nil)
	for n := range 100 {
		r.Reference(ref(n, 1e15+int64(n)*1000), 1e15+int64(n)*1000+500)
	}
	begun := 0
	for n := range 100 {
		at := 2e15 + int64(n)*1000
		r.Reference(ref(n, int64(n)*1000), at)
		if begun == 0 && r.Counts().Restarts > 0 {
			begun = n
		}
		if begun > 0 {
			r.Update(1, 100, at)
		}
	}
	r.Flush()
	if res, err := r.Estimate(1); err != nil || res.Mean != 2e15 || begun != 64 || r.Counts().Restarts != 1 {
		t.Errorf("%+v, %v, begun anew at reference %d, %+v", res, err, begun, r.Counts())
	}
}

// TestLateReferenceIsNoReference: packets are estimated as if it had not come.
func TestLateReferenceIsNoReference(t *testing.T) {
	r := small(t, nil)
	r.Reference(ref(0, 0), 1000)
	r.Reference(ref(2, 1000), 2000)
	r.Update(1, 55, 2500)
	r.Reference(ref(1, 0), 2600) // a delay of 2,600
	r.Reference(ref(2, 0), 2700)
	r.Reference(ref(3, 2000), 3000)
	wantMean(t, r, 1, 1000, 1)
}

// TestLostReferences: the receiver does with those that are left.
func TestLostReferences(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 2), nil)
	kept := events[:0]
	lost := uint64(0)
	for i, e := range events {
		if e.kind == reference && e.ref.Sequence%3 == 1 && i < len(events)-100 {
			// The reference was lost behind the link, so that it departed.
			e.kind = cross
			lost++
		}
		kept = append(kept, e)
	}
	r := receive(t, config(rli.BusyAware), kept)
	c := r.Counts()
	if c.Lost != lost || c.Conflicts != 0 || !r.Trusted() {
		t.Errorf("lost %d: %+v", lost, c)
	}
	if busy, linear := medianError(t, r, kept), medianError(t, receive(t, config(rli.Linear), kept), kept); busy > linear/4 {
		t.Errorf("median error %v, of RLI %v", busy, linear)
	}
}

// TestOffset: an offset between the clocks shifts every mean by exactly
// itself, and nothing else.
func TestOffset(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		plain := receive(t, config(m), events)
		for _, offset := range []int64{-5, 1 << 20, -1 << 40} {
			moved := make([]event, len(events))
			copy(moved, events)
			for i := range moved {
				moved[i].ref.Sent -= offset
			}
			r := receive(t, config(m), moved)
			if r.Counts() != plain.Counts() {
				t.Fatalf("%v: %+v, want %+v", m, r.Counts(), plain.Counts())
			}
			for f, want := range plain.All() {
				got, err := r.Estimate(f)
				want.Mean += float64(offset)
				// The means are sums of an integer and a fraction: their error
				// is that of one addition of numbers of the offset's size.
				exact := math.Abs(got.Mean-want.Mean) <= math.Abs(want.Mean)*0x1p-51
				got.Mean = want.Mean
				if err != nil || !exact || got != want {
					t.Fatalf("%v, offset %d: %+v, want %+v", m, offset, got, want)
				}
			}
		}
	}
}

// TestClockStepped: a clock that is stepped by years spoils the interval in which
// it is, and none after.
func TestClockStepped(t *testing.T) {
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		for _, step := range []int64{0, 1 << 52, -1 << 52} { // of which two thousand do not fit
			r := small(t, func(c *rli.Config) {
				c.Method, c.Rate = m, 1e9
				if m == rli.Left {
					c.Buffer = 0
				}
			})
			at, sequence, offset := int64(0), uint64(0), int64(0)
			interval := func() {
				r.Reset()
				for range 5000 {
					at += 1e6
					r.Update(1, r.Config().ReferenceBytes, at)
					at += 1e6
					r.Reference(rli.ReferencePacket{Sequence: sequence, Sent: at - 777 - offset}, at)
					sequence++
				}
				r.Flush()
			}
			interval()
			before := newReceiver(t, r.Config())
			if err := before.Merge(r); err != nil {
				t.Fatal(err)
			}
			offset = step
			interval()
			interval()
			total, err := r.Total()
			flow, errFlow := r.Estimate(1)
			collected := small(t, func(c *rli.Config) { *c = r.Config() })
			if err := collected.Merge(before); err != nil {
				t.Fatal(err)
			}
			collected.Reset()
			if err := collected.Merge(r); err != nil {
				t.Fatal(err)
			}
			if got, err := collected.Total(); got != total || err != nil {
				t.Errorf("%v, step %d: merged %+v, %v, want %+v", m, step, got, err, total)
			}
			if err != nil || errFlow != nil || total != flow || flow.N != 5000 || flow.Mean != float64(777+offset) || flow.StdDev != 0 {
				t.Errorf("%v, step %d: %+v, %v; %+v, %v", m, step, flow, errFlow, total, err)
			}
		}
	}
}

// TestOneRecordOfAll: the total is what one flow of all packets is.
func TestOneRecordOfAll(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	total, err := receive(t, config(rli.BusyAware), events).Total()
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		events[i].flow = 7
	}
	one, err := receive(t, config(rli.BusyAware), events).Estimate(7)
	if err != nil || one != total {
		t.Errorf("%+v, %v; the total is %+v", one, err, total)
	}
}

// shards splits the measured packets of events by flow; each shard is told of
// the others as cross traffic.
func shards(events []event, n uint64) [][]event {
	all := make([][]event, n)
	for k := range all {
		all[k] = append(all[k], events...)
		for i := range all[k] {
			if e := &all[k][i]; e.kind == measured && uint64(e.flow)%n != uint64(k) {
				e.kind = cross
			}
		}
	}
	return all
}

// TestMergeOrder: in whatever order receivers are merged, the encoding is the
// same to the last byte, though each has another delay as its origin.
func TestMergeOrder(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	c := config(rli.BusyAware)
	c.Buckets, c.Floor = 100, 16
	var parts []*rli.Receiver
	for k, mine := range shards(events, 3) {
		parts = append(parts, receive(t, c, mine[100*k:]))
	}
	encode := func(order ...int) string {
		r := newReceiver(t, c)
		for _, k := range order {
			if err := r.Merge(parts[k]); err != nil {
				t.Fatal(err)
			}
		}
		b, err := r.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := encode(0, 1, 2)
	for _, order := range [][]int{{2, 1, 0}, {1, 0, 2}} {
		if encode(order...) != want {
			t.Errorf("merged in order %v it is another encoding", order)
		}
	}
	other := c
	other.Seed++
	if err := parts[0].Merge(newReceiver(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("other configuration: %v", err)
	}
}

// TestMerge: receivers that measure parts of the flows say together what one
// says of all.
func TestMerge(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 5000, source(t, "flows", 0.7, 2), nil)
	whole := receive(t, config(rli.BusyAware), events)
	merged := newReceiver(t, config(rli.BusyAware))
	for _, mine := range shards(events, 4) {
		if err := merged.Merge(receive(t, config(rli.BusyAware), mine)); err != nil {
			t.Fatal(err)
		}
	}
	for f, want := range whole.All() {
		if got, err := merged.Estimate(f); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	got, _ := merged.Total()
	if want, _ := whole.Total(); got != want {
		t.Errorf("total %+v, want %+v", got, want)
	}
	// Every shard was told of every packet and reference.
	counts, one := merged.Counts(), whole.Counts()
	if counts.Packets != one.Packets || counts.Passed != 3*one.Packets+4*one.Passed || counts.References != 4*one.References {
		t.Errorf("counts %+v, want those of 4 shards of %+v", counts, one)
	}
}

// TestReset: an interval after another is measured as if by a receiver that
// knows the link.
func TestReset(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 2), nil)
	half := len(events) / 2
	r := newReceiver(t, config(rli.BusyAware))
	tell(r, events[:half])
	r.Flush()
	r.Reset()
	if r.Flows() != 0 || r.Counts() != (rli.Counts{}) || !r.Trusted() {
		t.Errorf("%d flows, %+v", r.Flows(), r.Counts())
	}
	tell(r, events[half:])
	if c := r.Counts(); c.Linear != 0 || c.Idle == 0 {
		t.Errorf("%+v", c)
	}
}

// TestAllocations: nothing allocates but iterators and encoders.
func TestAllocations(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "flows", 0.7, 3), nil)
	c := config(rli.BusyAware)
	c.Buckets, c.Floor = 64, 16
	r := newReceiver(t, c)
	other := receive(t, c, events)
	flow := events[0].flow
	i := 0
	for name, f := range map[string]func(){
		"tell": func() {
			for range 100 {
				tell(r, events[i:i+1])
				i = (i + 1) % len(events)
			}
		},
		"estimate": func() { _, _ = other.Estimate(flow) },
		"quantile": func() { _, _ = other.Quantile(flow, 0.9) },
		"total":    func() { _, _ = other.Total() },
		"merge":    func() { _ = r.Merge(other) },
		"flush":    r.Flush,
		"reset":    r.Reset,
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestDeviation: the deviation is that of the estimated delays, whatever the
// offset of the clocks.
func TestDeviation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	r := small(t, func(c *rli.Config) { c.Method, c.Buffer = rli.Left, 0 })
	var m estimate.Moments
	for i := range 1000 {
		at, delay := int64(i)*1000+1<<50, random.Int64N(500)
		r.Reference(ref(i, at-delay-1<<55), at)
		r.Update(3, 100, at+1)
		m.Add(float64(delay))
	}
	got, err := r.Estimate(3)
	if want := math.Sqrt(m.PopulationVariance()); err != nil || math.Abs(got.StdDev-want) > 1e-9*want {
		t.Errorf("%+v, %v; want a deviation of %v", got, err, want)
	}
}
