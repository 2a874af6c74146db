package figlda

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var quick = &experiment.Run{Seed: 1, Quick: true}

func passage(t *testing.T, law Law, share, burst float64) *Passage {
	t.Helper()
	tr := NewTrace(quick, law)
	p := tr.Lose(quick, share, burst)
	return p
}

// Without loss, an aggregator that samples every packet gives the mean of the
// trace to the last bit; with a packet lost, it does not.
func TestExact(t *testing.T) {
	p := passage(t, Laws[0], 0, 0)
	c := lda.Config{SumBits: sumBits}
	c.Banks[0].Rows = rows
	estimated := func() estimate.Delay {
		up, down := p.Measure(c, 1)
		r, err := lda.Estimate(up, down)
		if err != nil {
			t.Fatal(err)
		}
		return r.Delay
	}
	var sum int64
	for _, d := range p.Delays {
		sum += int64(d)
	}
	exact := float64(sum) / quickSize
	if d := estimated(); d.N != quickSize || math.Abs(d.Mean-exact) > 1e-9*exact || math.Abs(p.Truth.Mean-exact) > 1e-9*exact {
		t.Errorf("mean %v of %d packets, truth %v, want %v of %d", d.Mean, d.N, p.Truth.Mean, exact, quickSize)
	}
	p.Lost[7] = true
	if d := estimated(); d.N == quickSize || d.Mean == exact {
		t.Errorf("mean %v of %d packets although one was lost", d.Mean, d.N)
	}
}

// The delays have the moments of their laws, those that the paper gives: a
// mean of 200 ns and, for Weibull 0.6, a deviation of 0.35 µs. The tolerance
// is five standard errors.
func TestLaws(t *testing.T) {
	for _, law := range Laws {
		p := passage(t, law, 0, 0)
		deviation := mustDraw(t, law).StdDev()
		tolerance := 5 * deviation / math.Sqrt(quickSize)
		if math.Abs(p.Truth.Mean-meanDelay) > tolerance {
			t.Errorf("%s: mean %v ns, want %v ± %v", law.Name, p.Truth.Mean, meanDelay, tolerance)
		}
		if off := p.Truth.Mean*1.02 - meanDelay; off < tolerance {
			t.Errorf("%s: a mean of 2 %% more would pass", law.Name)
		}
	}
	if d := mustDraw(t, Laws[0]).StdDev(); math.Abs(d-350) > 5 {
		t.Errorf("deviation of Weibull 0.6 is %v ns, the paper's 350", d)
	}
}

func mustDraw(t *testing.T, law Law) interface{ StdDev() float64 } {
	t.Helper()
	d := law.draw(1)
	return d
}

// Each way of dividing the cells gives the expected sample. Over ten runs it
// varies by a few per cent at most: whether a cell is usable hardly depends on
// the others, so the sample's relative deviation is below 1/√(usable cells).
// The expectation at twice the loss is rejected.
func TestSample(t *testing.T) {
	p := passage(t, Laws[0], 0.01, 0)
	for _, b := range bankings {
		pt := p.measure(quick, b, runs)
		usable := 0
		for _, r := range pt.results {
			usable += r.Usable
		}
		tolerance := 5 / math.Sqrt(float64(usable))
		if off := estimate.RelativeError(pt.sample.Mean(), pt.expected); off > tolerance {
			t.Errorf("%s: sample %v, expected %v ± %v", b.name, pt.sample.Mean(), pt.expected, tolerance)
		}
		_, presampled := b.config(len(p.Delays), p.Losses)
		wrong := pt.config.Expect(presampled*float64(len(p.Delays)), 2*p.LossRate).Sample
		if estimate.RelativeError(pt.sample.Mean(), wrong) < tolerance {
			t.Errorf("%s: the sample to expect at twice the loss, %v, passes for %v", b.name, wrong, pt.sample.Mean())
		}
	}
}

// The optimal bank samples p = αm/(L+1), exactly.
func TestOptimal(t *testing.T) {
	c, p := bankings[0].config(1_000_000, 1023)
	if p != 0.5 || c.Banks[0] != (lda.Bank{Rows: 1024}) {
		t.Errorf("p = %v, banks %v", p, c.Banks)
	}
	if _, p := bankings[0].config(1_000_000, 10); p != 1 {
		t.Errorf("p = %v with few losses", p)
	}
	for _, b := range bankings {
		sum := 0
		for _, r := range b.rows {
			sum += r
		}
		if sum != rows {
			t.Errorf("%s has %d cells, want %d", b.name, sum, rows)
		}
	}
}

// Episodes lose the share of packets asked for, in runs of 100 on average.
func TestEpisodes(t *testing.T) {
	p := passage(t, Laws[0], 0.1, episode)
	var begun float64
	for i, lost := range p.Lost {
		if lost && (i == 0 || !p.Lost[i-1]) {
			begun++
		}
	}
	mean := float64(p.Losses) / begun
	tolerance := 5 * episode / math.Sqrt(begun) // lengths are geometric: their deviation is about their mean
	if math.Abs(mean-episode) > tolerance || math.Abs(1-episode) < tolerance {
		t.Errorf("episodes of %v packets on average, want %v ± %v", mean, episode, tolerance)
	}
}

// The expected number of probes arrives, and their mean has the expected error:
// the variation over the root of their number, times 0.8 for absolute errors.
func TestProbes(t *testing.T) {
	p := passage(t, Laws[0], 0.2, 0)
	const hertz, trials = 10_000, 100
	pr := p.probes(quick, hertz, trials)
	want := hertz * (1 - p.LossRate)
	if tolerance := 5 * math.Sqrt(want/trials); math.Abs(pr.sample.Mean()-want) > tolerance || hertz-want < tolerance {
		t.Errorf("%v probes arrive, want %v ± %v", pr.sample.Mean(), want, tolerance)
	}
	off := math.Sqrt(2/math.Pi) * p.Truth.StdDev / p.Truth.Mean / math.Sqrt(want)
	if ratio := pr.means.Mean() / off; math.Abs(ratio-1) > 2.5*chance(trials) {
		t.Errorf("average error %v, want %v", pr.means.Mean(), off)
	}
}

// An experiment repeats bit for bit, no other seed gives the same, and it ends
// when it is told to.
func TestRepeats(t *testing.T) {
	results := make([]experiment.Result, 3)
	for i, seed := range []uint64{1, 1, 2} {
		var err error
		if results[i], err = againstProbes.Execute(t.Context(), &experiment.Run{Seed: seed, Quick: true}); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		t.Error("one seed, two results")
	}
	if reflect.DeepEqual(results[0], results[2]) {
		t.Error("two seeds, one result")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, e := range Experiments() {
		if _, err := e.Execute(ctx, &experiment.Run{Seed: 1, Quick: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", e.Name, err)
		}
	}
}
