package lda

import (
	"errors"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/internal/wire"
)

// Every error names the package once, at the beginning.
func TestErrorsNameThePackageOnce(t *testing.T) {
	c := controlConfig()
	a, b := mustNewFor(t, c), mustNewFor(t, twoBanks(9))
	all := map[string]error{}
	_, all["New"] = New(Config{})
	_, all["NewRotation"] = NewRotation(Config{})
	_, all["NewClasses"] = NewClasses(c, 0)
	_, all["NewAccumulator"] = NewAccumulator(Config{})
	_, all["NewSender"] = NewSender(Tuner{Config: c}, 1, 3)
	_, all["one bank"] = NewReceiver(Tuner{Config: Config{Banks: [MaxBanks]Bank{{Rows: 2}}, SumBits: 8}, Quantiles: true})
	_, all["Plan"] = Plan(Demand{})
	_, all["Estimate"] = Estimate(a, b)
	_, all["nothing"] = Estimate(a, a)
	_, all["AppendSamples"] = AppendSamples(nil, a, b)
	_, all["CollapsedVariance"] = Paper.CollapsedVariance(a, a)
	all["Merge"] = a.Merge(b)
	_, all["Quantile"] = newDistribution(nil).Quantile(0.5, 0.9)
	all["UnmarshalBinary"] = a.UnmarshalBinary([]byte("HLDA and more"))
	bad := append(wire.Begin(nil, magic, version), make([]byte, 40)...)
	all["impossible Config"] = a.UnmarshalBinary(wire.Seal(bad, 0))
	total, _ := NewAccumulator(c)
	all["Add"] = total.Add(1, b, b)
	_, all["no groups"] = total.Estimate()

	tuner := Tuner{Config: c}
	l := newLink(t, tuner, tuner, 1)
	_, all["End"] = l.sender.End(nil)
	all["Feedback"] = l.sender.Feedback([]byte{1})
	l.tamper = func(interval uint64, f session.Frame, data []byte) [][]byte {
		if interval == 1 {
			return [][]byte{corrupt(f, data)[0]}
		}
		return [][]byte{data}
	}
	for range 3 {
		l.run()
	}
	l.reports = l.receiver.Flush(l.reports)
	all["Receive"], all["Report"] = l.errs[0], l.reports[1].Err
	if !errors.Is(l.reports[1].Err, estimate.ErrEncoding) {
		t.Errorf("%v does not say what was wrong", l.reports[1].Err)
	}
	for name, err := range all {
		if err == nil || !strings.HasPrefix(err.Error(), "lda: ") || strings.Count(err.Error(), "lda: ") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
