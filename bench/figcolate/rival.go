package figcolate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/colate"
)

var rival = experiment.Experiment{
	Name: "ours-colate-rival", Title: "COLATE's counters, and samples of as many bytes",
	Claim: "Ours: packets sampled by a hash are the honest rival. Of stores of equal size over an hour, what Plan chooses is behind the " +
		"better of counters and samples by at most 10 %: samples where there are no records of the flows, and else counters, with a fifth of " +
		"the bytes in samples.",
	Weight: 120, Quick: 10, Measure: measureRival,
}

// A rivalStore is a way to spend a store's bytes.
type rivalStore struct {
	name   string
	config colate.Config
	joint  bool // it is asked by joint decoding, too
}

// rivals returns counters alone, what Plan makes of as many bits a packet, with records and without, and the
// counters of that with records alone.
func rivals(run *experiment.Run, rate float64, dir string) []rivalStore {
	counters := colate.DefaultConfig
	counters.Identity, counters.Counters, counters.OneIn, counters.Samples = run.SeedOf("hour"), int(rate*60/hourLoad), 0, 0
	d := colate.Demand{Rate: rate, BytesADay: newHour(run, dir, counters, rate).bits() / 8 * rate * 86400}
	standard, _, err := colate.Plan(d)
	experiment.Check(err)
	d.NoRecords = true
	samples, _, err := colate.Plan(d)
	experiment.Check(err)
	standard.Identity, samples.Identity = counters.Identity, counters.Identity
	fewer := counters
	fewer.Counters = standard.Counters
	return []rivalStore{{"counters", counters, true}, {"fewer", fewer, true}, {"the default", standard, true}, {"samples", samples, false}}
}

func measureRival(run *experiment.Run) {
	table := run.Table("Flows of an hour of which one packet in 1,000 is lost", "packets/s", "store", "bits a packet", "asked",
		"packets of the flow", "flows", "median error", "95 % intervals that hold", "median half width")
	dir := experiment.Try(os.MkdirTemp("", "rival"))
	defer os.RemoveAll(dir)
	worst, fewer := 1.0, 1.0
	for _, rate := range experiment.Choose(run, []float64{300}, []float64{1000, 10_000}) {
		errors := map[[3]string]float64{}
		for k, store := range rivals(run, rate, filepath.Join(dir, fmt.Sprint(rate))) {
			h := newHour(run, filepath.Join(dir, fmt.Sprint(rate, k)), store.config, rate)
			for w, method := range []string{"Estimate", "joint"}[:map[bool]int{false: 1, true: 2}[store.joint]] {
				e, all := h.answers(w == 1)
				for c, class := range hourClasses {
					held := &all[c]
					errors[[3]string{store.name, method, class.Name}] = e.Median(class)
					table.Row(number(rate), store.name, number(h.bits()), method, class.Name, int(held.All), percent(e.Median(class)),
						percent(float64(held.Held)/float64(max(held.All, 1))), percent(held.HalfWidth()))
				}
			}
		}
		for _, class := range hourClasses {
			of := func(store, method string) float64 { return errors[[3]string{store, method, class.Name}] }
			sampled, standard := of("samples", "Estimate"), of("the default", "joint")
			best := math.Min(of("counters", "joint"), sampled)
			if math.IsNaN(sampled) {
				continue // no such flows
			}
			where := fmt.Sprintf("%.0f packets/s, flows of %s packets: median error, ", rate, class.Name)
			run.Beats(where+"one by one, of counters, and of the samples that Plan takes for NoRecords", sampled, of("counters", "Estimate"))
			worst = max(worst, standard/best)
			fewer = max(fewer, of("fewer", "joint")/of("counters", "joint"))
			run.Holds(where+"with the records of all flows, of the better of counters and samples, and of the default (within 10 %)",
				percent(best), percent(standard), standard <= 1.1*best)
		}
	}
	run.Holds("worst lag of the default behind the better of both, with all records", "at most 10 %", percent(worst-1), worst <= 1.1)
	run.Note(fmt.Sprintf("Stores hold the same packets in about as many bits. No split of the bytes is within 10 %% of the better: with a "+
		"part s of them, samples are off by 1/√s times as much, and counters by up to 1/(1−s), as all together tell flows apart. The "+
		"default's counters alone, the fewer ones, are off by up to %.2f times as much as all. More samples would help small flows only.", fewer))
}
