package paper

import (
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

var paperConfig = Config{Identity: 3, Counters: 3000, PerFlow: 20, Bits: 60, TimeBits: 40, Vectors: 1}

type (
	passage = traffic.Passage
	truth   = traffic.Truth
)

// recorded is what both points hold of some traffic.
func recorded(t testing.TB, c Config, all []passage) (up, down *Recorder) {
	t.Helper()
	up, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	down, _ = New(c)
	for _, p := range all {
		if up.Update(p.Flow, p.Packet, p.Sent) != nil || down.Update(p.Flow, p.Packet, p.At) != nil {
			t.Fatal("an epoch ended")
		}
	}
	return up, down
}

// A query asks two points, again and again, without new memory.
type query struct {
	t                    testing.TB
	up, down             *Subvector
	upEpochs, downEpochs []*Epoch
}

func newQuery(t testing.TB, up, down *Epoch) *query {
	q := &query{t: t, upEpochs: []*Epoch{up}, downEpochs: []*Epoch{down}}
	var err error
	if q.up, err = NewSubvector(up.config); err != nil {
		t.Fatal(err)
	}
	if q.down, err = NewSubvector(down.config); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *query) gather(f hashing.Flow) (up, down *Subvector) {
	q.t.Helper()
	q.up.Reset(f)
	q.down.Reset(f)
	for _, e := range q.upEpochs {
		if err := q.up.Add(e); err != nil {
			q.t.Fatal(err)
		}
	}
	for _, e := range q.downEpochs {
		if err := q.down.Add(e); err != nil {
			q.t.Fatal(err)
		}
	}
	return q.up, q.down
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
