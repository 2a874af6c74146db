package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

var planDemand = Demand{
	Packets: 1e6, LowLoss: 0.0001, HighLoss: 0.05,
	MeanError: 0.1, Confidence: 0.98, Variation: 1,
}

func TestPlan(t *testing.T) {
	for name, change := range map[string]func(*Demand){
		"as it is":     func(*Demand) {},
		"tighter":      func(d *Demand) { d.MeanError = 0.03 },
		"quantiles":    func(d *Demand) { d.Quantiles = true },
		"no loss":      func(d *Demand) { d.LowLoss, d.HighLoss = 0, 0 },
		"from no loss": func(d *Demand) { d.LowLoss = 0 },
		"few packets":  func(d *Demand) { d.Packets = 2000 },
		"hardly any, whose quantiles count": func(d *Demand) {
			d.Packets, d.HighLoss, d.MeanError, d.Variation, d.Quantiles = 606, 0.02, 1, 1.8, true
		},
		"all of a few":  func(d *Demand) { d.Packets, d.HighLoss, d.MeanError = 382, 0.02, 0.0106 },
		"heavy tails":   func(d *Demand) { d.Variation = 3 },
		"half is lost":  func(d *Demand) { d.HighLoss = 0.5 },
		"one loss rate": func(d *Demand) { d.LowLoss = d.HighLoss },
	} {
		t.Run(name, func(t *testing.T) {
			d := planDemand
			change(&d)
			c, expect, err := Plan(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if alone := expect[0].Alone; d.Quantiles && alone < min(368, d.Packets/3) {
				t.Errorf("%v packets alone in a cell", alone)
			}
			for _, e := range expect {
				if got := e.MeanError(d.Variation, d.Confidence); !(got <= d.MeanError) {
					t.Errorf("loss %v: error %v, want at most %v", e.Loss, got, d.MeanError)
				}
			}
			if expect[0].Loss != d.LowLoss || expect[len(expect)-1].Loss != d.HighLoss {
				t.Errorf("losses from %v to %v", expect[0].Loss, expect[len(expect)-1].Loss)
			}
			// Half the rows would not do, in any division.
			rows := 0
			for _, b := range c.Banks[:c.banks()] {
				if rows += b.Rows; d.Quantiles && rows+thinRows == c.cells() {
					break
				}
			}
			for _, split := range splits {
				if _, _, worst := d.forecast(rows/2, split); rows > planRows && worst <= d.MeanError {
					t.Errorf("%d rows in %d banks would do", rows/2, len(split))
				}
			}
		})
	}
}

// A plan's promise, kept: in the demanded share of intervals, and not in all of
// them by far, is the interval that comes as narrow as was asked, and are as many packets
// alone, also where losses come in bursts.
func TestPlanHolds(t *testing.T) {
	const times = 100
	for _, burst := range []float64{1, 20} {
		d := planDemand
		d.Packets, d.MeanError, d.HighLoss, d.Burst, d.Quantiles = 20_000, 0.05, 0.02, burst, true
		c, expect, err := Plan(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []Expectation{expect[0], expect[len(expect)-1]} {
			average := c.Expect(d.Packets, e.Loss) // the negative control: what comes on average
			var narrow, alone [2]covered
			x, rng, bad := newRun(t, c), rand.New(rand.NewPCG(5, math.Float64bits(e.Loss*burst))), false
			for range times {
				x.pass(rng, int(d.Packets), func(r *rand.Rand) float64 { // lost in runs of the mean length
					if bad = bad && r.Float64()*burst >= 1 || !bad && r.Float64()*burst*(1-e.Loss) < e.Loss; bad {
						return -1
					}
					return 1e6 * r.ExpFloat64()
				})
				got, err := Estimate(x.up, x.down)
				i, samples := got.withCopies(got.studentInterval(d.Confidence)), float64(len(samplesOf(t, x.up, x.down)))
				for k, e := range []Expectation{e, average} {
					narrow[k].add(err == nil && (i.High-i.Low)/2 <= e.MeanError(d.Variation, d.Confidence)*got.Mean)
					alone[k].add(samples >= e.Alone)
				}
			}
			// 95 % of 100 is 87 or fewer once in 500.
			if narrow[0].hits < 88 || alone[0].hits < 88 || alone[1].hits > 75 || e.Loss == d.HighLoss && narrow[1].hits > 75 {
				t.Errorf("bursts of %v, loss %v: as narrow as planned, and as the average, %+v; as many alone %+v", burst, e.Loss, narrow, alone)
			}
		}
	}
}

func TestDemandSaysWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Demand){
		"Packets is 0":      func(d *Demand) { d.Packets = 0 },
		"Packets is NaN":    func(d *Demand) { d.Packets = math.NaN() },
		"HighLoss is 0.95":  func(d *Demand) { d.HighLoss = 0.95 },
		"LowLoss is 0.06":   func(d *Demand) { d.LowLoss = 0.06 },
		"MeanError is 0,":   func(d *Demand) { d.MeanError = 0 },
		"Confidence is 1":   func(d *Demand) { d.Confidence = 1 },
		"Variation is +Inf": func(d *Demand) { d.Variation = math.Inf(1) },
		"not within reach":  func(d *Demand) { d.MeanError = 1e-6 },
	} {
		d := planDemand
		change(&d)
		if _, _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: %v, want ErrConfig that says %q", d, err, want)
		}
	}
}
