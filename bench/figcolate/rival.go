package figcolate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/colate"
)

// Rival compares counters with as many bytes of sampled packets.
var Rival = experiment.Experiment{
	Name: "ours-colate-rival", Title: "COLATE's counters, and samples of as many bytes",
	Claim: "Ours: packets sampled by a hash are the honest rival. Of stores of equal size over an hour, what Plan chooses is behind the " +
		"better of counters and samples by at most 10 %: samples where there are no records of the flows, and else counters, with a " +
		"quarter of the bytes in samples.",
	Weight: 360, Quick: 10, Measure: measureRival,
}

// A rivalStore is a way to spend a store's bytes.
type rivalStore struct {
	name   string
	config colate.Config
}

// rivals returns counters alone, and what Plan makes of as many bits a packet, with records and without. Plan does not know that
// three in ten packets are of one flow, whose few counters take next to nothing, so it is given that flow's bytes, too.
func rivals(run *experiment.Run, rate float64, dir string) []rivalStore {
	counters := colate.DefaultConfig
	counters.Identity, counters.Counters, counters.OneIn, counters.Samples = run.SeedOf("hour"), int(rate*60/hourLoad), 0, 0
	bits := newHour(run, filepath.Join(dir, "counters"), counters, rate).bits()
	planned := func(none bool) (c colate.Config) {
		d := colate.Demand{Rate: rate, BytesADay: bits / 8 * rate * 86400, NoRecords: none}
		for again := range 3 {
			var err error
			c, err = colate.Plan(d)
			experiment.Check(err)
			if c.Identity = counters.Identity; again < 2 {
				d.BytesADay *= bits / newHour(run, filepath.Join(dir, fmt.Sprint(none, again)), c, rate).bits()
			}
		}
		return c
	}
	return []rivalStore{{"counters", counters}, {"the default", planned(false)}, {"samples", planned(true)}}
}

func measureRival(run *experiment.Run) {
	table := run.Table("Flows of ten hours of 1,000 packets a second, and of four of 10,000, of which one in 1,000 is lost", "packets/s",
		"store", "bits a packet", "asked", "packets of the flow", "flows", "median error", "95 % intervals that hold", "median half width")
	dir := experiment.Try(os.MkdirTemp("", "rival"))
	defer os.RemoveAll(dir)
	worst := 1.0
	for _, rate := range experiment.Choose(run, []float64{300}, []float64{1000, 10_000}) {
		errors, apart := map[[3]string]float64{}, [][2]float64{}
		all := make([]float64, len(hourClasses))                     // flows
		hours := experiment.Choose(run, 1, max(int(10_000/rate), 4)) // large flows are few
		for k, store := range rivals(run, rate, filepath.Join(dir, fmt.Sprint(rate))) {
			answers, bits := [2]hourAnswers{newHourAnswers(), newHourAnswers()}, 0.0
			for hour := range hours {
				each := experiment.Run{Seed: run.Seed + uint64(hour)<<32, Quick: run.Quick}
				h := newHour(&each, filepath.Join(dir, fmt.Sprint(rate, k, hour)), store.config, rate)
				bits += h.bits() / float64(hours)
				h.answer(answers[0], false)
				h.answer(answers[1], true)
			}
			for m, method := range []string{"Estimate", "joint"} {
				for c, class := range hourClasses {
					held, off := &answers[m].held[c], answers[m].errors.Median(class)
					errors[[3]string{store.name, method, class.Name}], all[c] = off, float64(held.All)
					table.Row(number(rate), store.name, number(bits), method, class.Name, int(held.All), percent(off),
						percent(float64(held.Held)/float64(max(held.All, 1))), percent(held.HalfWidth()))
				}
			}
		}
		for c, class := range hourClasses {
			of := func(store, method string) float64 { return errors[[3]string{store, method, class.Name}] }
			sampled, standard := of("samples", "Estimate"), of("the default", "joint")
			counters := of("counters", "joint")
			best := math.Min(counters, sampled)
			if math.IsNaN(sampled) {
				continue // no such flows
			}
			where := fmt.Sprintf("%.0f packets/s, flows of %s packets: median error, ", rate, class.Name)
			run.Beats(where+"one by one, of counters, and of the samples that Plan takes for NoRecords", sampled, of("counters", "Estimate"))
			worst, apart = max(worst, standard/best), append(apart, [2]float64{counters / best, sampled / best})
			run.Holds(where+"with the records of all flows, of the better of counters and samples, and of the default (within 10 %)",
				percent(best), fmt.Sprintf("%s, %.3g ± %.2g times", percent(standard), standard/best, 1.65/math.Sqrt(all[c])), standard <= 1.1*best)
		}
		run.Note(fmt.Sprintf("At %.0f packets/s no split of the bytes would be behind by less than %s, were errors those of "+
			"independent answers.", rate, percent(leastLag(apart)-1)))
	}
	run.Holds("worst lag of the default behind the better of both, with all records", "at most 10 %", percent(worst-1), worst <= 1.1)
	run.Note("± is a standard error: two medians of n normal numbers' distances are off by 1.65/√n of themselves.")
	run.Note("Stores hold the same packets in about as many bits. Flows that are not answered count as infinitely far off.")
}

// leastLag returns how far the best split of the bytes is behind the better of counters and samples in its worst class,
// given the errors of both in parts of the better one's. A part f of the bytes is taken to leave a variance in proportion
// to 1/f, and the answers of both to be independent and weighed by their variances.
func leastLag(classes [][2]float64) float64 {
	least := math.Inf(1)
	for f := 0.0; f <= 1; f += 0.001 {
		worst := 1.0
		for _, c := range classes {
			worst = max(worst, 1/math.Sqrt((1-f)/(c[0]*c[0])+f/(c[1]*c[1])))
		}
		least = min(least, worst)
	}
	return least
}
