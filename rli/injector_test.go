package rli_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// distances gives an injector packets some ns apart, and returns how many are from one reference to the next.
func distances(t *testing.T, c rli.InjectorConfig, packets int, apart func(i int) int64) (list []int) {
	t.Helper()
	j := must(rli.NewInjector(c))
	now, last := int64(0), 0
	for i := range packets {
		now += apart(i)
		p, ok := j.Packet(100, now)
		if ok {
			want := rli.ReferencePacket{Sequence: uint64(len(list)), Sent: now, Behind: 100, Packets: uint32(i + 1)}
			if p != want {
				t.Errorf("reference %+v, want %+v", p, want)
			}
			list = append(list, i-last)
			last = i
		} else if i == 0 {
			t.Error("no reference behind the first packet")
		}
	}
	return list[1:]
}

// TestDistances: distances between references average what they should, by number or by time, give or take a
// quarter, and do not keep step with anything: of a hundred flows that take turns every one is hit. The
// negative control is a fixed distance of a hundred.
func TestDistances(t *testing.T) {
	even := func(int) int64 { return 1000 }
	for _, test := range []struct {
		name  string
		c     rli.InjectorConfig
		apart func(i int) int64
		mean  float64
	}{
		{"by number", rli.InjectorConfig{Every: 100}, even, 100},
		{"by time", rli.InjectorConfig{Interval: 100_000}, even, 100},
		{"whichever is first", rli.InjectorConfig{Every: 1000, Interval: 100_000}, even, 100},
		{"by time, in bursts", rli.InjectorConfig{Interval: 100_000}, func(i int) int64 {
			if i%50 > 0 {
				return 10
			}
			return 50_000 - 490
		}, 100},
	} {
		met, sum, at := map[int]bool{}, 0.0, 0
		list := distances(t, test.c, 100_000, test.apart)
		for _, n := range list[1:] { // the first is by time alone
			if float64(n) < 0.7*test.mean || float64(n) > 1.5*test.mean {
				t.Errorf("%s: a distance of %d", test.name, n)
			}
			sum += float64(n)
			at += n
			met[at%100] = true
		}
		// The deviation of a distance is 15, of the mean of 1,000 half a packet.
		if mean := sum / float64(len(list)-1); math.Abs(mean-test.mean) > 0.03*test.mean || len(met) < 100 {
			t.Errorf("%s: %v packets on average, want %v; of 100 flows %d are met", test.name, mean, test.mean, len(met))
		}
	}
	if list := distances(t, rli.InjectorConfig{Every: 3}, 100, even); slices.ContainsFunc(list, func(n int) bool { return n != 3 }) {
		t.Errorf("one in 3: %v", list)
	}
}

// TestAlgorithm1 holds the adaptive injector to the paper's pseudocode, with its names.
func TestAlgorithm1(t *testing.T) {
	c := adaptive()
	j := must(rli.NewInjector(c))
	src := source(t, "flows", 0.72, 9)
	var p queue.Packet
	lc := float64(linkRate) / 8e9 // bytes per ns
	uEst, cb, since := 0.0, 0.0, int64(0)
	distance, passed, references := 10.0, 0.0, 0
	for i := range 200000 {
		src.Next(&p)
		cb += float64(p.Bytes)
		if (i+1)%300 == 0 { // our own rule: at the paper's references, bursts are missed
			uInstant := cb / float64(p.Time-since) / lc
			if uEst == 0 {
				uEst = uInstant
			}
			uEst = uInstant/16 + uEst*15/16
			cb, since = 0, p.Time
			uEff := min(max(uEst, 0.6), 0.85)
			rEff := math.Sqrt(1-math.Pow((0.6-uEff)/(0.85-0.6), 2))*(1.0/10-1.0/300) + 1.0/300
			distance = math.Round(1 / rEff)
		}
		passed += 1 / distance
		_, ok := j.Packet(int(p.Bytes), p.Time)
		if i == 0 {
			cb, since = 0, p.Time
		}
		if !ok {
			continue
		}
		// Give or take a quarter, and a packet.
		if i > 0 && math.Abs(passed-1) > 0.25+1/distance {
			t.Fatalf("packet %d: a reference after %v distances, of %v now", i, passed, distance)
		}
		passed = 0
		references++
	}
	if references < 1000 {
		t.Errorf("%d references", references)
	}
}

func TestInjectorConfig(t *testing.T) {
	ok := rli.InjectorConfig{Every: 1}
	change := func(f func(*rli.InjectorConfig)) rli.InjectorConfig {
		c := adaptive()
		f(&c)
		return c
	}
	for _, c := range []rli.InjectorConfig{ok, adaptive(), {Interval: 1e15}} {
		if _, err := rli.NewInjector(c); err != nil {
			t.Error(err)
		}
	}
	for i, c := range []rli.InjectorConfig{
		{},
		{Every: -1, Interval: 1},
		{Every: 2e9},
		{Interval: -1, Every: 1},
		change(func(c *rli.InjectorConfig) { c.Every = 0 }),
		change(func(c *rli.InjectorConfig) { c.Every = 301 }),
		change(func(c *rli.InjectorConfig) { c.Rate = -1 }),
		change(func(c *rli.InjectorConfig) { c.Rate = 0 }),
		change(func(c *rli.InjectorConfig) { c.Sparse = 2e6 }),
	} {
		if _, err := rli.NewInjector(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("config %d: %v", i, err)
		}
	}
}
