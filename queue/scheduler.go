package queue

import (
	"math"
)

// A Class is one of the two classes of a [Scheduler].
type Class uint8

// The classes.
const (
	High    Class = iota // goes first under strict priority
	Low                  // goes second
	Classes              // the number of classes
)

// A SchedulerConfig describes a link that two classes of packets share, each
// with its own queue.
type SchedulerConfig struct {
	Rate        int64                // drain rate, bits per second, 1,000 to 10^15
	Propagation int64                // ns from the transmitter to the far end, 0 to 10^15
	Queues      [Classes]QueueConfig // which packets may join each class's queue
	// Weights shares the link in proportion while both classes wait, by
	// deficit round robin: this many bytes for each class in turn, 64 to 10^9,
	// preferably at least the largest packet. If both are 0 the Scheduler uses
	// strict priority.
	Weights [Classes]int
	Loss    LossConfig // on the wire
	Seed    uint64     // for RED and Loss
}

func (c SchedulerConfig) validate() error {
	link := LinkConfig{Rate: c.Rate, Propagation: c.Propagation, Loss: c.Loss}
	for _, q := range c.Queues {
		link.Queue = q
		if err := link.validate(); err != nil {
			return err
		}
	}
	if c.Weights == [Classes]int{} {
		return nil
	}
	for _, w := range c.Weights {
		if w < 64 || w > 1e9 {
			return invalid("Weights", c.Weights, "64 to 10^9 for both classes, or 0 for both")
		}
	}
	return nil
}

// A Scheduler is a [Hop]: a work-conserving link that serves two classes, each
// in order of arrival. It never interrupts a packet in transmission. It is for
// a single user and has no locks.
type Scheduler struct {
	classes [Classes]classQueue
	strict  bool
	turn    Class // whose turn it is in the round robin
	granted bool  // whether it has its bytes for this turn
	server  server
	wire    Loss
	delay   int64

	busy    bool  // a packet is in transmission,
	serving Class // of this class,
	size    int32 // this many bytes

	now    int64
	onWay  ring[Packet]
	counts [Classes]Counts
}

// A classQueue is what a Scheduler keeps for one class.
type classQueue struct {
	gate    gate
	waiting ring[Packet]
	packets int   // backlog, including the packet in transmission
	bytes   int64 // likewise
	weight  int64
	deficit int64 // bytes it may still send in its turn
}

// NewScheduler returns an idle Scheduler. The error wraps
// [estimate.ErrConfig].
func NewScheduler(c SchedulerConfig) (*Scheduler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		strict: c.Weights == [Classes]int{},
		server: newServer(c.Rate, 0),
		wire:   newLoss(c.Loss, c.Seed),
		delay:  c.Propagation,
		now:    math.MinInt64,
	}
	for i := range s.classes {
		// Two classes must not draw the same random numbers.
		s.classes[i].gate = newGate(c.Queues[i], c.Rate, c.Seed+uint64(i))
		s.classes[i].weight = int64(c.Weights[i])
	}
	return s, nil
}

// Send implements [Hop]. A packet of no known class is Refused.
func (s *Scheduler) Send(p *Packet) Fate {
	if p.Time < s.now || p.Bytes < 1 || p.Class >= Classes {
		s.counts[min(p.Class, Low)].add(Refused, 0)
		return Refused
	}
	s.run(p.Time)
	q := &s.classes[p.Class]
	if fate := q.gate.admit(p.Time, q.packets, q.bytes, p.Bytes); fate != Passed {
		s.counts[p.Class].add(fate, p.Bytes)
		if q.packets == 0 {
			q.gate.idle(p.Time, 0)
		}
		return fate
	}
	q.waiting.push(*p)
	if q.gate.marked {
		q.waiting.back().Marked = true
		s.counts[p.Class].Marked++
	}
	q.packets++
	q.bytes += int64(p.Bytes)
	if !s.busy {
		s.serve()
	}
	return Passed
}

// Next implements [Hop].
func (s *Scheduler) Next(until int64, p *Packet) bool {
	if until > s.now {
		s.run(until)
	}
	return next(&s.onWay, until, p)
}

// Counts returns what became of the packets of a class. It does not yet count
// those that wait for their turn.
func (s *Scheduler) Counts(c Class) Counts { return s.counts[c] }

// run ends and begins every transmission due by time t.
func (s *Scheduler) run(t int64) {
	s.now = t
	for s.busy && s.server.gone() <= t {
		s.busy = false
		q := &s.classes[s.serving]
		q.bytes -= int64(s.size)
		if q.packets--; q.packets == 0 {
			q.gate.idle(s.server.emptied())
		}
		if s.classes[High].waiting.len()+s.classes[Low].waiting.len() > 0 {
			s.serve()
		}
	}
}

// serve begins to transmit one of the waiting packets.
func (s *Scheduler) serve() {
	c := s.pick()
	q := &s.classes[c]
	p := *q.waiting.front()
	q.waiting.drop()
	if q.waiting.len() == 0 {
		q.deficit = 0
	}
	s.busy, s.serving, s.size = true, c, p.Bytes
	done, _ := s.server.serve(p.Time, p.Bytes)
	p.Time, p.Fate = done+s.delay, Passed
	if s.wire.Drop() {
		p.Fate = Lost
	}
	s.counts[c].add(p.Fate, p.Bytes)
	s.onWay.push(p)
}

// pick chooses the class to serve next; at least one of them has a waiting
// packet.
func (s *Scheduler) pick() Class {
	if s.strict {
		if s.classes[High].waiting.len() > 0 {
			return High
		}
		return Low
	}
	for {
		q := &s.classes[s.turn]
		if q.waiting.len() > 0 {
			if !s.granted {
				q.deficit += q.weight
				s.granted = true
			}
			if size := int64(q.waiting.front().Bytes); size <= q.deficit {
				q.deficit -= size
				return s.turn
			}
		}
		s.turn, s.granted = 1-s.turn, false
	}
}
