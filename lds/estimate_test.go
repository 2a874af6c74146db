package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// slowEstimate is Fig. 6, with bounds of what sampled counts stand for, over slow sketches. Unlike the paper's
// text for a flow with empty cells, which would divide by zero, it passes them over.
func slowEstimate(up, down *slowSketch, f hashing.Flow) (mean float64, ok bool) {
	type candidate struct{ S, N, stands float64 }
	var cells []candidate
	least := math.Inf(1)
	for i := range up.Rows {
		for offset := range up.Spread {
			at := [2]int{i, (up.home(i, f) + offset) % up.Columns}
			a, b := up.cells[at], down.cells[at]
			if a.N == 0 || a.N != b.N || (a.D-b.D)%(1<<up.DigestBits) != 0 {
				continue
			}
			sum := float64(b.S - a.S)
			cells = append(cells, candidate{sum, float64(a.N), atMost(float64(a.N), up.Rates[i])})
			least = min(least, atMost(float64(a.N), up.Rates[i]))
		}
	}
	var S, N float64
	for _, c := range cells {
		if c.stands <= (1+up.Tolerance)*least {
			S += c.S
			N += c.N
		}
	}
	return S / N, N > 0
}

// Estimates are those of Fig. 6, also where a clock that is behind makes delays negative, and a flow without a
// sampled packet in a row has none there.
func TestEstimateIsFigure6(t *testing.T) {
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			behind := int64(len(name)%2) * 5_000_000
			stream := packets(11, 2000, 80)
			r := rand.New(rand.NewPCG(11, 2))
			slowUp, slowDown := &slowSketch{c, map[[2]int]slowCell{}}, &slowSketch{c, map[[2]int]slowCell{}}
			for i := range stream {
				p := &stream[i]
				p.lost, p.delay = r.Float64() < 0.02, p.delay-behind
				slowUp.update(*p, p.sent)
				if !p.lost {
					slowDown.update(*p, p.sent+p.delay)
				}
			}
			up, down := fill(t, c, stream)
			answered := 0
			for i := range uint64(160) { // half of them had no packet
				f := hashing.Flow(hashing.Word(1, i))
				want, ok := slowEstimate(slowUp, slowDown, f)
				got, err := Estimate(up, down, f)
				absent := up.Packets(f) == 0
				if errors.Is(err, errAbsent) && absent || errors.Is(err, errUnlike) && !ok {
					continue
				}
				if err != nil || !ok || absent || math.Abs(got.Mean-want) > 1e-9*math.Abs(want) {
					t.Errorf("flow %d: %+v, %v, want %v, %v", i, got, err, want, ok)
				}
				answered++
			}
			if answered == 0 && c.Columns > 10 {
				t.Error("no flow was estimated")
			}
		})
	}
}

// alone is a flow by itself, of n packets of the given delays.
func alone(n int, delay func(i int) int64) []passed {
	stream := packets(12, n, 1)
	for i := range stream {
		stream[i].delay = delay(i)
	}
	return stream
}

func TestSumsWrapAtAnyWidth(t *testing.T) {
	// Time stamps of today, in sums that have long wrapped: only the difference must fit.
	for _, bits := range []uint8{20, 33, 48, 64} {
		c := lossless
		c.SumBits, c.GreatestDelay = bits, 5000
		up, down := mustNew(t, c), mustNew(t, c)
		for i := range int64(100) {
			p := hashing.Packet(hashing.Word(1, uint64(i)))
			up.Update(7, p, 1_763_600_000_000_000_000+i)
			down.Update(7, p, 1_763_600_000_000_000_000+i+5000)
		}
		var a, b Sketch
		if err := errors.Join(a.UnmarshalBinary(encode(t, up)), b.UnmarshalBinary(encode(t, down))); err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]*Sketch{{up, down}, {&a, &b}} {
			if got, err := Estimate(pair[0], pair[1], 7); err != nil || got.Mean != 5000 {
				t.Errorf("%d bits: %+v, %v", bits, got, err)
			}
		}
	}
}

// A cell with more packets than its sum is wide enough for does not count; without another there is no answer.
// Clocks may be an hour apart.
func TestSumsThatMayHaveWrappedAreRefused(t *testing.T) {
	c := lossless
	c.SumBits = 48
	up, down := mustNew(t, c), mustNew(t, c)
	up.updateGeneral(1, 2, 0, 1e7) // as many packets of 20 ms
	down.updateGeneral(1, 2, 20e6*1e7, 1e7)
	if r, err := Estimate(up, down, 1); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("%+v, %v", r, err)
	}
	flows := []joint.FlowRecord{{Flow: 1, Packets: 1e7}}
	if r, err := Decode(t.Context(), up, down, flows, joint.Options{}); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("%+v, %v", r, err)
	}
	const hour = 3600e9
	up.Reset()
	down.Reset()
	for i := range uint64(51) {
		f := hashing.Flow(hashing.Word(1, min(i, 1))) // a packet, and fifty
		up.Update(f, hashing.Word(2, i), 0)
		down.Update(f, hashing.Word(2, i), hour+1000)
	}
	f := hashing.Flow(hashing.Word(1, 1))
	decoded, err := Decode(t.Context(), up, down, []joint.FlowRecord{{Flow: f, Packets: 50}}, joint.Options{})
	if err != nil || math.Abs(decoded.Mean[0]-hour-1000) > 1 {
		t.Errorf("%+v, %v", decoded, err)
	}
}

