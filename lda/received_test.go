package lda

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// Where the clock of the point downstream is behind, packets come before they are sent: all
// or some of them. What report ends owe is then what they are sent later, not what they are
// old; taken for nothing, it left intervals without width, outside in 14 to 100 of 100.
func TestOfReceivedBeforeSent(t *testing.T) {
	for _, behind := range []float64{30e6, 6e6, 2e6} {
		misses, reports := 0, 0
		run := cutTraffic(t, 5, 310, 150, func(r *rand.Rand) float64 { return 1e6 + 4e6*r.ExpFloat64() - behind }, 0)
		run.reports(t, 10, func(a *Accumulator, from, to int64) {
			want := truth.Of(run.packets, from, to)
			if r, err := a.Estimate(); err == nil && from > 0 && want.Received > 0 {
				if _, i := r.OfReceived(0.95); !i.Contains(want.MeanDelay()) {
					misses++
				}
				reports++
			}
		})
		if misses > reports/7 || reports < 25 {
			t.Errorf("%v ms behind: %d of %d reports are outside 95 %%", behind/1e6, misses, reports)
		}
	}
}
