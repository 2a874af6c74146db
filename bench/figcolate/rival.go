package figcolate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
)

var rival = experiment.Experiment{
	Name: "ours-colate-rival", Title: "COLATE's counters, and samples of as many bytes",
	Claim: "Ours: packets sampled by a hash are the honest rival. Of stores of equal size over an hour, samples answer better for a flow " +
		"by itself, and counters where the records of all flows explain them.",
	Weight: 120, Quick: 10, Measure: measureRival,
}

// A rivalStore is a way to spend a store's bytes.
type rivalStore struct {
	name    string
	config  colate.Config
	methods []int // ways to ask: see hourRun.answers
}

// rivals returns stores of about equal size at a rate.
func rivals(run *experiment.Run, rate float64) []rivalStore {
	counters := colate.DefaultConfig
	counters.Identity, counters.Counters = run.SeedOf("hour"), int(rate*60/hourLoad)
	samples := counters
	samples.Counters, samples.OneIn, samples.Samples = samples.PerFlow+1, 12, int(rate*10)
	half := counters
	half.Counters, half.OneIn, half.Samples = counters.Counters/2, 24, int(rate*5)
	return []rivalStore{{"counters", counters, []int{0, 2}}, {"samples, 1 in 12", samples, []int{0}}, {"half of both", half, []int{0, 2}}}
}

func measureRival(run *experiment.Run) {
	table := run.Table("", "Flows of an hour of which one packet in 1,000 is lost", "packets/s", "store", "bits a packet", "asked",
		"packets of the flow", "flows", "median error", "95 % intervals that hold", "median half width")
	dir := experiment.Try(os.MkdirTemp("", "rival"))
	defer os.RemoveAll(dir)
	rates := experiment.Choose(run, []float64{300}, []float64{1000, 10_000})
	for _, rate := range experiment.Each(run, rates) {
		errors := map[string]float64{}
		for k, store := range experiment.Each(run, rivals(run, rate)) {
			h := &hourRun{run: run, loss: 0.001, flows: hourFlows(run, rate)}
			h.path = passHour(run, filepath.Join(dir, fmt.Sprint(rate, k)), store.config, h.flows, h.loss)
			h.choose()
			for _, way := range store.methods {
				h.compare(table, rate, store.name, way, errors)
			}
		}
		for _, class := range hourClasses {
			alone, sampled := errors["counters, Estimate, "+class.Name], errors["samples, 1 in 12, Estimate, "+class.Name]
			run.Beats(fmt.Sprintf("%.0f packets/s, flows of %s packets: median error of samples, and of counters", rate, class.Name),
				sampled, alone, 0.1)
			decoded := errors["counters, joint, "+class.Name]
			run.Holds(fmt.Sprintf("%.0f packets/s, flows of %s packets: the better of counters with all records, and samples", rate, class.Name),
				"counters", fmt.Sprintf("%s; %s", percent(decoded), percent(sampled)), decoded <= sampled)
		}
	}
	run.Config("loss", 0.001, "elephant", hourElephant, "clock offset, ns", hourOffset)
	run.Note("The stores hold the same packets. A store of half of both is behind the better of the two, as the halves are each worth less: " +
		"it is for those who do not know whether there will be records. Plan gives all bytes to the one that is said to be needed. " +
		"Errors are relative to delays with the offset of the clocks, as everywhere else.")
}

// compare adds the rows of a store that is asked one way.
func (h *hourRun) compare(table *experiment.Table, rate float64, store string, way int, errors map[string]float64) {
	packets := 0.0
	for i := range h.flows {
		packets += float64(h.flows[i].delays.N())
	}
	bits := 8 * float64(h.path.Up.Summary().Bytes) / packets
	method, _, asked, means, intervals := h.answers(way)
	for _, class := range hourClasses {
		e := perflow.New(method, perflow.LeftOut)
		var held perflow.Coverage
		for k, i := range asked {
			delays := &h.flows[i].delays
			if class.Has(int(delays.N())) {
				if e.Add(int(delays.N()), means[k], delays.Mean()); !math.IsNaN(means[k]) {
					held.Add(intervals[k], delays.Mean())
				}
			}
		}
		errors[fmt.Sprintf("%s, %s, %s", store, method, class.Name)] = e.Median(class)
		table.Row(number(rate), store, number(bits), method, class.Name, int(held.All), percent(e.Median(class)),
			percent(float64(held.Held)/float64(max(held.All, 1))), percent(held.HalfWidth()))
	}
}
