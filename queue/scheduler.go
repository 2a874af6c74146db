package queue

import "math"

// A Class is one of the two classes of a [Scheduler].
type Class uint8

// The classes.
const (
	High    Class = iota // goes first
	Low                  // goes second
	Classes              // the number of classes
)

// A SchedulerConfig describes a link that two classes of packets share, each
// with its own queue.
type SchedulerConfig struct {
	Rate        int64                // drain rate, bits per second, 1,000 to 10^15
	Propagation int64                // ns from the transmitter to the far end, 0 to 10^15
	Queues      [Classes]QueueConfig // which packets may join each class's queue
	Loss        LossConfig           // on the wire
	Seed        uint64               // for RED and Loss
}

func (c SchedulerConfig) validate() error {
	link := LinkConfig{Rate: c.Rate, Propagation: c.Propagation, Loss: c.Loss}
	for _, q := range c.Queues {
		link.Queue = q
		if err := link.validate(); err != nil {
			return err
		}
	}
	return nil
}

// A Scheduler is a work-conserving link that serves two classes by strict priority,
// each in order of arrival. It never interrupts a packet in transmission. Packets go
// in by Send in order of their Time, and come out by Next in order of their new Time.
// It is for a single user and has no locks.
type Scheduler struct {
	classes [Classes]classQueue
	server  server
	wire    Loss
	delay   int64

	busy    bool  // a packet is in transmission,
	serving Class // of this class,

	now    int64
	onWay  ring[Packet]
	counts [Classes]Counts
}

// A classQueue is what a Scheduler keeps for one class.
type classQueue struct {
	gate    gate
	waiting ring[Packet]
	packets int // backlog, including the packet in transmission
}

// NewScheduler returns an idle Scheduler. The error wraps
// [estimate.ErrConfig].
func NewScheduler(c SchedulerConfig) (*Scheduler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		server: newServer(c.Rate, 0),
		wire:   newLoss(c.Loss, c.Seed),
		delay:  c.Propagation,
		now:    math.MinInt64,
	}
	for i := range s.classes {
		// Two classes must not draw the same random numbers.
		s.classes[i].gate = newGate(c.Queues[i], c.Rate, c.Seed+uint64(i))
	}
	return s, nil
}

// Send puts a copy of *p into the link at p.Time. It ignores p.Fate. If the fate
// returned is Passed, the packet comes out of Next once; otherwise it never does.
// Times must not decrease, neither from Send to Send nor from the until of a Next to a
// Send; a packet that breaks this, or is of no known class, is Refused.
func (s *Scheduler) Send(p *Packet) Fate {
	if p.Time < s.now || p.Bytes < 1 || p.Class >= Classes {
		s.counts[min(p.Class, Low)].add(Refused, 0)
		return Refused
	}
	s.run(p.Time)
	q := &s.classes[p.Class]
	if fate := q.gate.admit(p.Time, q.packets); fate != Passed {
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
	if !s.busy {
		s.serve()
	}
	return Passed
}

// Next stores in *p the next packet that comes out at or before until, and reports
// whether there was one. Its Fate is Passed; or Lost, at the time it would have come
// out if the wire had not lost it. Call Next until it returns false before each Send,
// or only at the end, with Next(math.MaxInt64, p): what comes out is the same.
func (s *Scheduler) Next(until int64, p *Packet) bool {
	if until > s.now {
		s.run(until)
	}
	if s.onWay.len() == 0 || s.onWay.front().Time > until {
		return false
	}
	*p = *s.onWay.front()
	s.onWay.drop()
	return true
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
		if q.packets--; q.packets == 0 {
			q.gate.idle(s.server.emptied())
		}
		if s.classes[High].waiting.len()+s.classes[Low].waiting.len() > 0 {
			s.serve()
		}
	}
}

// serve begins to transmit one of the waiting packets: there is one.
func (s *Scheduler) serve() {
	c := High
	if s.classes[High].waiting.len() == 0 {
		c = Low
	}
	q := &s.classes[c]
	p := *q.waiting.front()
	q.waiting.drop()
	s.busy, s.serving = true, c
	done, _ := s.server.serve(p.Time, p.Bytes)
	p.Time, p.Fate = done+s.delay, Passed
	if s.wire.Drop() {
		p.Fate = Lost
	}
	s.counts[c].add(p.Fate, p.Bytes)
	s.onWay.push(p)
}
