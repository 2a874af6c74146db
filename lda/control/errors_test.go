package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Every error begins with the name of the package that found it, and has it once.
func TestErrorsNameThePackageOnce(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	all := map[string]error{}
	_, all["NewSender"] = NewSender(tuner, 1, 3)
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
		if err == nil || !strings.HasPrefix(err.Error(), "control: ") || strings.Count(err.Error(), "control: ") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
