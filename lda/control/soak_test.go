package control

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/session"
)

// Control packets through a channel that loses, duplicates, delays and damages a few per
// cent each, between points that start again: no wrong estimate, and most intervals are good.
func TestSoak(t *testing.T) {
	const intervals, life = 1000, 250 // until the sender starts again
	random, l := rand.New(rand.NewPCG(11, 12)), plainLink(t)
	var held [][]byte
	l.tamper = func(_ uint64, _ session.Frame, data []byte) [][]byte {
		out := [][]byte{data}
		switch random.IntN(33) {
		case 0:
			out = nil
		case 1:
			out = append(out, data)
		case 2:
			held, out = append(held, bytes.Clone(data)), nil
		case 3:
			out[0] = bytes.Clone(data)
			out[0][random.IntN(len(data))] ^= 1 << random.IntN(8)
		}
		if len(held) > 0 && random.IntN(5) == 0 {
			out, held = append(out, held[0]), held[1:]
		}
		return out
	}
	reported, usable, partly := 0, 0, 0
	failed := map[error]int{}
	for i := range intervals {
		if i%life == 0 && i > 0 {
			l.restart(testSession+uint64(i/life), false)
		}
		l.run()
		for k := range l.reports {
			r := &l.reports[k]
			reported += int(r.Interval - r.First + 1)
			for _, err := range []error{ErrStart, ErrEnd} {
				if errors.Is(r.Err, err) {
					failed[err]++
				}
			}
			if r.Err == nil {
				usable++
				if r.Came < 1 {
					partly++
				}
				// Another interval of the same number has the same delay.
				if r.Result.Mean != float64(delayOf(r.Interval)) || r.Result.StdDev != 0 {
					t.Errorf("wrong: %+v", r)
				}
			}
			if data := l.receiver.AppendFeedback(nil, r); data != nil && random.IntN(10) > 0 {
				_ = l.sender.Feedback(data) // whatever it says of earlier sessions
			}
		}
		l.reports, l.errs = l.reports[:0], l.errs[:0]
	}
	// Both markers come in time, and one part of four at all, in about 83 % of intervals.
	if share := float64(usable) / intervals; share < 0.75 || share > 0.92 || partly < intervals/20 || len(failed) < 2 {
		t.Errorf("%d of %d intervals usable, %d by some of their parts, %v", usable, intervals, partly, failed)
	}
	// An interval of which nothing was heard before a restart nobody can report.
	if lost := intervals - reported; lost < 0 || lost > 2*intervals/life+2 {
		t.Errorf("%d of %d intervals reported", reported, intervals)
	}
}
