package hoplag

import (
	"errors"
	"math"
	"slices"
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

// Records that a stream kept give the same reports whenever they are read, if
// the pair is told when they came.
func TestPairAt(t *testing.T) {
	type arrival struct {
		at    time.Time
		point *Point
		data  []byte
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, -40*time.Second)
		l.send(time.Millisecond, both(1), both(2))
		stream := make(chan arrival, 1000)
		for _, point := range []*Point{l.a.Load(), l.b} {
			l.all.Go(func() {
				for record := range point.Records(l.ctx) {
					stream <- arrival{time.Now(), point, record}
				}
			})
		}
		time.Sleep(6 * time.Second)
		l.close()
		var kept []arrival
		for len(stream) > 0 {
			kept = append(kept, <-stream)
		}
		replay := func(pace time.Duration) (lines []string) {
			p, err := NewPair(Config{Key: "k"}, "a", "b")
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range kept {
				time.Sleep(pace)
				p.At(k.at)
				for r, ok := p.Next(); ok; r, ok = p.Next() {
					data, err := r.MarshalJSON()
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, string(data))
				}
				take := p.TakeFirst
				if k.point == l.b {
					take = p.TakeSecond
				}
				if err := take(k.data); err != nil {
					t.Fatal(err)
				}
			}
			return lines
		}
		atOnce, late := replay(0), replay(time.Second)
		if len(atOnce) < 4 || !slices.Equal(atOnce, late) {
			t.Errorf("read at once:\n%v\nread slowly:\n%v", atOnce, late)
		}
	})
}
