package paper

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

func bankOf(rows int) lda.Config {
	return lda.Config{Banks: [4]lda.Bank{{Rows: rows}}, SumBits: 40, DigestBits: 16}
}

// draw passes packets of one bank and returns what eq. (5) gives, literally.
func draw(
	t *testing.T, rows, packets int, loss float64, delay func(*rand.Rand) float64,
) (up, down *lda.Aggregator, collapsed float64) {
	t.Helper()
	up, err := lda.New(bankOf(rows))
	if err != nil {
		t.Fatal(err)
	}
	down, _ = lda.New(bankOf(rows))
	random := rand.New(rand.NewPCG(5, uint64(rows)))
	signed, sums := make([]float64, rows/2), make([]float64, rows) // by pair of rows, and by row
	counts, lost := make([]float64, rows), make([]bool, rows)
	for i := range packets {
		p, now, d := hashing.Packet(random.Uint64()), int64(i)*1000, int64(delay(random))
		row := int(p) & (rows - 1)
		up.Update(p, now)
		if random.Float64() < loss {
			lost[row] = true
			continue
		}
		down.Update(p, now+d)
		counts[row]++
		sums[row] += float64(d)
		signed[row/2] += float64(d)*float64(2*(p&1)) - float64(d) // s_x
	}
	var f, n, usable, total float64
	for row := range rows {
		if !lost[row] {
			usable += counts[row]
			total += sums[row]
		}
		if row%2 == 0 && !lost[row] && !lost[row+1] {
			f += signed[row/2] * signed[row/2]
			n += counts[row] + counts[row+1]
		}
	}
	mean := total / usable
	return up, down, f/n - mean*mean
}

func TestCollapsedVariance(t *testing.T) {
	for _, c := range []struct {
		rows, packets int
		loss          float64
	}{{16, 300, 0}, {64, 3000, 0.01}, {256, 500, 0.1}} {
		up, down, collapsed := draw(t, c.rows, c.packets, c.loss, func(r *rand.Rand) float64 { return 1e6 * r.ExpFloat64() })
		if v := first(CollapsedVariance(up, down)); !(math.Abs(v-collapsed) <= 1e-8*math.Abs(collapsed)) {
			t.Errorf("%+v: %v, want %v", c, v, collapsed)
		}
	}
	// Where delays vary little, nothing is left of their deviation but the spread of
	// the counts, times the mean.
	up, down, _ := draw(t, 64, 3000, 0, func(r *rand.Rand) float64 { return 200 + 10*r.NormFloat64() })
	if v := first(CollapsedVariance(up, down)); math.Abs(v) < 10*100 {
		t.Errorf("eq. (5) sees a deviation of %v after all", math.Sqrt(v))
	}
	up, down, _ = draw(t, 16, 300, 1, func(*rand.Rand) float64 { return 0 })
	if _, err := CollapsedVariance(up, down); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("all lost: %v", err)
	}
}

func first(v float64, err error) float64 {
	if err != nil {
		return math.NaN()
	}
	return v
}
