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

// soaked is what came of a soak.
type soaked struct {
	reported, usable int
	partly           int // usable, of some cells only, as parts were lost
	wrong            int // reported as good, and not
	crossed          int // refused because packets crossed, and rightly
	noStart, noEnd   int
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

// add judges a report by the delay that every packet of its interval had.
func (s *soaked) add(r *Report) {
	intervals := int(r.Interval - r.First + 1)
	s.reported += intervals
	right := r.Result.Mean == float64(soakDelay(r.Session, r.Interval)) && r.Result.StdDev == 0
	switch {
	case r.Err == nil && right:
		s.usable++
		if r.Came < 1 {
			s.partly++
		}
	case r.Err == nil:
		s.wrong++
	case errors.Is(r.Err, ErrCrossed) && !right:
		s.crossed++
	}
	if errors.Is(r.Err, ErrStart) {
		s.noStart += intervals
	}
	if errors.Is(r.Err, ErrEnd) {
		s.noEnd += intervals
	}
}

// soak runs intervals through the channel, in both directions. All packets of
// an interval have one delay, so an estimate is right only if it is that and
// deviates by 0. After each interval look is called.
func soak(t *testing.T, seed uint64, intervals int, digestBits uint8, look func(done int)) (result soaked) {
	random := rand.New(rand.NewPCG(seed, seed+1))
	tuner := lda.Tuner{Config: lda.Config{Identity: 1, Banks: [lda.MaxBanks]lda.Bank{{Rows: 16, Shift: 0}, {Rows: 8, Shift: 2}},
		SumBits: 40, DigestBits: digestBits}}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	receiver, err := NewReceiver(tuner)
	must(err)
	var sender *Sender
	var reports []Report
	back := &channel{random: random, handed: func(data []byte) { _ = sender.Feedback(data) }} // whatever it says of damage
	there := &channel{random: random}
	there.handed = func(data []byte) {
		reports, _ = receiver.Receive(data, reports[:0])
		for i := range reports {
			result.add(&reports[i])
			if data := receiver.AppendFeedback(nil, &reports[i]); data != nil {
				back.send(data)
			}
		}
	}
	for i := range intervals {
		session, number := uint64(i/soakRestart), uint64(i%soakRestart)
		if number == 0 {
			sender, err = NewSender(tuner, session, 128)
			must(err)
		}
		start, err := sender.Start(nil)
		must(err)
		there.send(start)
		for k := range soakPackets {
			now := int64(i*soakPackets+k) * 1000
			p := hashing.Word(tuner.Config.Identity, uint64(now))
			sender.Update(p, now)
			if random.IntN(20) > 0 {
				receiver.Update(p, now+soakDelay(session, number))
			}
			there.step()
			back.step()
		}
		end, err := sender.End(nil)
		must(err)
		there.send(end)
		for data := range sender.Parts() {
			there.send(data)
		}
		look(i + 1)
	}
	for _, r := range receiver.Flush(nil) {
		result.add(&r)
	}
	runtime.KeepAlive(sender)
	return result
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
	var early, late uint64
	s := soak(t, 11, intervals, 28, func(done int) {
		switch done {
		case intervals / 10:
			early = heap()
		case intervals:
			late = heap()
		}
	})
	if s.wrong > 0 {
		t.Errorf("%d wrong estimates", s.wrong)
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
	if lost := intervals - s.reported; lost < 0 || lost > 2*intervals/soakRestart {
		t.Errorf("%d of %d intervals reported", s.reported, intervals)
	}
	if late > early+slack {
		t.Errorf("heap grew from %d to %d bytes", early, late)
	}
}

// Without a digest, packets that cross spoil cells: the channel does what it
// should, and such intervals must be refused where they show.
func TestSoakWithoutDigest(t *testing.T) {
	s := soak(t, 13, 20_000, 0, func(int) {})
	if s.crossed == 0 || s.wrong > s.crossed/2 {
		t.Errorf("%d refused that would have been wrong, %d not; want some, and few if any", s.crossed, s.wrong)
	}
}
