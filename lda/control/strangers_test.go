package control

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Packets that cross a marker spoil cells that lost as many as they gained.
// Without a digest the interval is refused; with one those cells are.
func TestCrossing(t *testing.T) {
	for _, digest := range []uint8{0, 16} {
		c := controlConfig()
		c.DigestBits = digest
		l := newLink(t, c, c, 1)
		start, _ := l.sender.Start(nil)
		l.deliver(start)
		for i := range uint64(100) {
			l.receiver.Update(hashing.Word(9, i), 1) // of no interval
			if p := hashing.Word(1, i); i >= 50 {
				l.sender.Update(p, int64(i))
				l.receiver.Update(p, int64(i)+1000)
			} else {
				l.sender.Update(p, 1<<30)
			}
		}
		l.end()
		r := l.reports[0]
		switch {
		case digest == 0 && !errors.Is(r.Err, ErrCrossed):
			t.Errorf("no digest: %v, want ErrCrossed", r.Err)
		case digest > 0 && (r.Err != nil || r.Result.Usable == r.Result.Cells || r.Result.Mean != 1000):
			t.Errorf("digest: %v, %+v; want mean 1000 and cells replaced", r.Err, r.Result)
		}
	}
}
