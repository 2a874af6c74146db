package lds

import (
	"errors"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

func TestPairTakesTurns(t *testing.T) {
	p, err := NewPair(shapes()["plain"])
	if err != nil {
		t.Fatal(err)
	}
	for interval := range uint64(5) {
		f := hashing.Flow(hashing.Word(1, interval))
		for range interval + 1 {
			p.Active().Update(f, 1, 1)
		}
		done, err := p.Rotate()
		if err != nil || done == p.Active() {
			t.Fatal(err)
		}
		if n := done.Packets(f); n != interval+1 {
			t.Errorf("interval %d has %d packets", interval, n)
		}
		if len(dump(p.Active())) > 0 {
			t.Errorf("interval %d begins with packets", interval+1)
		}
		active := p.Active()
		if _, err := p.Rotate(); !errors.Is(err, ErrBusy) || p.Active() != active {
			t.Errorf("rotating while the other is read: %v", err)
		}
		if err := p.Release(done); err != nil {
			t.Error(err)
		}
		if err := p.Release(mustNew(t, p.Active().Config())); err == nil {
			t.Error("a foreign sketch was taken back")
		}
	}
	if err := p.Release(mustNew(t, DefaultConfig)); !errors.Is(err, estimate.ErrMismatch) {
		t.Error(err)
	}
	if _, err := NewPair(Config{}); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
}

// TestPairLosesNothing: a reader in another goroutine adds up the intervals
// while the writer goes on. The race detector watches.
func TestPairLosesNothing(t *testing.T) {
	c := shapes()["spread"]
	p, err := NewPair(c)
	if err != nil {
		t.Fatal(err)
	}
	stream := packets(41, 5000, 50)
	total := mustNew(t, c)
	finished := make(chan *Sketch)
	var reader sync.WaitGroup
	reader.Add(1)
	go func() {
		defer reader.Done()
		for s := range finished {
			if err := total.Merge(s); err != nil {
				t.Error(err)
			}
			if err := p.Release(s); err != nil {
				t.Error(err)
			}
		}
	}()
	for i, packet := range stream {
		p.Active().Update(packet.flow, packet.packet, packet.sent)
		if i%100 == 99 {
			if done, err := p.Rotate(); err == nil {
				finished <- done
			} else if !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
		}
	}
	close(finished)
	reader.Wait()
	if err := total.Merge(p.Active()); err != nil {
		t.Error(err)
	}
	whole := mustNew(t, c)
	for _, packet := range stream {
		whole.Update(packet.flow, packet.packet, packet.sent)
	}
	if string(encode(t, whole)) != string(encode(t, total)) {
		t.Error("the intervals together are not the whole")
	}
}
