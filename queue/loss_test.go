package queue

import (
	"math"
	"testing"
)

// runs counts how many losses and episodes a process makes, and adds up the lengths of episodes.
func runs(drop func() bool, packets int) (lost, episodes int, lengths float64) {
	length := 0
	for range packets {
		if drop() {
			lost++
			length++
			continue
		}
		if length > 0 {
			episodes++
			lengths += float64(length)
		}
		length = 0
	}
	return lost, episodes, lengths
}

// sigmas allows false alarms of 1 in 10^6.
const sigmas = 4.9

func TestLossRates(t *testing.T) {
	const packets = 2_000_000
	for _, c := range []LossConfig{
		{Probability: 0.001}, {Probability: 0.3},
		{Probability: 0.01, Burst: 1}, {Probability: 0.02, Burst: 10}, {Probability: 0.1, Burst: 100},
		{Probability: 0.5, Burst: 2}, {Probability: 0.9, Burst: 9},
	} {
		// A two-state chain of correlation r has (1+r)/(1-r) times the variance of independent draws. It goes
		// on losing with probability 1-1/burst and begins to with probability p/(burst(1-p)).
		p, burst := c.Probability, c.Burst
		mean := burst
		r := 0.0
		if burst > 0 {
			r = 1 - 1/burst - p/(burst*(1-p))
		} else {
			mean = 1 / (1 - p)
		}
		// check reports whether a process loses as many packets as it should, in episodes as long as they
		// should be.
		check := func(process LossConfig) (rate, length float64, rateFits, lengthFits bool) {
			lost, episodes, lengths := runs(must(NewLoss(process, 1))(t).Drop, packets)
			rate, length = float64(lost)/packets, lengths/float64(episodes)
			rateFits = math.Abs(rate-p) <= sigmas*math.Sqrt(p*(1-p)/packets*(1+r)/(1-r))
			lengthFits = math.Abs(length-mean) <= sigmas*math.Sqrt(mean*(mean-1)/float64(episodes))+1e-12
			return rate, length, rateFits, lengthFits
		}
		if rate, length, rateFits, lengthFits := check(c); !rateFits || !lengthFits {
			t.Errorf("%+v: lost %v in episodes of %v packets on average, want %v and %v", c, rate, length, p, mean)
		}
		fewer, longer := c, c
		fewer.Probability /= 2
		longer.Burst = 2 * max(burst, 1)
		if rate, _, fits, _ := check(fewer); fits {
			t.Errorf("negative control: %+v passes with half the losses, %v", c, rate)
		}
		if _, length, _, fits := check(longer); fits {
			t.Errorf("negative control: %+v passes with longer episodes, of %v packets", c, length)
		}
	}
}

// A process is as likely to lose the first packet as any other.
func TestLossIsStationary(t *testing.T) {
	const seeds, p = 20_000, 0.1
	for _, burst := range []float64{0, 1, 50} {
		deviations := func(first func(*Loss) bool) float64 {
			lost := 0.0
			for seed := range uint64(seeds) {
				if first(must(NewLoss(LossConfig{Probability: p, Burst: burst}, seed))(t)) {
					lost++
				}
			}
			return (lost - seeds*p) / math.Sqrt(seeds*p*(1-p))
		}
		if z := deviations((*Loss).Drop); math.Abs(z) > sigmas {
			t.Errorf("burst %v: how often the first packet is lost is %.1f deviations off", burst, z)
		}
		if burst == 0 {
			continue // it has no episodes to begin with
		}
		if z := deviations(func(loss *Loss) bool {
			loss.losing = false
			return loss.Drop()
		}); math.Abs(z) <= sigmas {
			t.Errorf("negative control: burst %v passes if it never begins with an episode, %.1f deviations", burst, z)
		}
	}
}
