package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

var planDemand = Demand{Packets: 1e6, Loss: 0.05, MeanError: 0.05, Variation: 1}

func TestPlan(t *testing.T) {
	for name, change := range map[string]func(*Demand){
		"as it is":    func(*Demand) {},
		"tighter":     func(d *Demand) { d.MeanError = 0.015 },
		"quantiles":   func(d *Demand) { d.Quantiles = true },
		"no loss":     func(d *Demand) { d.Loss = 0 },
		"few packets": func(d *Demand) { d.Packets = 2000 },
		"hardly any, whose quantiles count": func(d *Demand) {
			d.Packets, d.Loss, d.MeanError, d.Variation, d.Quantiles = 606, 0.02, 0.5, 1.8, true
		},
		"all of a few": func(d *Demand) { d.Packets, d.Loss, d.MeanError = 382, 0.02, 0.005 },
		"heavy tails":  func(d *Demand) { d.Variation = 3 },
		"half is lost": func(d *Demand) { d.Loss = 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			d := planDemand
			change(&d)
			c := must(Plan(d))
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if _, alone := c.Expect(d.Packets, d.Loss); d.Quantiles && alone < min(368, d.Packets/3) {
				t.Errorf("%v packets alone in a cell", alone)
			}
			meets := func(c Config) bool {
				e := d.atLeast(&c)
				return e.meanError(d.Variation, keptBy) <= d.MeanError
			}
			if !meets(c) {
				t.Errorf("%+v does not meet the demand", c)
			}
			// Half the rows would not suffice, whatever their sampling.
			for half := c; half.Banks[0].Rows > planRows && half.Banks[0].Shift < maxShift; half.Banks[0].Shift++ {
				if half.Banks[0].Rows = c.Banks[0].Rows / 2; meets(half) && half.Validate() == nil {
					t.Errorf("%+v would do", half)
				}
			}
		})
	}
}

// A plan keeps its promise: in 95 of 100 intervals, and by far not in all, the error is as small as was asked,
// also where losses come in bursts.
func TestPlanHolds(t *testing.T) {
	const times = 100
	for _, burst := range []float64{1, 20} {
		d := planDemand
		d.Packets, d.MeanError, d.Loss, d.Burst, d.Quantiles = 20_000, 0.02, 0.02, burst, true
		c := must(Plan(d))
		least, average := d.atLeast(&c), c.expect(d.Packets, d.Loss) // the negative control: what comes on average
		var sharp [2]covered
		x, rng, bad := newRun(t, c), rand.New(rand.NewPCG(5, math.Float64bits(d.Loss*burst))), false
		for range times {
			x.pass(rng, int(d.Packets), func(r *rand.Rand) float64 { // lost in runs of the mean length
				if bad = bad && r.Float64()*burst >= 1 || !bad && r.Float64()*burst*(1-d.Loss) < d.Loss; bad {
					return -1
				}
				return 1e6 * r.ExpFloat64()
			})
			got, err := Estimate(x.up, x.down)
			for k, e := range []*expectation{&least, &average} {
				sharp[k].add(err == nil && got.MeanError <= e.meanError(d.Variation, keptBy*float64(1-k))*got.Mean)
			}
		}
		// 95 % of 100 is 87 or fewer once in 500.
		if sharp[0].hits < 88 || sharp[1].hits > 75 {
			t.Errorf("bursts of %v: as sharp as planned, and as the average, %+v", burst, sharp)
		}
	}
}

// Where nothing is lost, a few large cells and some packets that are alone tell the deviation. If it were as
// certain as that of normal sums, one interval in five would miss.
func TestPlannedDeviations(t *testing.T) {
	d := planDemand
	d.Packets, d.Loss, d.MeanError, d.Quantiles = 10_000, 0, 0.01, true
	c := must(Plan(d))
	var held, blind covered
	x, rng := newRun(t, c), rand.New(rand.NewPCG(5, 6))
	for range 100 {
		x.pass(rng, int(d.Packets), func(r *rand.Rand) float64 { return 1e6 * math.Pow(r.ExpFloat64(), 1/0.6) })
		r, err := Estimate(x.up, x.down)
		held.add(err == nil && r.DeviationInterval(0.95).Contains(x.truth.StdDev()))
		r.deviationDegrees = uint64(r.cells - 1)
		blind.add(r.DeviationInterval(0.95).Contains(x.truth.StdDev()))
	}
	if held.hits < 88 || blind.hits >= 88 { // 95 % of 100 is 87 or fewer once in 500
		t.Errorf("%+v hold, and as if sums were normal %+v", held, blind)
	}
}

func TestDemandSaysWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Demand){
		"Packets is 0":      func(d *Demand) { d.Packets = 0 },
		"Packets is NaN":    func(d *Demand) { d.Packets = math.NaN() },
		"Loss is 0.95":      func(d *Demand) { d.Loss = 0.95 },
		"MeanError is 0,":   func(d *Demand) { d.MeanError = 0 },
		"Variation is +Inf": func(d *Demand) { d.Variation = math.Inf(1) },
		"not within reach":  func(d *Demand) { d.MeanError = 1e-6 },
	} {
		d := planDemand
		change(&d)
		if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: %v, want ErrConfig that says %q", d, err, want)
		}
	}
}

// The default keeps its promises: no interval is refused, and the p97 is mostly bounded and right.
func TestPromises(t *testing.T) {
	const quantile, delay = 0.97, 1e6 // mean, ns
	for _, packets := range []int{1e4, 1e5, 5e5} {
		const runs = 10
		missed, open, x := 0, 0, newRun(t, DefaultConfig)
		for seed := range uint64(runs) {
			x.pass(rand.New(rand.NewPCG(seed, 21)), packets, losing(0.01, exponentialDelay(delay)))
			q, err := accumulated(t, x.up, x.down).Quantile(quantile, 0.95)
			if err != nil {
				open++ // chance looks like copies, once in 10 to 25
			} else if !q.Interval.Contains(-delay * math.Log(1-quantile)) {
				missed++
			}
		}
		// Of ten intervals of 95 % four or more miss once in a thousand times.
		if missed > 3 || open > 4 {
			t.Errorf("%d packets: %d of %d quantiles missed, %d open", packets, missed, runs, open)
		}
	}
}
