package control

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// A channel loses, duplicates, delays and damages control packets, each with a
// few per cent, and lets data packets overtake those that it delays.
type channel struct {
	random *rand.Rand
	now    int
	due    map[int][][]byte
	handed func([]byte)
}

func newChannel(random *rand.Rand, handed func([]byte)) *channel {
	return &channel{random: random, due: map[int][][]byte{}, handed: handed}
}

func (c *channel) send(data []byte) {
	copies := 1
	switch c.random.IntN(33) {
	case 0:
		copies = 0
	case 1:
		copies = 2
	}
	for range copies {
		copied, later := bytes.Clone(data), 0
		switch c.random.IntN(33) {
		case 0:
			later = c.random.IntN(40)
		case 1:
			for range 1 + c.random.IntN(8) {
				copied[c.random.IntN(len(copied))] ^= 1 << c.random.IntN(8)
			}
		}
		c.due[c.now+later] = append(c.due[c.now+later], copied)
	}
	c.deliver()
}

// step lets time pass.
func (c *channel) step() {
	c.deliver()
	c.now++
}

func (c *channel) deliver() {
	all := c.due[c.now]
	delete(c.due, c.now)
	for _, data := range all {
		c.handed(data)
	}
}

const (
	soakPackets = 20   // data packets in an interval
	soakRestart = 1000 // intervals, after which the sender starts again
)

// soakDelay is the delay of all packets of an interval, which its neighbours have
// not.
func soakDelay(session, interval uint64) int64 {
	return int64(1000 + (session*soakRestart+interval)%997)
}

// A soaked link is one whose intervals go through channels in both directions.
// It counts the intervals reported, usable, usable by some of their parts, and
// without a marker.
type soaked struct {
	t                                        *testing.T
	sender                                   *Sender
	receiver                                 *Receiver
	there, back                              *channel
	reported, usable, partly, noStart, noEnd int
}

// add judges a report. All packets of an interval have one delay, so an
// estimate is right only if it is that and deviates by 0.
func (s *soaked) add(r *Report) {
	intervals := int(r.Interval - r.First + 1)
	s.reported += intervals
	switch {
	case errors.Is(r.Err, ErrStart):
		s.noStart += intervals
	case errors.Is(r.Err, ErrEnd):
		s.noEnd += intervals
	case r.Err == nil:
		s.usable++
		if r.Came < 1 {
			s.partly++
		}
		if r.Result.Mean != float64(soakDelay(r.Session, r.Interval)) || r.Result.StdDev != 0 {
			s.t.Errorf("wrong: %+v", r)
		}
	}
}

// run passes an interval of packets, one in twenty lost.
func (s *soaked) run(random *rand.Rand, session, number uint64) {
	start, _ := s.sender.Start(nil)
	s.there.send(start)
	for range soakPackets {
		p, now := hashing.Packet(random.Uint64()), int64(s.there.now)*1000
		s.sender.Update(p, now)
		if random.IntN(20) > 0 {
			s.receiver.Update(p, now+soakDelay(session, number))
		}
		s.there.step()
		s.back.step()
	}
	end, _ := s.sender.End(nil)
	s.there.send(end)
	for data := range s.sender.Parts() {
		s.there.send(data)
	}
}

// Control packets through a bad channel: no wrong estimate, every kind of
// failure seen, memory as it was after a tenth.
func TestSoak(t *testing.T) {
	const intervals, slack = 20_000, 64 << 10
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	random := rand.New(rand.NewPCG(11, 12))
	tuner := lda.Tuner{Config: lda.Config{Identity: 1, Banks: [lda.MaxBanks]lda.Bank{{Rows: 16, Shift: 0}, {Rows: 8, Shift: 2}},
		SumBits: 40, DigestBits: 28}}
	s := &soaked{t: t}
	s.receiver, _ = NewReceiver(tuner)
	s.back = newChannel(random, func(data []byte) { _ = s.sender.Feedback(data) }) // whatever it says of damage
	var reports []Report
	s.there = newChannel(random, func(data []byte) {
		reports, _ = s.receiver.Receive(data, reports[:0])
		for i := range reports {
			s.add(&reports[i])
			if data := s.receiver.AppendFeedback(nil, &reports[i]); data != nil {
				s.back.send(data)
			}
		}
	})
	var early uint64
	for i := range intervals {
		session, number := uint64(i/soakRestart), uint64(i%soakRestart)
		if number == 0 {
			s.sender, _ = NewSender(tuner, session, 128)
		}
		if s.run(random, session, number); i == intervals/10 {
			early = heap()
		}
	}
	if late := heap(); late > early+slack {
		t.Errorf("heap grew from %d to %d bytes", early, late)
	}
	// Two markers come in time, and one part of four at all, 84 times in a
	// hundred; 20 times some part is missing.
	if share := float64(s.usable) / intervals; share < 0.78 || share > 0.9 || s.partly < intervals/10 || s.partly > intervals/3 {
		t.Errorf("%d of %d intervals usable, %d by some of their parts", s.usable, intervals, s.partly)
	}
	if s.noStart == 0 || s.noEnd == 0 {
		t.Errorf("%d intervals without their start, %d without their end", s.noStart, s.noEnd)
	}
	// An interval of which nothing was heard before the sender's restart is
	// one that nobody can report.
	if lost := intervals - s.reported; lost < 0 || lost > 2*intervals/soakRestart+2 {
		t.Errorf("%d of %d intervals reported", s.reported, intervals)
	}
}
