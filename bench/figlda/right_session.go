package figlda

import (
	"bytes"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// A path is a session in the making.
type path struct {
	setting
	random   *rand.Rand
	tuner    lda.Tuner
	sender   *control.Sender
	receiver *control.Receiver
	session  uint64
	interval uint64 // of the session
	now      int64
	burst    bool // losses go on
	before   hashing.Packet
	late     []passed // packets that the next marker overtakes
	truths   map[reportKey]*truth
	reports  []control.Report
	found    judged
}

type passed struct {
	id hashing.Packet
	at int64
}

const (
	sessionIntervals = 10
	troubled         = 4 // the interval that something happens in
)

// session runs intervals and judges every report.
func (s setting) session(random *rand.Rand) *judged {
	p := &path{setting: s, random: random, tuner: lda.Tuner{Config: lda.DefaultConfig}, session: 1 << 40,
		now: int64(random.Uint64N(1 << 60)), truths: map[reportKey]*truth{}}
	p.sender = experiment.Try(control.NewSender(p.tuner, p.session, 1472))
	p.receiver = experiment.Try(control.NewReceiver(p.tuner))
	for k := range sessionIntervals {
		p.run(k)
	}
	p.reports = p.receiver.Flush(p.reports)
	p.judge()
	return &p.found
}

func (p *path) receive(data []byte) {
	p.reports, _ = p.receiver.Receive(data, p.reports)
	p.judge()
}

func (p *path) judge() {
	for i := range p.reports {
		r := &p.reports[i]
		p.found.judge(r, p.truths, p.delay)
		if data := p.receiver.AppendFeedback(nil, r); data != nil && p.random.IntN(4) > 0 {
			_ = p.sender.Feedback(data) // of a session before, after a restart
		}
	}
	p.reports = p.reports[:0]
}

// run passes an interval.
func (p *path) run(k int) {
	is := &truth{offset: p.offset}
	p.truths[reportKey{p.session, p.interval}] = is
	p.receive(experiment.Try(p.sender.Start(nil)))
	for _, packet := range p.late {
		p.receiver.Update(packet.id, packet.at)
	}
	p.late = p.late[:0]
	for i := range p.packets {
		if k == troubled && i == p.packets/2 {
			is = p.happen()
		}
		p.pass(is, i)
	}
	p.receive(experiment.Try(p.sender.End(nil)))
	for data := range p.sender.Parts() {
		if p.trouble == lostParts && p.random.IntN(100) == 0 {
			continue
		}
		p.receive(bytes.Clone(data))
	}
	p.interval++
}

// pass passes a packet.
func (p *path) pass(is *truth, i int) {
	id := hashing.Packet(p.random.Uint64())
	if p.trouble == identical && p.random.IntN(100) == 0 {
		id = p.before
	}
	p.before = id
	p.now += 1000
	p.sender.Update(id, p.now)
	if p.lost() {
		return
	}
	delay := int64(p.delay * p.tail.draw(p.random))
	arrival := passed{id, p.now + delay + p.offset}
	is.sum += delay
	is.n++
	if p.trouble == crossing && i >= p.packets-3 {
		p.late = append(p.late, arrival)
		return
	}
	p.receiver.Update(id, arrival.at)
	if p.trouble == duplicates && p.random.IntN(1000) == 0 {
		p.receiver.Update(id, arrival.at+1000)
	}
}

func (p *path) lost() bool {
	if p.trouble != burstLoss {
		return p.random.Float64() < p.loss
	}
	const length = 50
	if p.burst {
		p.burst = p.random.IntN(length) > 0
	} else {
		p.burst = p.random.Float64()*length*(1-p.loss) < p.loss
	}
	return p.burst
}

// happen restarts a point or sets a clock, and returns the truth that goes on.
func (p *path) happen() *truth {
	is := p.truths[reportKey{p.session, p.interval}]
	switch p.trouble {
	case restarts:
		if p.random.IntN(3) == 0 {
			p.receiver = experiment.Try(control.NewReceiver(p.tuner))
			return is
		}
		p.session += p.random.Uint64N(3) - 1 // the same number, too
		p.interval = 0
		p.sender = experiment.Try(control.NewSender(p.tuner, p.session, 1472))
		p.receive(experiment.Try(p.sender.Start(nil)))
		is = &truth{offset: p.offset}
		p.truths[reportKey{p.session, 0}] = is
	case steps:
		by := []int64{37e6, -37e6, 3600e9}[p.random.IntN(3)]
		if p.random.IntN(2) == 0 {
			p.sender.ClockSet()
			p.now += by
			p.offset -= by
		} else {
			p.receiver.ClockSet()
			p.offset += by
		}
	}
	return is
}
