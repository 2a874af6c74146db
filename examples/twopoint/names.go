package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
	"github.com/hoplag/hoplag/queue/trace"
)

const (
	nameCut    = 10e6    // ns between cuts of the counters that names are found by
	nameReport = 40      // cuts between searches at least
	mostSent   = 1 << 20 // packets sent that are kept for a search
)

// A namer names the packets that were lost, from counters of its own and what was
// sent recently, but not from what arrived.
type namer struct {
	config lda.Config
	points [2]*lda.Sparse
	total  *lda.Accumulator
	first  int64 // time of the first packet
	end    int64 // of the present cut
	cuts   int
	due    int // cuts at the next search
	sent   []sending
	named  []named
}

type sending struct {
	packet       hashing.Packet
	time, number int64
}

// named is a packet of the first capture that was lost.
type named struct {
	Number   int64 // of the packets measured, from 1
	Seconds  float64
	Repeated bool `json:",omitempty"`
}

func newNamer() (n *namer, err error) {
	n = &namer{config: lda.DefaultConfig, due: nameReport}
	n.config.DigestBits = 32
	n.total, err = lda.NewAccumulator(n.config)
	for i := range n.points {
		if err == nil {
			n.points[i], err = lda.NewSparse(n.config)
		}
	}
	return n, err
}

// pass takes a packet. Times do not descend.
func (n *namer) pass(side trace.Side, p hashing.Packet, t, number int64) {
	if n.end == 0 {
		n.first, n.end = t, t+nameCut
	}
	if t >= n.end {
		n.cut(n.end + (t-n.end)/nameCut*nameCut)
	}
	n.points[side].Update(p, t)
	if side == trace.Ingress {
		n.sent = append(n.sent, sending{p, t, number})
	}
}

// cut ends a cut at a time, and searches now and then.
func (n *namer) cut(end int64) {
	// Both are of one Config, and the cuts are in order.
	_ = n.total.Add(n.end-nameCut, end, &n.points[trace.Ingress].Aggregator, &n.points[trace.Egress].Aggregator)
	n.points[trace.Ingress].Reset()
	n.points[trace.Egress].Reset()
	n.end = end + nameCut
	if n.cuts++; n.cuts >= n.due {
		n.total.End()
		n.total.Estimate() // tells it how long packets take: the longer, the more each search walks through
		n.due = n.cuts + max(nameReport, n.total.Settling())
	}
	for n.total.Settled() {
		n.search()
		n.total.Reset()
	}
}

func (n *namer) search() {
	var trails []areas.Trail
	n.total.Trails(func(t areas.Trail) { trails = append(trails, t) })
	f, err := lost.NewFinder(n.config, trails)
	if err != nil || len(trails) == 0 {
		return
	}
	for _, s := range n.sent {
		f.Offer(s.packet, uint64(s.number), s.time)
	}
	names := f.Names(lost.Budget)
	for _, one := range names.Names {
		n.named = append(n.named, named{int64(one.ID), float64(one.Sent-n.first) / 1e9, one.Repeated})
	}
	n.total.TakeOut(names.Lost(n.config, trails))
	n.sent = n.sent[max(0, len(n.sent)-mostSent):]
}

// finish waits for the last ones.
func (n *namer) finish() {
	for range 100 {
		n.cut(n.end)
	}
	slices.SortFunc(n.named, func(x, y named) int { return cmp.Compare(x.Number, y.Number) })
}

// writeNames prints how many packets were lost, and some of them by name.
func (r *report) writeNames(w io.Writer) error {
	sent, lost := 0.0, 0.0
	for i := range r.Intervals {
		sent, lost = sent+r.Intervals[i].Sent.LDA, lost+r.Intervals[i].Lost.LDA
	}
	fmt.Fprintf(w, "\nlost: %s of %s packets, %.3f %%", thousands(lost), thousands(sent), 100*lost/sent)
	for i, one := range r.Named[:min(len(r.Named), 3)] {
		if i == 0 {
			fmt.Fprintf(w, "; %s are named, %d of them wrongly", thousands(len(r.Named)), r.NamedWrongly)
		}
		fmt.Fprintf(w, ", number %s at %.6f s", thousands(one.Number), one.Seconds)
	}
	_, err := fmt.Fprintln(w)
	return err
}
