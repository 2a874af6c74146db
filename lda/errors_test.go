package lda

import (
	"strings"
	"testing"

	"github.com/hoplag/hoplag/internal/wire"
)

// Every error names the package once, at the beginning.
func TestErrorsNameThePackageOnce(t *testing.T) {
	c := smallConfig()
	a, b := mustNewFor(t, c), mustNewFor(t, twoBanks(9))
	all := map[string]error{}
	_, all["New"] = New(Config{})
	_, all["NewRotation"] = NewRotation(Config{})
	_, all["NewAccumulator"] = NewAccumulator(Config{})
	one := Tuner{Config: Config{Banks: [MaxBanks]Bank{{Rows: 2}}, SumBits: 8}, Quantiles: true}
	all["one bank"] = one.Validate()
	all["SetShifts"] = a.SetShifts(twoBanks(9))
	_, _, all["EstimateParts"] = EstimateParts(a, b, nil)
	_, all["Plan"] = Plan(Demand{})
	_, all["Estimate"] = Estimate(a, b)
	_, all["nothing"] = Estimate(a, a)
	_, all["AppendSamples"] = AppendSamples(nil, a, b)
	all["Merge"] = a.Merge(b)
	_, all["Quantile"] = newDistribution(nil).Quantile(0.5, 0.9)
	all["UnmarshalBinary"] = a.UnmarshalBinary([]byte("HLDA and more"))
	bad := append(wire.Begin(nil, magic, version), make([]byte, 40)...)
	all["impossible Config"] = a.UnmarshalBinary(wire.Seal(bad, 0))
	total, _ := NewAccumulator(c)
	all["Add"] = total.Add(0, 1, b, b)
	_, all["no groups"] = total.Estimate()

	for name, err := range all {
		if err == nil || !strings.HasPrefix(err.Error(), "lda: ") || strings.Count(err.Error(), "lda: ") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
