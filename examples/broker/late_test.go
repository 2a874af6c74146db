package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
)

// After a transport was cut for long, reports of silence are followed by one of
// all that came late: every packet is in one, and their numbers rise, so that
// whoever reads the same records again knows which reports there were.
func TestLateRecords(t *testing.T) {
	const cut, cuts, before, away = 10 * time.Millisecond, 220, 40, 150
	c := hoplag.Config{Key: hoplag.NewKey("a key of sixteen bytes and more"), Cut: cut}
	var points [2]*hoplag.Point
	var records [2][][]byte
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range points {
		var err error
		if points[i], err = hoplag.NewPoint(c); err != nil {
			t.Fatal(err)
		}
		defer points[i].Close()
		all.Go(func() {
			for r := range points[i].Records(ctx) {
				if records[i] = append(records[i], r); len(records[i]) == cuts {
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	sent := uint64(0)
	time.Sleep(15 * cut)
	for i := range uint64(150) {
		points[0].PassedNumber(i)
		points[1].PassedNumber(i)
		time.Sleep(cut)
		sent++
	}
	<-done
	pair, err := hoplag.NewPair(c, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	at, number, received := time.Now(), int64(0), uint64(0)
	take := func(i int, after time.Duration) {
		at = at.Add(after)
		pair.At(at)
		for end, take := range []func([]byte) error{pair.TakeFirst, pair.TakeSecond} {
			if i >= 0 && i < len(records[end]) {
				if err := take(records[end][i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		for r, ok := pair.Next(); ok; r, ok = pair.Next() {
			if received += r.Forth.Received; number > 0 && r.Number <= number {
				t.Errorf("report %d comes after %d", r.Number, number)
			}
			number = r.Number
		}
	}
	for i := range before {
		take(i, cut)
	}
	for range away {
		take(-1, cut) // nothing comes
	}
	for i := before; i < before+away; i++ {
		take(i, 0) // then all of it
	}
	for i := before + away; i < cuts+50; i++ {
		take(i, cut)
	}
	if received != sent {
		t.Errorf("reports have %d packets of %d", received, sent)
	}
}
