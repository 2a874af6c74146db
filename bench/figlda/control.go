package figlda

import (
	"fmt"
	"reflect"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lda/control"
)

var ldaControl = experiment.Experiment{
	Name:  "ours-lda-control",
	Group: ours,
	Title: "Control packets through a channel that loses, duplicates, delays and flips bits",
	Claim: "The paper sends a synopsis and markers in band and leaves their loss to the implementation (sections III, V). " +
		"An interval whose control packets suffer should be reported as unusable, with the reason; none should give a wrong answer, and " +
		"memory should stay as it is.",
	Weight: 3, Quick: 0.1,
	Measure: measureControl,
}

// digestlessShare is how many times fewer intervals the soak has without a digest.
const digestlessShare = 5

func measureControl(run *experiment.Run) {
	intervals := run.Pick(20_000, 1_000_000)
	held := &holding{after: intervals / 10}
	run.Part(0, 2)
	with := soak(run, run.Rand("soak 28"), intervals, soakConfig(28), func(done int, s *control.Sender, r *control.Receiver) {
		if done%(intervals/50) == 0 {
			held.look(done, s, r)
		}
	})
	run.Part(1, 2)
	without := soak(run, run.Rand("soak 0"), intervals/digestlessShare, soakConfig(0), func(int, *control.Sender, *control.Receiver) {})
	drawControl(run, intervals, with, without)
	run.Figure(plot.Figure{
		Name: "memory", Title: "Memory held", Caption: "All that can be reached from the sender and the receiver, with buffers at their " +
			"capacity.",
		X: plot.Axis{Label: "intervals"}, Y: plot.Axis{Label: "KiB", Max: 2 * float64(held.most) / 1024}, Series: []plot.Series{held.series},
	})
	run.Keeps(fmt.Sprintf("wrong estimates: without a digest, of %d reported as good; and with one, of %d",
		without.usable+without.wrong, with.usable+with.wrong), fmt.Sprint(without.wrong), fmt.Sprint(with.wrong), with.wrong == 0)
	flat := experiment.AsGood
	if held.most > held.least+held.least/20 {
		flat = experiment.Loss
	}
	run.Claim(fmt.Sprintf("bytes held by sender and receiver after a tenth of %d intervals and later: least and most", intervals),
		"flat", fmt.Sprintf("%d and %d", held.least, held.most), flat)
	run.Config("intervals", intervals, "packets", soakPackets, "sender starts again after", soakRestart, "lda", soakConfig(28), "mtu", 128)
	run.Note(
		"All packets of an interval have one delay that no interval near it has, so that a single packet or part of another interval in an "+
			"estimate shows. One packet in 20 is lost. Feedback travels through such a channel, too, and changes the sampling; the sender starts "+
			"again after every 1,000 intervals.",
		"Without a digest an interval is refused as soon as any cell has more packets than were sent into it, since others may have lost as "+
			"many as they gained. That catches nearly all; where every cell that gained a packet also lost one, nothing shows, and an estimate "+
			"is wrong. With a digest such cells are left out, and the interval is usable.",
	)
}

// A holding is the memory that sender and receiver hold as time goes by.
type holding struct {
	after       int // from when on the least and the most count: buffers have their size then
	least, most int
	series      plot.Series
}

func (h *holding) look(done int, s *control.Sender, r *control.Receiver) {
	size := memoryOf(s, r)
	h.series.Name = "sender and receiver"
	h.series.Add(float64(done), float64(size)/1024)
	if done > h.after {
		if h.least == 0 {
			h.least = size
		}
		h.least, h.most = min(h.least, size), max(h.most, size)
	}
}

// drawControl shows what became of the intervals, with a digest and without.
func drawControl(run *experiment.Run, intervals int, with, without *soaked) {
	outcome := run.Figure(plot.Figure{
		Name: "outcome", Title: "What became of the intervals",
		Caption: fmt.Sprintf("Every control packet is lost with 3 %%, duplicated with 3 %%, and each copy late by up to two intervals with 3 %% "+
			"and damaged in up to 8 bits with 3 %%. %d intervals with a digest of 28 bits, %d without, whose synopsis takes fewer packets.",
			intervals, intervals/digestlessShare),
		X: plot.Axis{Categories: []string{"usable"}}, Y: plot.Axis{Label: "intervals (%)"},
	})
	for _, why := range reasons {
		outcome.X.Categories = append(outcome.X.Categories, why.name)
	}
	table := run.Table("control", "Control packets and intervals", "digest", "intervals", "reported on", "usable", "wrong",
		"refused for packets that crossed", "of these, would have been wrong", "control packets", "bytes an interval",
		"damaged", "foreign", "duplicate", "too late")
	for _, of := range []struct {
		name      string
		intervals int
		*soaked
	}{{"digest of 28 bits", intervals, with}, {"no digest", intervals / digestlessShare, without}} {
		n := float64(of.intervals)
		bars := plot.Series{Name: of.name, Kind: plot.Bars}
		bars.Add(0, 100*float64(of.usable)/n)
		for k, count := range of.because {
			bars.Add(float64(k+1), 100*float64(count)/n)
		}
		outcome.Series = append(outcome.Series, bars)
		c := of.counters
		table.Add(of.name, fmt.Sprint(of.intervals), fmt.Sprint(of.reported), fmt.Sprint(of.usable), fmt.Sprint(of.wrong),
			fmt.Sprint(of.because[3]), fmt.Sprint(of.crossed), fmt.Sprint(of.control), experiment.Number(float64(of.bytes)/n),
			fmt.Sprint(c.Corrupt), fmt.Sprint(c.Foreign), fmt.Sprint(c.Duplicate), fmt.Sprint(c.Stale))
	}
}

// memoryOf is the size of everything that values refer to. Unlike the heap's
// size it is the same in every run.
func memoryOf(values ...any) int {
	size := 0
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && !seen[v.Pointer()] {
				seen[v.Pointer()] = true
				size += int(v.Type().Elem().Size())
				walk(v.Elem())
			}
		case reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			if v.Cap() == 0 || seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
			size += v.Cap() * int(v.Type().Elem().Size())
			if !flatKind(v.Type().Elem().Kind()) {
				for i := range v.Len() {
					walk(v.Index(i))
				}
			}
		case reflect.Array:
			if !flatKind(v.Type().Elem().Kind()) {
				for i := range v.Len() {
					walk(v.Index(i))
				}
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.String:
			size += v.Len()
		}
	}
	for _, v := range values {
		walk(reflect.ValueOf(v))
	}
	return size
}

// flatKind: values of the kind refer to nothing.
func flatKind(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Complex128 }
