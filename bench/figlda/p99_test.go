package figlda

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// To answer p99 for a single interval, thin banks must be twice as large as those
// of DefaultConfig, which leave it unanswered at some loads: the control.
func TestConfigForP99(t *testing.T) {
	larger := lda.DefaultConfig
	larger.Banks = [lda.MaxBanks]lda.Bank{{Rows: 1024, Shift: 0}, {Rows: 2048, Shift: 4}, {Rows: 2048, Shift: 8}, {Rows: 2048, Shift: 12}}
	if kib := float64(larger.EncodedSize()) / 1024; kib > 98.1 {
		t.Errorf("%.1f KiB", kib)
	}
	for _, c := range []lda.Config{lda.DefaultConfig, larger} {
		answered, loads := 0, []int{13_000, 30_000, 70_000, 160_000, 370_000}
		for _, packets := range loads {
			random := rand.New(rand.NewPCG(uint64(packets), 7))
			up, down := experiment.Try(lda.New(c)), experiment.Try(lda.New(c))
			for i := range packets {
				p := hashing.Packet(random.Uint64())
				up.Update(p, int64(i))
				if random.IntN(10) > 0 {
					down.Update(p, int64(i)+int64(1e6*random.ExpFloat64()))
				}
			}
			d, err := lda.Distribute(up, down)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Quantile(0.99, 0.95); err == nil {
				answered++
			}
		}
		if all := answered == len(loads); all != (c == larger) {
			t.Errorf("%+v: p99 at %d of %d loads", c.Banks, answered, len(loads))
		}
	}
}
