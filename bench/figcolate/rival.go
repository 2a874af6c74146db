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
		"better of counters and samples by at most 10 %: samples where there are no records of the flows, and else counters, with one " +
		"packet in 64 beside them.",
	Weight: 120, Quick: 10, Measure: measureRival,
}

// A rivalStore is a way to spend a store's bytes.
type rivalStore struct {
	name   string
	config colate.Config
	joint  bool // it is asked by joint decoding, too
}

// rivals returns stores of about equal size at a rate. The default's counters
// are fewer by what its samples take.
func rivals(run *experiment.Run, rate float64) []rivalStore {
	counters := colate.DefaultConfig
	counters.Identity, counters.Counters, counters.OneIn, counters.Samples = run.SeedOf("hour"), int(rate*60/hourLoad), 0, 0
	standard, samples, half := counters, counters, counters
	standard.Counters, standard.OneIn, standard.Samples = counters.Counters*4/5, 64, int(rate*2)
	samples.Counters, samples.OneIn, samples.Samples = samples.PerFlow+1, 12, int(rate*10)
	half.Counters, half.OneIn, half.Samples = counters.Counters/2, 24, int(rate*5)
	return []rivalStore{
		{"counters", counters, true}, {"the default", standard, true}, {"samples, 1 in 12", samples, false}, {"half of both", half, true},
	}
}

func measureRival(run *experiment.Run) {
	table := run.Table("Flows of an hour of which one packet in 1,000 is lost", "packets/s", "store", "bits a packet", "asked",
		"packets of the flow", "flows", "median error", "95 % intervals that hold", "median half width")
	dir := experiment.Try(os.MkdirTemp("", "rival"))
	defer os.RemoveAll(dir)
	rates := experiment.Choose(run, []float64{300}, []float64{1000, 10_000})
	for _, rate := range rates {
		errors := map[string]float64{}
		for k, store := range rivals(run, rate) {
			h := newHour(run, filepath.Join(dir, fmt.Sprint(rate, k)), store.config, rate)
			for w, method := range []string{"Estimate", "joint"}[:map[bool]int{false: 1, true: 2}[store.joint]] {
				e, all := h.answers(w == 1)
				for c, class := range hourClasses {
					held := &all[c]
					errors[fmt.Sprintf("%s, %s, %s", store.name, method, class.Name)] = e.Median(class)
					table.Row(number(rate), store.name, number(h.bits()), method, class.Name, int(held.All), percent(e.Median(class)),
						percent(float64(held.Held)/float64(max(held.All, 1))), percent(held.HalfWidth()))
				}
			}
		}
		for _, class := range hourClasses {
			of := func(store, method string) float64 {
				return errors[fmt.Sprintf("%s, %s, %s", store, method, class.Name)]
			}
			sampled, standard := of("samples, 1 in 12", "Estimate"), of("the default", "joint")
			best := math.Min(of("counters", "joint"), sampled)
			if math.IsNaN(sampled) {
				continue // no such flows
			}
			where := fmt.Sprintf("%.0f packets/s, flows of %s packets: median error, ", rate, class.Name)
			run.Beats(where+"one by one, of counters, and of the samples that Plan takes for NoRecords", sampled, of("counters", "Estimate"))
			run.Holds(where+"with the records of all flows, of the better of counters and samples, and of the default (within 10 %)",
				percent(best), percent(standard), standard <= 1.1*best)
		}
	}
	run.Note("The stores hold the same packets in about as many bits. No split of bytes is within 10 % of the better of both everywhere: "+
		"without records counters add next to nothing, so that samples with a part s of the bytes are behind samples with all of them "+
		"by 1/√s, which is 10 % at s = 0.83; and counters with the other 17 % are behind those with all of them by more than 10 % where all "+
		"flows are decoded together, as the row of half of both already shows. So Plan takes either, as Demand.NoRecords says.",
		"The default, with records, spends a fifth of its bytes on samples, for flows that lose packets in all of their counters, and for "+
			"deviations, quantiles and losses, which counters do not tell.")
}
