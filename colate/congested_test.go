package colate

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// A jam is traffic through a queue that loses only what finds its buffer full,
// so that what is lost is lost when delays are longest: bursts of more than the
// link takes, now and then. Flow 1 has half of the packets, flows 2 to 11 a
// twentieth each, the others are small.
type jam struct {
	rate    float64 // packets a second
	seconds float64
	buffer  float64 // s
	load    float64 // while there is no burst
	burst   float64 // and while there is one
	lasting float64 // s, of a burst
	apart   float64 // s, between them
}

// jams lose some 1 to 12 %.
var jams = []jam{
	{rate: 10_000, seconds: 8, buffer: 0.02, load: 0.7, burst: 1.3, lasting: 0.1, apart: 1},
	{rate: 10_000, seconds: 8, buffer: 0.02, load: 0.7, burst: 2, lasting: 0.05, apart: 0.5},
	{rate: 10_000, seconds: 8, buffer: 0.05, load: 0.7, burst: 1.5, lasting: 0.3, apart: 2},
	{rate: 10_000, seconds: 8, buffer: 0.005, load: 0.9, burst: 1.5, lasting: 0.1, apart: 0.2},
}

// pass returns what is sent, and what of it arrived.
func (j jam) pass(seed uint64) (sent []passage, lost int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	queue, now, until := 0.0, 0.0, 0.0
	next, bursting := j.apart*rng.ExpFloat64(), false
	service := j.load / j.rate // s a packet
	for now < j.seconds {
		rate := j.rate
		if bursting {
			rate *= j.burst / j.load
		}
		gap := rng.ExpFloat64() / rate
		now += gap
		queue = max(queue-gap, 0)
		if !bursting && now > next {
			bursting, until = true, now+j.lasting*(0.5+rng.Float64())
		} else if bursting && now > until {
			bursting, next = false, now+j.apart*rng.ExpFloat64()
		}
		flow := hashing.Flow(0)
		switch x := rng.Float64(); {
		case x < 0.4:
			flow = 1
		case x < 0.8:
			flow = 2 + hashing.Flow(rng.IntN(10))
		default:
			flow = 12 + hashing.Flow(300*rng.Float64()*rng.Float64())
		}
		p := passage{Flow: hashing.Flow(hashing.Mix(uint64(flow)*77, seed)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(now * 1e9)}
		if queue > j.buffer {
			p.Lost = true
			lost++
		} else {
			queue += service
			p.At = p.Sent + int64(queue*1e9)
		}
		sent = append(sent, p)
	}
	return sent, lost
}

// A score counts flows, those with an answer, intervals that hold, deviations that
// are known, and intervals of these that hold.
type score struct{ flows, answers, hits, known, held int }

// ask asks for flow 1, for flows 2 to 11 and for the others, each apart.
func (j jam) ask(t *testing.T, c Config, all []passage) (scores [3]score) {
	w := world{config: c}
	epochs, arrived := w.cut(t, all)
	small := 0
	list := slices.DeleteFunc(traffic.Truths(arrived, 20), func(f truth) bool {
		if f.Packets < uint64(len(arrived)/50) {
			small++
		}
		return f.Packets < uint64(len(arrived)/50) && small > 50
	})
	a := w.follow(t, epochs, recordsOf(list))
	for i, f := range list {
		class := 2
		switch part := float64(f.Packets) / float64(len(arrived)); {
		case part > 0.3:
			class = 0
		case part > 0.02:
			class = 1
		}
		s := &scores[class]
		s.flows++
		r, err := a.ask(i)
		if errors.Is(err, estimate.ErrNoSamples) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s.answers++
		if iv := r.MeanInterval(0.95); iv.Contains(f.Mean) {
			s.hits++
		} else if class < 2 {
			t.Logf("%d packets: a mean of %.4g is not in %.4g", f.Packets, f.Mean, iv)
		}
		if r.StdDev > 0 {
			s.known++
			if iv := r.DeviationInterval(0.95); iv.Contains(f.Deviation) {
				s.held++
			}
		}
	}
	return scores
}

// Where what is lost is lost when delays are longest, the epochs that a flow's
// counters cannot tell of are the worst ones. Intervals hold these too, and those of
// joint decoding.
func TestLostWhenLongest(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	var sum [3]score
	held, decoded, unknown := 0, 0, 0
	for n, j := range jams {
		all, lost := j.pass(uint64(n))
		for oneIn, period := range map[uint32]int64{0: 1e8, 50: 4e8} {
			c := cutAt(period)
			c.Counters, c.OneIn, c.Samples, c.Shift = 1000, oneIn, int(oneIn)*1000, 5
			scores := j.ask(t, c, all)
			t.Logf("%.1f %% lost, one in %d sampled, epochs of %v ms: %+v", 100*float64(lost)/float64(len(all)), oneIn, period/1e6, scores)
			for i, s := range scores {
				sum[i].known += s.known
				sum[i].held += s.held
				sum[i].flows += s.flows
				sum[i].answers += s.answers
				sum[i].hits += s.hits
			}
			c.Period = 2e8
			list, r := world{config: c}.decoded(t, all, recordsOf)
			for i, f := range list {
				if f.Packets >= 1000 && r.Usable[i] == 0 {
					unknown++
				} else if f.Packets >= 1000 {
					decoded++
					if r.MeanInterval(i, 0.95).Contains(f.Mean) {
						held++
					}
				}
			}
		}
	}
	t.Logf("decoded: %d of %d intervals hold, %d flows without an answer", held, decoded, unknown)
	if float64(held) < 0.95*float64(decoded)-shortfall(decoded, 0.95) || unknown > decoded/10 {
		t.Errorf("decoded: %d of %d intervals hold, %d flows without an answer", held, decoded, unknown)
	}
	for _, s := range sum {
		if float64(s.hits) < 0.95*float64(s.answers)-shortfall(s.answers, 0.95) || s.answers < s.flows*6/10 {
			t.Errorf("%d flows, %d answers, %d intervals hold", s.flows, s.answers, s.hits)
		}
		if float64(s.held) < 0.95*float64(s.known)-shortfall(s.known, 0.95) {
			t.Errorf("%d intervals of %d deviations hold", s.held, s.known)
		}
	}
}

// A flow that alone waits and loses, on a way of its own, is not like the others:
// its delays are not told from theirs.
func TestLostAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	const seed = 9
	alone := hashing.Flow(hashing.Mix(77, seed))
	for _, oneIn := range []uint32{0, 50} {
		for _, slow := range []int64{1, 3} { // tenths of the time
			j := jam{rate: 10_000, seconds: 8, buffer: 1, load: 0.5, burst: 0.5, lasting: 1, apart: 1}
			all, _ := j.pass(seed)
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range all {
				if p := &all[i]; p.Flow == alone && p.Sent/1e8%10 < slow {
					p.At = p.Sent + 20e6 + rng.Int64N(5e6)
					p.Lost = rng.Float64() < 0.2
				}
			}
			c := cutAt(1e8)
			c.Counters, c.OneIn, c.Samples, c.Shift = 1000, oneIn, int(oneIn)*1000, 5
			if s := j.ask(t, c, all); s[0].hits < s[0].answers || s[1].answers < s[1].flows {
				t.Errorf("one in %d sampled, slow %d times in ten: %+v", oneIn, slow, s)
			}
			list, r := world{config: c}.decoded(t, all, recordsOf)
			for i, f := range list {
				if interval := r.MeanInterval(i, 0.95); f.Flow == alone && !interval.Contains(f.Mean) {
					t.Errorf("decoded, one in %d sampled, slow %d times in ten: a mean of %v is not in %v", oneIn, slow, f.Mean, interval)
				}
			}
		}
	}
}
