package hoplag

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A pair that is neither point reports as a follower does: in order, once, and
// by the second point's clock, whatever comes twice.
func TestPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, -40*time.Second)
		defer l.close()
		l.send(time.Millisecond, both(1), both(2))
		p, err := NewPair(Config{Key: "k"}, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		for point, take := range map[*Point]func([]byte) error{l.a.Load(): p.TakeFirst, l.b: p.TakeSecond} {
			l.all.Go(func() {
				for record := range point.Records(l.ctx) {
					time.Sleep(20 * time.Millisecond) // on the bus
					for range 2 {
						if err := take(record); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		var reports []Report
		for len(reports) < 6 {
			time.Sleep(300 * time.Millisecond)
			for {
				r, ok := p.Next()
				if !ok {
					break
				}
				reports = append(reports, r)
			}
		}
		want(t, reports)
		if r := reports[5]; r.From != "a" || r.To != "b" || math.Abs(r.Clock.Offset+40e9) > 30e3 || time.Since(r.Start) > 4*time.Second {
			t.Errorf("%v, started %v ago", r, time.Since(r.Start))
		}
		// The first point goes silent.
		l.a.Load().Close()
		for {
			time.Sleep(300 * time.Millisecond)
			if r, ok := p.Next(); ok && errors.Is(r.Err, ErrSilent) {
				break
			}
		}
	})
}
