package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
)

// A total is what really passed a pair of points.
type total struct {
	Pair           string
	Sent, Received uint64
	Mean           float64 // ns
}

// pointsDelay is the mean of the delays of -role points, and one message in
// pointsLoss is lost.
const (
	pointsDelay = 5 * time.Millisecond
	pointsLoss  = 100
)

// points plays pairs of points that messages pass, publishes what they record,
// and prints at the end what really passed.
func (f *fleet) points(ctx context.Context, o *options, stdout io.Writer) error {
	totals := make([]total, o.pairs)
	var all sync.WaitGroup
	for i := range totals {
		totals[i].Pair = fmt.Sprintf("pair-%d", i)
		first, err := hoplag.NewPoint(o.config())
		if err != nil {
			return err
		}
		defer first.Close()
		second, err := hoplag.NewPoint(o.config())
		if err != nil {
			return err
		}
		defer second.Close()
		all.Go(func() {
			recording, stop := context.WithCancel(ctx)
			defer stop()
			go f.publish(recording, first, totals[i].Pair, 1)
			go f.publish(recording, second, totals[i].Pair, 2)
			sleep(ctx, time.Second) // messages are counted from the first record on
			totals[i].pass(ctx, first, second, o.duration)
			sleep(ctx, 5*time.Second) // for the last reports
		})
	}
	all.Wait()
	for _, t := range totals {
		data, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if !o.json {
			data = fmt.Appendf(nil, "%-10s %9d sent %9d received %12s mean", t.Pair, t.Sent, t.Received, hoplag.Format(t.Mean))
		}
		if _, err := fmt.Fprintf(stdout, "%s\n", data); err != nil {
			return err
		}
	}
	return nil
}

// pass has messages pass for a while.
func (t *total) pass(ctx context.Context, first, second *hoplag.Point, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var mu sync.Mutex
	var under sync.WaitGroup
	for ctx.Err() == nil {
		t.Sent++
		number := t.Sent
		began := time.Now()
		first.PassedNumber(number)
		if number%pointsLoss != 0 {
			under.Add(1)
			time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(pointsDelay)), func() {
				defer under.Done()
				second.PassedNumber(number)
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				t.Received++
				t.Mean += (float64(took) - t.Mean) / float64(t.Received)
			})
		}
		sleep(ctx, 2*time.Millisecond)
	}
	under.Wait()
}
