package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/nats-io/nats.go/jetstream"
)

// A total is what really passed a pair of points.
type total struct {
	Pair           string
	Sent, Received uint64
	Known          []uint64 `json:",omitempty"` // numbers of messages that reports know to be lost
}

// pointsDelay is the mean delay with -role points, and one message in pointsLoss is lost.
const (
	pointsDelay = 5 * time.Millisecond
	pointsLoss  = 100
)

// points plays pairs of points that messages pass, publishes what they record, and finally prints
// what really passed. Each end consists of -shards points, and a message passes any of them.
func (f *fleet) points(ctx context.Context, o *options, rows *programs.Rows) error {
	totals := make([]total, o.pairs)
	var all sync.WaitGroup
	for i := range totals {
		totals[i].Pair = fmt.Sprintf("pair-%d", i)
		var ends [2][]*hoplag.Point
		for end := range ends {
			for range o.shards {
				p, err := hoplag.NewPoint(f.config)
				if err != nil {
					return err
				}
				defer p.Close()
				ends[end] = append(ends[end], p)
			}
		}
		all.Go(func() {
			recording, stop := context.WithCancel(ctx)
			defer stop()
			for end := range ends {
				for shard, p := range ends[end] {
					go f.publish(recording, p, totals[i].Pair, end+1, shard)
				}
			}
			f.begun(ctx, totals[i].Pair, 2*o.shards)
			totals[i].pass(ctx, ends, o.duration)
			sleep(ctx, 5*time.Second+10*o.cut) // for the last reports
			var err error
			if totals[i].Known, err = f.known(ctx, totals[i].Pair, ends[0][0], totals[i].Sent); err != nil {
				fmt.Fprintf(f.log, "%s: what was lost is not known: %v\n", totals[i].Pair, err)
			}
		})
	}
	all.Wait()
	for _, t := range totals {
		rows.Object(t)
	}
	return rows.Err
}

// known returns which of the numbers that a pair's points sent are lost by the
// reports: they have no names, but tell whoever has a log and the Key.
func (f *fleet) known(ctx context.Context, pair string, p *hoplag.Point, sent uint64) (numbers []uint64, err error) {
	consumer, err := f.js.OrderedConsumer(ctx, f.reports.CachedInfo().Config.Name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{fmt.Sprintf("%s%d.%s", reportPrefix, f.partition(pair), pair)},
	})
	if err != nil {
		return nil, err
	}
	var all hoplag.Delay
	for left := consumer.CachedInfo().NumPending; left > 0; left-- {
		m, err := consumer.Next()
		if err != nil {
			return nil, err
		}
		var some []hoplag.Report
		if err := json.Unmarshal(m.Data(), &some); err != nil {
			return nil, err
		}
		for _, r := range some {
			all.Traces = append(all.Traces, r.Forth.Traces...)
		}
	}
	for number := range sent + 1 {
		if lost, _ := p.Lost(&all, binary.LittleEndian.AppendUint64(nil, number)); lost {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// begun waits until the broker has 25 records of each point of a pair: losses are
// reported once the first reports have begun.
func (f *fleet) begun(ctx context.Context, pair string, points int) {
	filter := jetstream.WithSubjectFilter(fmt.Sprintf("%s%d.%s.>", recordPrefix, f.partition(pair), pair))
	for ready := 0; ready < points && ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		info, err := f.records.Info(ctx, filter)
		if ready = 0; err != nil {
			continue
		}
		for _, n := range info.State.Subjects {
			if n >= 25 {
				ready++
			}
		}
	}
}

// pass lets messages pass for a while.
func (t *total) pass(ctx context.Context, ends [2][]*hoplag.Point, d time.Duration) {
	some := func(end int) *hoplag.Point { return ends[end][rand.IntN(len(ends[end]))] }
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var received atomic.Uint64
	var under sync.WaitGroup
	for ; ctx.Err() == nil; sleep(ctx, 2*time.Millisecond) {
		t.Sent++
		number := t.Sent
		some(0).PassedNumber(number)
		if number%pointsLoss != 0 {
			under.Add(1)
			time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(pointsDelay)), func() {
				defer under.Done()
				some(1).PassedNumber(number)
				received.Add(1)
			})
		}
	}
	under.Wait()
	t.Received = received.Load()
}
