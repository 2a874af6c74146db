package main

import (
	"strings"
	"time"

	"github.com/hoplag/hoplag"
)

// A partition makes the reports of its pairs from records, from the times at which the broker stored
// them, and from nothing else. So any two workers that read the same records make the same reports,
// and one that takes over may begin in the middle of the stream: from says where.
type partition struct {
	config hoplag.Config
	pairs  map[string]*tracked
	stamp  time.Time // of the latest record
	tick   time.Time // reports are made up to here
}

// A tracked is a pair of points.
type tracked struct {
	pair   *hoplag.Pair
	marks  map[string][]time.Time // by end and shard: when some of its latest records arrived
	latest time.Time              // when its latest record arrived
	due    []hoplag.Report
}

const (
	// every is the time between requests for reports.
	every = 100 * time.Millisecond

	// mostMarks is how many marks of a shard are kept, ten in a warm-up. A silence takes only one: what
	// a shard kept in the meantime arrives all at once, and comparing it takes what arrived before.
	mostMarks = 12
)

func newPartition(c hoplag.Config) *partition {
	return &partition{config: c, pairs: map[string]*tracked{}}
}

// warmUp is how long a shard must have been heard before the latest reports: package hoplag waits at most 30
// cuts for packets on their way.
func (p *partition) warmUp() time.Duration { return max(10*time.Second, 100*p.config.Cut) }

// forget returns how long a silent pair is still reported.
func (p *partition) forget() time.Duration { return max(time.Minute, 100*p.config.Cut) }

// take takes a record that the broker stored, and reports whether it has the
// fleet's Key and Config: no other record can start a pair.
func (p *partition) take(stamp time.Time, subject string, record []byte) bool {
	p.stamp = stamp
	name := strings.Split(subject, ".")
	if len(name) != 6 || !pairName.MatchString(name[3]) || !pairName.MatchString(name[5]) {
		return false
	}
	t := p.pairs[name[3]]
	if t == nil {
		pair, err := hoplag.NewPair(p.config, name[3]+".1", name[3]+".2")
		if err != nil {
			return false
		}
		t = &tracked{pair: pair, marks: map[string][]time.Time{}}
	}
	t.pair.At(stamp)
	take := map[string]func(shard string, record []byte) error{"1": t.pair.TakeFirst, "2": t.pair.TakeSecond}[name[4]]
	if take == nil || take(name[5], record) != nil {
		return false
	}
	t.collect() // now, because many records may have arrived at once
	t.latest, p.pairs[name[3]] = stamp, t
	shard := name[4] + name[5]
	if marks := t.marks[shard]; len(marks) == 0 || stamp.Sub(marks[len(marks)-1]) >= p.warmUp()/10 {
		marks = append(marks, stamp)
		t.marks[shard] = marks[max(0, len(marks)-mostMarks):]
	}
	return true
}

// collect collects the reports that are ready.
func (t *tracked) collect() {
	for r, ok := t.pair.Next(); ok; r, ok = t.pair.Next() {
		t.due = append(t.due, r)
	}
}

// advance makes the reports that are due by the broker's clock, and reports whether it is time to.
func (p *partition) advance(now time.Time) bool {
	tick := now.Truncate(every)
	if !tick.After(p.tick) {
		return false
	}
	p.tick = tick
	for name, t := range p.pairs {
		t.pair.At(tick)
		t.collect()
		if tick.Sub(t.latest) > p.forget() && len(t.due) == 0 {
			delete(p.pairs, name)
		}
	}
	return true
}

// from returns the time in the stream from which a successor has to read, or the
// zero time if that is not known.
func (p *partition) from() (start time.Time) {
	for _, t := range p.pairs {
		for shard, marks := range t.marks {
			if p.tick.Sub(marks[len(marks)-1]) > p.forget() {
				delete(t.marks, shard)
			} else if start.IsZero() || marks[0].Before(start) {
				start = marks[0]
			}
		}
	}
	return start
}
