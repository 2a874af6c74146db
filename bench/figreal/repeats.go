package figreal

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

var oursRepeats = experiment.Experiment{
	Name: "ours-repeats", Title: "Packets that repeat, by groups too small to overfill a cell",
	Claim: "Copies of a packet share its cell. If they are slow or lost more often than others, the sample lacks them and cells scatter " +
		"more than packets do. Both show, and the intervals hold. Packets that do not repeat raise no alarm.",
	Weight: 3, Quick: 1, Measure: measureRepeats,
}

// A repeating is traffic of which some packets repeat. Copies take 150 µs, other
// packets 40, and an exponential 10 µs are added to each.
type repeating struct {
	packets   int     // 0: as many as were captured, with the captured repeats
	group     int     // packets of one identity
	share     float64 // of the packets, that are in such groups
	loss      float64 // of copies
	otherLoss float64
	real      bool // with the captured delays and losses
}

// String names the traffic in a table.
func (s repeating) String() string {
	switch {
	case s.real:
		return "captured delays and losses"
	case s.packets == 0:
		return fmt.Sprintf("captured repeats, of which %s are lost", percent(s.loss))
	case s.group == 1:
		return fmt.Sprintf("%d packets, unique", s.packets)
	}
	return fmt.Sprintf("%d packets, %s in groups of %d, of which %s are lost", s.packets, percent(s.share), s.group, percent(s.loss))
}

var repeatings = []repeating{
	{real: true}, {loss: 0.05, otherLoss: 1e-4}, {},
	{packets: 50_000, group: 10, share: 0.05, loss: 0.05, otherLoss: 1e-4},
	{packets: 200_000, group: 2, share: 0.01},
	{packets: 200_000, group: 5, share: 0.05, loss: 0.05, otherLoss: 1e-4},
	{packets: 200_000, group: 5, share: 0.01, loss: 0.05, otherLoss: 1e-4},
	{packets: 200_000, group: 10, share: 0.05, loss: 0.05, otherLoss: 1e-4},
	{packets: 200_000, group: 10, share: 0.05, loss: 0.02, otherLoss: 1e-4},
	{packets: 200_000, group: 10, share: 0.05, loss: 0.3, otherLoss: 0.01},
	{packets: 200_000, group: 20, share: 0.01, loss: 0.02, otherLoss: 1e-4},
	{packets: 1_000_000, group: 10, share: 0.01, loss: 0.02, otherLoss: 1e-4},
	{packets: 1_000_000, group: 40, share: 0.01, loss: 0.02, otherLoss: 1e-4},
}

// uniques are traffic in which no repeats may be seen.
var uniques = []repeating{
	{packets: 200_000, group: 1, otherLoss: 0.01}, {packets: 200_000, group: 1}, {packets: 50_000, group: 1, otherLoss: 0.05},
	{packets: 100_000, group: 1, otherLoss: 0.2},
}

const sureRepeats = 0.999 // confidence

func measureRepeats(run *experiment.Run) {
	all := identitiesOf(load())
	runs, unique := run.Pick(3, 40), run.Pick(10, 400)/len(uniques)
	run.Notef("Identities are those of captured packets, under a new seed in each of %d runs. Copies take 150 µs, others 40, each and an "+
		"exponential 10 µs more, but for the first row, which has the captured delays. Intervals are of 99.9 %%; those of the mean are also "+
		"judged as if no repeats had been seen.", runs)
	table := run.Table("repeats", fmt.Sprintf("Intervals of 99.9 %% that miss, of %d", runs), "traffic", "mean", "blind",
		"deviation", "error of the mean", "its interval", "deviation is off by", "alarms", "refused")
	missed, alarms := 0, 0
	for _, s := range experiment.Each(run, repeatings) {
		seen := s.measure(run, all, runs)
		table.Row(s.String(), seen.mean, seen.plain, seen.deviation, percent(seen.error),
			fmt.Sprintf("%+.2f to %+.2f %%", 100*seen.low, 100*seen.high), fmt.Sprintf("%+.1f %%", 100*seen.off), seen.alarms, seen.refused)
		missed += seen.mean + seen.deviation
	}
	for _, s := range uniques {
		alarms += s.measure(run, all, unique).alarms
	}
	run.Meets("intervals of 99.9 % of mean and deviation that miss", "0", fmt.Sprint(missed), missed == 0)
	run.Meets(fmt.Sprintf("alarms in %d runs of unique packets", unique*len(uniques)), "0", fmt.Sprint(alarms), alarms == 0)
}

