package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
)

// A stored is a record in the broker.
type stored struct {
	at      time.Time
	subject string
	data    []byte
}

// storedOf is what the broker stores of a pair with two shards an end, each with
// a network of its own, which are cut for ten seconds. What shards kept comes
// afterwards, one after the other.
func storedOf(t *testing.T, c hoplag.Config, seed uint64) (stream []stored, passed total) {
	const begin, cut, mended = 3 * time.Second, 6 * time.Second, 16 * time.Second
	r := rand.New(rand.NewPCG(seed, 0))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var recording sync.WaitGroup
	var ends [2][]*hoplag.Point
	for i := range 4 {
		p := relay.Must(hoplag.NewPoint(c))(t)
		defer p.Close()
		ends[i/2] = append(ends[i/2], p)
		subject := fmt.Sprintf("%s0.pair.%d.%d", recordPrefix, i/2+1, i%2)
		from, to, each := began.Add(cut-upTo(time.Second)), began.Add(mended+upTo(2*time.Second)), upTo(3*time.Millisecond)
		recording.Go(func() {
			for record := range p.Records(ctx) {
				if now := time.Now(); now.After(from) && now.Before(to) {
					time.Sleep(to.Sub(now))
				}
				time.Sleep(each)
				mu.Lock()
				stream = append(stream, stored{time.Now(), subject, record})
				mu.Unlock()
			}
		})
	}
	time.Sleep(begin)
	passed.Pair = "pair"
	passed.pass(ctx, ends, mended, 500)
	time.Sleep(5 * time.Second)
	cancel()
	recording.Wait()
	return stream, passed
}

// A collector takes over at any moment, even while what came of a cut network is read: all messages are in its
// reports or in those that were published before, once.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &options{key: testKey, cut: 100 * time.Millisecond, cells: 640}
		for _, seed := range []uint64{7, 10} { // both fail if a silence counts as time, or clocks follow a backlog
			stream, passed := storedOf(t, f.config(), seed)
			first := newPartition(f.config())
			var published []hoplag.Report
			follow(first, stream, func(i int) {
				published = append(published, made(first)...)
				if at := stream[i].at.Sub(stream[0].at); at < 15*time.Second || i%23 != 0 {
					return
				}
				second, all := newPartition(f.config()), published[:len(published):len(published)]
				from := 0
				for stream[from].at.Before(first.from()) {
					from++
				}
				follow(second, stream[from:], func(int) {
					for _, r := range made(second) {
						if r.Number > all[len(all)-1].Number {
							all = append(all, r)
						}
					}
				})
				if err := passed.check(all); err != nil {
					t.Errorf("seed %d, record %d of %d: %v", seed, i, len(stream), err)
				}
			})
			for _, r := range published {
				if r.Forth.Received > 100 && r.Forth.Err != nil {
					t.Errorf("seed %d: %v", seed, r)
				}
			}
		}
	})
}

// follow makes the reports of a stream, and calls f after each record.
func follow(p *partition, stream []stored, f func(i int)) {
	for i, s := range stream {
		p.advance(s.at)
		p.take(s.at, s.subject, s.data)
		f(i)
	}
	for range 100 {
		p.advance(p.tick.Add(every))
		f(len(stream) - 1)
	}
}

// made takes the reports that are made.
func made(p *partition) (all []hoplag.Report) {
	for _, t := range p.pairs {
		all, t.due = append(all, t.due...), nil
	}
	return all
}
