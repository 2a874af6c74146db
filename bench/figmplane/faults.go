package figmplane

import (
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/lda/mplane"
)

// Faults makes segments slow, and looks for them.
var Faults = experiment.Experiment{
	Name: "ours-mplane-faults", Title: "Slow segments that are named",
	Claim: "A segment whose mean delay doubles is named within six intervals, and nothing else, in at least 99 % of the runs; with nothing " +
		"slow, something is named in at most 1 %. Clocks a second apart that drift by 50 ppm and are set now and then, 5 % loss in bursts, " +
		"reports that are lost.",
	Weight: 300, Quick: 6, Measure: measureFaults,
}

// Every run watches a path for history intervals, and then something becomes slow.
const (
	history     = 48 // intervals
	packetsEach = 6000
	lostReports = 0.01
	soon, late  = 3, 6 // intervals that the fault has lasted when the path is looked at
)

// An outcome counts what became of runs.
type outcome struct {
	runs    int
	soon    int // the fault was named first when it had lasted for three intervals
	named   int // and for six
	alone   int // and nothing else was then
	unknown int // the fault's segment was not measured in that interval, and the verdict says so
	looks   int // at a path without a fault
	alarms  int // of those, how many named something that was not slow
	bursts  int // and how many named what a burst had made slow
}

// watch runs one world, with a fault that adds a multiple of the segment's mean delay.
func (o *outcome) watch(run *experiment.Run, seed uint64, share, times float64) {
	w := newWorld(run, seed, share)
	ids := experiment.Try(w.plan.Along(w.path))
	fault := ids[w.random.IntN(len(ids))]
	stepped, when := w.random.IntN(len(w.clocks)), uint64(w.random.IntN(2*history))
	for interval := range uint64(history + late) {
		if interval == when {
			w.clocks[stepped].offset += (w.random.Float64() - 0.5) * 2e7
		}
		slow := 0.0
		if interval >= history {
			slow = times * w.watched[fault].usualMean()
		}
		w.report(interval, packetsEach, fault, slow, lostReports)
		if interval == history-2 || interval == history-1 {
			v := experiment.Try(w.station.Localise(w.path, interval))
			if o.looks++; w.alarm(v.Suspects) {
				o.alarms++
			} else if len(v.Suspects) > 0 {
				o.bursts++
			}
		}
	}
	v := experiment.Try(w.station.Localise(w.path, history+late-1))
	early := experiment.Try(w.station.Localise(w.path, history+soon-1))
	o.runs++
	if len(early.Suspects) > 0 && early.Suspects[0].Segment == fault {
		o.soon++
	}
	if slices.Contains(v.Unknown, fault) {
		o.unknown++
		return
	}
	if len(v.Suspects) > 0 && v.Suspects[0].Segment == fault {
		o.named++
		if len(v.Suspects) == 1 {
			o.alone++
		}
	}
}

// alarm reports whether a suspicion is untrue: the segment's packets, by their
// exact delays and losses, did not exceed its usual by half of what it is
// suspected of. Bursts make queues slow, too, and then a suspicion is right.
func (w *world) alarm(suspects []mplane.Suspect) bool {
	for _, s := range suspects {
		segment := w.watched[s.Segment]
		slow, lossy := segment.latest.Mean()-segment.usualMean(), segment.lost-perflow.Quantile(segment.losses, 0.5)
		if !s.Lossy && slow < s.Excess/2 || s.Lossy && lossy < s.Excess/2 {
			return true
		}
	}
	return false
}

func measureFaults(run *experiment.Run) {
	runs := run.Pick(10, 500)
	table := run.Table("Faults that are named", "upgraded", "delay of the slow segment", "runs", "named first after three intervals",
		"after six", "named alone then", "not measured, and said", "untrue suspicions, of looks", "true ones, by bursts")
	for _, share := range []float64{1, 0.15} {
		what := fmt.Sprintf("%s of the routers upgraded", percent(share))
		for _, times := range []float64{0.25, 0.5, 1, 2} {
			var o outcome
			n := runs
			if times != 1 {
				n = run.Pick(3, 40)
			}
			for i := range n {
				o.watch(run, uint64(i), share, times)
			}
			rate := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
			named, alarms := rate(o.named+o.unknown, o.runs), rate(o.alarms, o.looks)
			table.Row(percent(share), fmt.Sprintf("%g times", 1+times), o.runs, percent(rate(o.soon, o.runs)), percent(rate(o.named, o.runs)),
				percent(rate(o.alone, o.runs)), percent(rate(o.unknown, o.runs)), percent(alarms), percent(rate(o.bursts, o.looks)))
			if times == 1 {
				run.Meets("a segment of twice its usual delay for six intervals is named first, or said not to be measured: "+what, "at least 99 %",
					percent(named), named >= 0.99)
				run.Meets("something is named that is not slow: "+what, "at most 1 %", percent(alarms), alarms <= 0.01)
				bursts := rate(o.alarms+o.bursts, o.looks)
				run.Meets("something is named where nothing was made slow, even what a burst did: "+what, "at most 1 %",
					percent(bursts), bursts <= 0.01)
			}
		}
	}
	run.Note("Every run draws a map of 14 routers, a path of at least three links, and for each of its segments, there and back, a queue or "+
		"a queue and a wire with its own load, Poisson or bursty on all scales of time, and loss. Both ends have an LDA of 512 cells, and "+
		"two neighbours read each other's clocks from them. One clock is set by up to 10 ms at "+
		"some time in half of the runs.",
		"A suspicion is untrue if the segment's packets, by their exact delays, did not exceed its usual by half of what it is suspected of. "+
			"Bursts make queues slow, too: a suspicion of these is true, and counted beside.")
}