// identities are those of a capture: in order, each once, and how often each
// is there.
type identities struct {
	*capture
	once  []hashing.Packet
	count map[hashing.Packet]int
}

func identitiesOf(c *capture) *identities {
	all := &identities{capture: c, count: map[hashing.Packet]int{}}
	for i := range c.packets {
		id := c.packets[i].id
		if all.count[id]++; all.count[id] == 1 {
			all.once = append(all.once, id)
		}
	}
	return all
}

// each calls f for the packets of a run.
func (all *identities) each(s repeating, seed uint64, f func(id hashing.Packet, sent, delay int64, lost bool)) {
	rng := rand.New(rand.NewPCG(seed, 99))
	emit := func(i int, id hashing.Packet, copied bool) {
		delay, loss := 40e3, s.otherLoss
		if copied {
			delay, loss = 150e3, s.loss
		}
		f(hashing.Word(seed, uint64(id)), 17e17+int64(i)*5000, int64(delay+1e4*rng.ExpFloat64()), rng.Float64() < loss)
	}
	if s.packets == 0 {
		for i := range all.packets {
			if p := &all.packets[i]; s.real {
				f(hashing.Word(seed, uint64(p.id)), p.in, p.out-p.in, p.lost)
			} else {
				emit(i, p.id, all.count[p.id] > 1)
			}
		}
		return
	}
	begins := s.share / float64(s.group) / (1 - s.share + s.share/float64(s.group))
	for i, k := 0, 0; i < s.packets; k++ {
		// Where this needs more packets than were captured, identities begin again
		// under another seed.
		id := hashing.Word(uint64(k/len(all.once)), uint64(all.once[k%len(all.once)]))
		size := 1
		if s.group > 1 && rng.Float64() < begins {
			size = s.group
		}
		for range size {
			emit(i, id, size > 1)
			i++
		}
	}
}

// repeatsSeen is what the runs of a row gave.
type repeatsSeen struct {
	mean, deviation       int // intervals that miss
	plain                 int // of the mean, as if nothing had been seen
	alarms, refused       int
	error, low, high, off float64 // of the mean and its interval, relative, averaged over runs; of the deviation
}

func (s repeating) measure(run *experiment.Run, all *identities, runs int) (seen repeatsSeen) {
	count := func(into *int, is bool) {
		if is {
			*into++
		}
	}
	for k := range runs {
		run.Alive()
		up, down := experiment.Try(lda.New(lda.DefaultConfig)), experiment.Try(lda.New(lda.DefaultConfig))
		var truth estimate.Moments
		all.each(s, run.SeedOf(fmt.Sprint("shipped", s, k)), func(id hashing.Packet, sent, delay int64, lost bool) {
			if up.Update(id, sent); !lost {
				down.Update(id, sent+delay)
				truth.Add(float64(delay))
			}
		})
		r, err := lda.Estimate(up, down)
		if err != nil {
			seen.refused++
			continue
		}
		i, mean, deviation := r.MeanInterval(sureRepeats), truth.Mean(), math.Sqrt(truth.PopulationVariance())
		count(&seen.mean, !i.Contains(mean))
		count(&seen.deviation, !r.DeviationInterval(sureRepeats).Contains(deviation))
		count(&seen.alarms, r.Repeats != lda.Repeats{})
		blind := r
		blind.Repeats = lda.Repeats{}
		count(&seen.plain, !blind.MeanInterval(sureRepeats).Contains(mean))
		seen.error += estimate.RelativeError(r.Mean, mean) / float64(runs)
		seen.low += (i.Low/mean - 1) / float64(runs)
		seen.high += (i.High/mean - 1) / float64(runs)
		seen.off += (r.StdDev/deviation - 1) / float64(runs)
	}
	return seen
}
