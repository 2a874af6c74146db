package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Once all packets that were lost are taken out, every window is exact, and each
// loss is counted once.
func TestTakeOut(t *testing.T) {
	const cells, cuts, window, settling = 50, 120, 10, 10
	random := rand.New(rand.NewPCG(27, 1))
	packets := areaTraffic(random, cells, cuts, 2, 0.3, 0, 0.1)
	a := NewAreas([]int{cells}, 64, 32)
	begin, total, want := 0, 0, 0
	for from := 0; from+window+settling <= cuts; from += window {
		addAreas(a, cells, packets, begin, from+window+settling)
		begin = from + window + settling
		end := int64(begin) * areaLength
		a.Transit(from, from+window, nil)
		var lost []Lost
		known := map[int][]Lost{}
		a.Trails(from, from+window, func(trail Trail) {
			var on []Lost
			for _, p := range packets {
				if p.cell == trail.Cell && p.sent >= trail.Until && p.sent < end && (p.received == 0 || p.received >= end) {
					on = append(on, lostOf(p))
				}
			}
			if trail.Open {
				known[trail.Cell] = on
			}
			for _, p := range packets {
				started := p.sent >= trail.From || slices.Contains(trail.Start, lostOf(p))
				if p.cell == trail.Cell && p.received == 0 && p.sent < trail.Until && started {
					lost = append(lost, lostOf(p))
				}
			}
		})
		n := a.TakeOut(lost, known)
		if again := a.TakeOut(lost, known); again != 0 {
			t.Errorf("%d of %d taken out again", again, n)
		}
		time, received := onTheWay(packets, int64(from)*areaLength, int64(from+window)*areaLength)
		got, err := a.Transit(from, from+window, nil)
		if err != nil || math.Abs(got.Mean*got.Received-time) > 1e-6*time {
			t.Errorf("from cut %d: %v for %v packets, want %v for %v", from, got.Mean*got.Received, got.Received, time, received)
		}
		l, extra := a.Losses(from + window)
		total += l - extra
		a.Settle(from + window)
		for _, p := range packets {
			if p.received == 0 && p.sent >= int64(from)*areaLength && p.sent < int64(from+window)*areaLength {
				want++
			}
		}
		if total != want {
			t.Errorf("by cut %d: %d lost, want %d", from+window, total, want)
		}
	}
}

func lostOf(p passing) Lost { return Lost{p.cell, int(p.sent/areaLength) + 1, p.digest, p.sent} }

func addAreas(a *Areas, cells int, packets []passing, from, to int) {
	for k := int64(from); k < int64(to); k++ {
		pairs := make([]CellPair, cells)
		for _, p := range packets {
			tally := uint64(p.digest)<<32 | 1
			c := &pairs[p.cell]
			if p.sent/areaLength == k {
				c.SentSum += uint64(p.sent)
				c.SentTally += tally
			}
			if p.received > 0 && p.received/areaLength == k {
				c.ReceivedSum += uint64(p.received)
				c.ReceivedTally += tally
			}
		}
		for i, c := range pairs {
			if c != (CellPair{}) {
				a.Cut(i, c)
			}
		}
		a.Next((k + 1) * areaLength)
	}
}
