package rli_test

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestRotation: receivers that take turns give the same answers as one receiver that is reset between
// intervals, whoever reads them meanwhile.
func TestRotation(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 60000, source(t, "poisson", 0.5, 4), nil)
	for _, m := range []rli.Method{rli.Auto, rli.Linear, rli.Left} {
		r := must(rli.NewRotation(config(m)))
		one := newReceiver(t, config(m))
		var read chan estimate.Delay
		var want estimate.Delay
		for part := range 6 {
			mine := events[part*len(events)/6 : (part+1)*len(events)/6]
			tell(r.Active(), mine)
			tell(one, mine)
			if part%2 == 0 { // else what waits is of the next interval
				r.Active().Flush()
				one.Flush()
			}
			if read != nil && <-read != want {
				t.Errorf("%v, interval %d is another", m, part-1)
			}
			want, read = must(one.Total()).Delay, make(chan estimate.Delay, 1)
			one.Reset()
			done := must(r.Rotate())
			go func(read chan estimate.Delay) {
				total, _ := done.Total()
				_, err := done.MarshalBinary()
				if err = errors.Join(err, r.Release(done)); err != nil {
					t.Error(err)
				}
				read <- total.Delay
			}(read)
		}
		r.Active().Flush() // only what waited, without any reference
		total, err := r.Active().Total()
		if <-read != want || err == nil && !(total.MeanInterval(0.95).High > total.Mean) {
			t.Errorf("%v, the last interval is another, or what waited has a mean of %+v", m, total)
		}
	}
	if _, err := rli.NewRotation(rli.Config{}); err == nil {
		t.Error("a rotation of nothing")
	}
}