func TestLossIsNamed(t *testing.T) {
	// The last packet is late, and one of the interval before comes in its place: counts agree, and one cell or two of five are spoilt.
	c, stream := shapes()["spread"], alone(1000, func(int) int64 { return 777 })
	up, _ := fill(t, c, stream[1:])
	_, down := fill(t, c, stream[:999])
	got, err := Estimate(up, down, stream[0].flow)
	if err != nil || got.Mean != 777 || got.Usable > c.Rows*4 || got.Usable < c.Rows*3 {
		t.Errorf("%+v, %v", got, err)
	}
	// A packet that is lost spoils one of five in each row, and the rest are exact.
	stream[500].lost = true
	up, down = fill(t, c, stream)
	got, err = Estimate(up, down, stream[0].flow)
	if err != nil || got.Mean != 777 || got.Usable != c.Rows*4 || got.Lost != 1 || got.Sent != 1000 || got.Received != 999 {
		t.Errorf("%+v, %v", got, err)
	}
	up, down = fill(t, shapes()["plain"], stream) // without a spread nothing is left
	got, err = Estimate(up, down, stream[0].flow)
	if !errors.Is(err, errUnlike) || got != (Result{Sent: 1000, Received: 999, Lost: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDeviation measures a flow alone with a spread of 64: the pooled variance over rows is unbiased, and with M degrees of freedom the
// mean of n runs has a relative deviation of at most √((2+κ)/M/n) or so, κ the excess kurtosis of a cell's sum, which is small.
func TestDeviation(t *testing.T) {
	const runs, perRun, sigma = 40, 20000, 5000.0
	c := Config{Rows: 2, Columns: 64, Spread: 64, Rates: [MaxRows]float64{1, 1}, Tolerance: 1000, SumBits: 48, DigestBits: 16}
	r, ratio := rand.New(rand.NewPCG(14, 14)), 0.0
	for range runs {
		up, down := mustNew(t, c), mustNew(t, c)
		for range perRun {
			p := hashing.Packet(r.Uint64())
			up.Update(1, p, 0)
			down.Update(1, p, int64(1e6+sigma*(r.ExpFloat64())))
		}
		got, err := Estimate(up, down, 1)
		if err != nil || got.DegreesOfFreedom != 2*63 {
			t.Fatalf("%+v, %v", got, err)
		}
		ratio += got.StdDev * got.StdDev / (sigma * sigma) / runs
	}
	// The rows hold the same packets: they count as one. 5 deviations: a false alarm in 1.7 million.
	z := func(ratio float64) float64 { return math.Abs(ratio-1) / math.Sqrt(2.0/63/runs) }
	if z(ratio) > 5 || z(1.15*1.15*ratio) <= 5 {
		t.Errorf("the variance is off by %.1f of its deviations; if 15 %% larger by %.1f", z(ratio), z(1.15*1.15*ratio))
	}
}

// Over rows that see all, Packets bounds a flow's packets from above, and Lost its own losses.
func TestPacketsAreUpperBounds(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["plain"]
		c.Spread = spread
		stream, r := packets(21, 5000, 300), rand.New(rand.NewPCG(24, 2))
		exact, sizes, missing := 0, map[hashing.Flow]uint64{}, map[hashing.Flow]uint64{}
		for i := range stream {
			p := &stream[i]
			if sizes[p.flow]++; r.Float64() < 0.05 {
				p.lost = true
				missing[p.flow]++
			}
		}
		up, down := fill(t, c, stream)
		for f, n := range sizes {
			got, ofLost := up.Packets(f), lost(up, down, f)
			if r, err := Estimate(up, down, f); got < n || ofLost < missing[f] || err == nil && r.Lost != ofLost {
				t.Errorf("%d packets for %d, %d lost for %d, %+v", got, n, ofLost, missing[f], r)
			}
			if got == n {
				exact++
			}
		}
		if exact == 0 && spread == 1 {
			t.Error("no flow is alone in a row: the test shows nothing")
		}
	}
}

// A flow that did not pass seems to have sent one packet where a cell of its lost one of another flow. If packets of
// others come twice, nothing is known of its mean, and no number is NaN.
func TestCopiesAndAFlowThatDidNotCome(t *testing.T) {
	c := Config{Rows: 2, Columns: 8, Spread: 1, Rates: [MaxRows]float64{1, 1}, SumBits: 56, DigestBits: 16}
	up, down, none := mustNew(t, c), mustNew(t, c), 0
	for i := range 40 {
		f, p, at := hashing.Flow(hashing.Mix(uint64(i%5), 1)), hashing.Packet(hashing.Mix(uint64(i), 2)), int64(1e6*i)
		up.Update(f, p, at)
		for range 1 + i/38 {
			down.Update(f, p, at+5e6)
		}
	}
	up.Update(hashing.Flow(hashing.Mix(9, 1)), 1, 1e6)
	up.SetInterval(1, 0)
	down.SetInterval(1, 0)
	for i := range uint64(100) {
		r, err := Estimate(up, down, hashing.Flow(hashing.Mix(i, 3)))
		if i := r.MeanInterval(0.95); err == nil && r.Received == 0 && r.Sent == 1 {
			if none++; math.IsNaN(r.Late) || !(i.Low <= i.High) {
				t.Errorf("%+v: %v", r, i)
			}
		}
	}
	if none == 0 {
		t.Error("no flow has a cell that tells of others, and one that lost a packet")
	}
}
