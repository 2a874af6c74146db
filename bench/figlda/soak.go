package figlda

import (
	"bytes"
	"errors"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// A channel loses, duplicates, delays and damages control packets, each with a
// few per cent, and lets data packets overtake those that it delays.
type channel struct {
	random *rand.Rand
	now    int
	flying []flight
	handed func([]byte)
}

type flight struct {
	due  int
	data []byte
}

func (c *channel) send(data []byte) {
	const percent = 3
	copies := 1
	switch c.random.IntN(100 / percent) {
	case 0:
		copies = 0
	case 1:
		copies = 2
	}
	for range copies {
		f := flight{due: c.now, data: bytes.Clone(data)}
		switch c.random.IntN(100 / percent) {
		case 0:
			f.due += c.random.IntN(40)
		case 1:
			for range 1 + c.random.IntN(8) {
				bit := c.random.IntN(8 * len(data))
				f.data[bit/8] ^= 1 << (bit % 8)
			}
		}
		c.flying = append(c.flying, f)
	}
	c.deliver()
}

// step lets time pass.
func (c *channel) step() {
	c.now++
	if len(c.flying) > 0 {
		c.deliver()
	}
}

func (c *channel) deliver() {
	kept := c.flying[:0]
	for _, f := range c.flying {
		if f.due <= c.now {
			c.handed(f.data)
		} else {
			kept = append(kept, f)
		}
	}
	c.flying = kept
}

// reasons are why an interval may be unusable.
var reasons = []struct {
	name string
	err  error
}{{"start lost", control.ErrStart}, {"end lost", control.ErrEnd}, {"parts lost", control.ErrParts}, {"packets crossed", control.ErrCrossed}}

// soaked is what came of a soak.
type soaked struct {
	reported, usable int
	partly           int // usable, of some cells only, as parts were lost
	wrong            int // reported as good, and not
	crossed          int // refused because packets crossed, and rightly
	because          [4]int
	control, bytes   int // packets sent, and their size, feedback aside
	counters         control.Counters
}

const (
	soakPackets = 20   // data packets in an interval
	soakRestart = 1000 // intervals, after which the sender starts again
)

// soakConfig is of the size that suits them.
func soakConfig(digestBits uint8) lda.Config {
	return lda.Config{
		Identity: 1,
		Banks:    [lda.MaxBanks]lda.Bank{{Rows: 16, Shift: 0}, {Rows: 8, Shift: 2}},
		SumBits:  sumBits, DigestBits: digestBits,
	}
}

// delayOf is the delay of all packets of an interval, which its neighbours have
// not.
func delayOf(session, interval uint64) int64 { return int64(1000 + (session*soakRestart+interval)%997) }

// soak runs intervals through the channel, in both directions. All packets of
// an interval have one delay, so an estimate is right only if it is that and
// deviates by 0. After each interval look is called.
func soak(run *experiment.Run, random *rand.Rand, intervals int, config lda.Config,
	look func(done int, s *control.Sender, r *control.Receiver)) *soaked {
	tuner := lda.Tuner{Config: config}
	receiver := experiment.Try(control.NewReceiver(tuner))
	var sender *control.Sender
	var result soaked
	var reports []control.Report
	back := &channel{random: random, handed: func(data []byte) { _ = sender.Feedback(data) }} // whatever it says of damage
	there := &channel{random: random}
	there.handed = func(data []byte) {
		reports, _ = receiver.Receive(data, reports[:0]) // counted in receiver.Counters
		for i := range reports {
			result.add(&reports[i])
			if data := receiver.AppendFeedback(nil, &reports[i]); data != nil {
				back.send(data)
			}
		}
	}
	send := func(data []byte) {
		result.control++
		result.bytes += len(data)
		there.send(data)
	}
	for i := range run.Times(intervals) {
		session, number := uint64(i/soakRestart), uint64(i%soakRestart)
		if number == 0 {
			sender = experiment.Try(control.NewSender(tuner, session, 128))
		}
		send(experiment.Try(sender.Start(nil)))
		for k := range soakPackets {
			now := int64(i*soakPackets+k) * 1000
			p := hashing.Word(config.Identity, uint64(now))
			sender.Update(p, now)
			if random.IntN(20) > 0 {
				receiver.Update(p, now+delayOf(session, number))
			}
			there.step()
			back.step()
		}
		send(experiment.Try(sender.End(nil)))
		for data := range sender.Parts() {
			send(data)
		}
		look(i+1, sender, receiver)
	}
	for _, r := range receiver.Flush(nil) {
		result.add(&r)
	}
	result.counters = receiver.Counters()
	return &result
}

// add judges a report by the delay that every packet of its interval had.
func (s *soaked) add(r *control.Report) {
	s.reported += int(r.Interval - r.First + 1)
	right := r.Result.Mean == float64(delayOf(r.Session, r.Interval)) && r.Result.StdDev == 0
	switch {
	case r.Err == nil && right:
		s.usable++
		if r.Came < 1 {
			s.partly++
		}
	case r.Err == nil:
		s.wrong++
	case errors.Is(r.Err, control.ErrCrossed) && !right:
		s.crossed++
	}
	for i, why := range reasons {
		if errors.Is(r.Err, why.err) {
			s.because[i] += int(r.Interval - r.First + 1)
		}
	}
}
