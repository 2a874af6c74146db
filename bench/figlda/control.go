package figlda

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lda"
)

var ldaControl = experiment.Experiment{
	Name:   "ours-lda-control",
	Group:  ours,
	Title:  "Control packets through a channel that loses, duplicates, delays and flips bits",
	Claim:  "The paper sends a synopsis and markers in band and leaves their loss to the implementation (sections III, V). An interval whose control packets suffer should be reported as unusable, with the reason; none should give a wrong answer, and memory should stay as it is.",
	Weight: 3, Quick: 0.1,
	Run: runControl,
}

// digestlessShare is how many times fewer intervals the soak has without a digest.
const digestlessShare = 5

func runControl(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(20_000, 1_000_000)
	memory := plot.Series{Name: "sender and receiver"}
	outcome := plot.Figure{
		Name: "outcome", Title: "What became of the intervals",
		Caption: fmt.Sprintf("Every control packet is lost with 3 %%, duplicated with 3 %%, and each copy late by up to two intervals with 3 %% and damaged in up to 8 bits with 3 %%. %d intervals with a digest of 28 bits, %d without, whose synopsis takes fewer packets.", intervals, intervals/digestlessShare),
		X:       plot.Axis{Categories: []string{"usable"}}, Y: plot.Axis{Label: "intervals (%)"},
	}
	for _, why := range reasons {
		outcome.X.Categories = append(outcome.X.Categories, why.name)
	}
	table := experiment.Table{
		Name: "control", Title: "Control packets and intervals",
		Columns: []string{"digest", "intervals", "reported on", "usable", "wrong", "refused for packets that crossed", "of these, would have been wrong", "control packets", "bytes an interval", "damaged", "foreign", "duplicate", "too late"},
	}
	var of [2]*soaked
	least, most, total := 0, 0, intervals+intervals/digestlessShare
	for i, digestBits := range []uint8{28, 0} {
		n, before := intervals, 0
		if digestBits == 0 {
			n, before = intervals/digestlessShare, intervals
		}
		look := func(done int, s *lda.Sender, r *lda.Receiver) error {
			if done%(n/50) == 0 && digestBits > 0 {
				size := memoryOf(s, r)
				memory.Add(float64(done), float64(size)/1024)
				if done > n/10 { // buffers have their size by then
					if least == 0 {
						least = size
					}
					least, most = min(least, size), max(most, size)
				}
			}
			if done%100 == 0 {
				return run.Progress(ctx, before+done, total)
			}
			return nil
		}
		s, err := soak(run.Rand(fmt.Sprint("soak ", digestBits)), n, soakConfig(digestBits), look)
		if err != nil {
			return experiment.Result{}, err
		}
		of[i] = s
		bars := plot.Series{Name: fmt.Sprintf("digest of %d bits", digestBits), Kind: plot.Bars}
		if digestBits == 0 {
			bars.Name = "no digest"
		}
		bars.Add(0, 100*float64(s.usable)/float64(n))
		for k, count := range s.because {
			bars.Add(float64(k+1), 100*float64(count)/float64(n))
		}
		outcome.Series = append(outcome.Series, bars)
		c := s.counters
		table.Add(bars.Name, fmt.Sprint(n), fmt.Sprint(s.reported), fmt.Sprint(s.usable), fmt.Sprint(s.wrong), fmt.Sprint(s.because[3]), fmt.Sprint(s.crossed),
			fmt.Sprint(s.control), experiment.Number(float64(s.bytes)/float64(n)), fmt.Sprint(c.Corrupt), fmt.Sprint(c.Foreign), fmt.Sprint(c.Duplicate), fmt.Sprint(c.Stale))
	}
	held := plot.Figure{
		Name: "memory", Title: "Memory held", Caption: "All that can be reached from the sender and the receiver, with buffers at their capacity.",
		X: plot.Axis{Label: "intervals"}, Y: plot.Axis{Label: "KiB"}, Series: []plot.Series{memory},
	}
	held.Y.Max = 2 * float64(most) / 1024

	flat, right := experiment.AsGood, experiment.Win
	if most > least+least/20 {
		flat = experiment.Loss
	}
	if of[0].wrong > 0 {
		right = experiment.Loss
	}
	return experiment.Result{
		Figures: []plot.Figure{outcome, held}, Tables: []experiment.Table{table},
		Claims: []experiment.Claim{
			{
				What:  fmt.Sprintf("wrong estimates: without a digest, of %d reported as good; and with one, of %d", of[1].usable+of[1].wrong, of[0].usable+of[0].wrong),
				Paper: fmt.Sprint(of[1].wrong), Ours: fmt.Sprint(of[0].wrong), Verdict: right,
			},
			{What: fmt.Sprintf("bytes held by sender and receiver after a tenth of %d intervals and later: least and most", intervals), Paper: "flat", Ours: fmt.Sprintf("%d and %d", least, most), Verdict: flat},
		},
		Config: map[string]any{"intervals": intervals, "packets": soakPackets, "sender starts again after": soakRestart, "lda": soakConfig(28), "mtu": 128},
		Notes: []string{
			"All packets of an interval have one delay that no interval near it has, so that a single packet or part of another interval in an estimate shows. One packet in 20 is lost. Feedback travels through such a channel, too, and changes the sampling; the sender starts again after every 1,000 intervals.",
			"Without a digest an interval is refused as soon as any cell has more packets than were sent into it, since others may have lost as many as they gained. That catches nearly all; where every cell that gained a packet also lost one, nothing shows, and an estimate is wrong. With a digest such cells are left out, and the interval is usable.",
		},
	}, nil
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
