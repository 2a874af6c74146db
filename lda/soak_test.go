package lda

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// channel loses, duplicates, delays and damages control packets, each with a
// few per cent, and lets data packets overtake those that it delays.
type channel struct {
	rng    *rand.Rand
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
	switch c.rng.IntN(100 / percent) {
	case 0:
		copies = 0
	case 1:
		copies = 2
	}
	for range copies {
		f := flight{due: c.now, data: bytes.Clone(data)}
		switch c.rng.IntN(100 / percent) {
		case 0:
			f.due += c.rng.IntN(40)
		case 1:
			for range 1 + c.rng.IntN(8) {
				bit := c.rng.IntN(8 * len(data))
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
	reported, usable, wrong int
	crossed                 int // of the wrong, those that were refused for crossing packets
	reasons                 map[error]int
	early, late             uint64 // heap in use after a tenth and at the end
}

// soak runs intervals of some 20 packets through the channel, in both
// directions. All packets of an interval have one delay that its neighbours
// have not, so an estimate is right only if it is that and deviates by 0.
func soak(t testing.TB, intervals int, digestBits uint8) soaked {
	tuner := Tuner{Config: Config{
		Seed:    1,
		Banks:   [MaxBanks]Bank{{Rows: 16, Shift: 0}, {Rows: 8, Shift: 2}},
		SumBits: 40, DigestBits: digestBits,
	}}
	const restart = 1000 // intervals, after which the sender starts again
	receiver, err := NewReceiver(tuner)
	if err != nil {
		t.Fatal(err)
	}
	var sender *Sender
	rng := rand.New(rand.NewPCG(11, 12))
	result := soaked{reasons: map[error]int{}}
	delay := func(session, interval uint64) int64 { return int64(1000 + (session*restart+interval)%997) }
	var reports []Report
	back := &channel{rng: rng, handed: func(data []byte) { _ = sender.Feedback(data) }} // whatever it says of damage
	there := &channel{rng: rng}
	there.handed = func(data []byte) {
		reports, _ = receiver.Receive(data, reports[:0])
		for i := range reports {
			r := &reports[i]
			result.reported += int(r.Interval - r.First + 1)
			right := r.Result.Mean == float64(delay(r.Session, r.Interval)) && r.Result.StdDev == 0
			switch {
			case r.Err == nil && right:
				result.usable++
			case r.Err == nil:
				result.wrong++
			case errors.Is(r.Err, ErrCrossed) && !right:
				result.crossed++
			}
			for _, why := range []error{ErrStart, ErrEnd, ErrParts, ErrCrossed} {
				if errors.Is(r.Err, why) {
					result.reasons[why]++
				}
			}
			if data := receiver.AppendFeedback(nil, r); data != nil {
				back.send(data)
			}
		}
	}
	var buf []byte
	for i := range intervals {
		if i%restart == 0 {
			if sender, err = NewSender(tuner, uint64(i/restart), 128); err != nil {
				t.Fatal(err)
			}
		}
		if i == intervals/10 {
			result.early = heap()
		}
		buf, _ = sender.Start(buf[:0])
		there.send(buf)
		for k := range 20 {
			now := int64(i*20+k) * 1000
			p := hashing.Word(1, uint64(now))
			sender.Update(p, now)
			if rng.IntN(20) > 0 {
				receiver.Update(p, now+delay(uint64(i/restart), uint64(i%restart)))
			}
			there.step()
			back.step()
		}
		buf, _ = sender.End(buf[:0])
		there.send(buf)
		for data := range sender.Parts() {
			there.send(data)
		}
	}
	result.late = heap()
	runtime.KeepAlive(receiver)
	return result
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *soaked) check(t testing.TB, intervals int) {
	t.Helper()
	if s.wrong > 0 {
		t.Errorf("%d wrong estimates", s.wrong)
	}
	// Two markers come in time, and four parts at all, 64 times in a hundred.
	if share := float64(s.usable) / float64(intervals); share < 0.55 || share > 0.7 {
		t.Errorf("%d of %d intervals usable", s.usable, intervals)
	}
	for _, why := range []error{ErrStart, ErrEnd, ErrParts} {
		if s.reasons[why] == 0 {
			t.Errorf("no interval for which %v", why)
		}
	}
	const slack = 64 << 10
	if s.late > s.early+slack {
		t.Errorf("heap grew from %d to %d bytes", s.early, s.late)
	}
}

func TestSoak(t *testing.T) {
	const intervals = 20_000
	s := soak(t, intervals, 28)
	s.check(t, intervals)
	// Without a digest the crossing packets spoil cells, so that the channel
	// does what it should, and the refusal of such intervals is needed.
	blind := soak(t, intervals, 0)
	if blind.wrong > 0 || blind.crossed == 0 {
		t.Errorf("no digest: %d wrong, %d would have been; want 0, and some", blind.wrong, blind.crossed)
	}
	t.Logf("digest: %+v\nnone: %+v", s, blind)
}

// For a long soak: go test -run - -bench Soak -benchtime 1000000x ./lda
func BenchmarkSoak(b *testing.B) {
	s := soak(b, b.N, 28)
	if b.N >= 1000 {
		s.check(b, b.N)
	}
	b.ReportMetric(float64(s.wrong), "wrong")
	b.ReportMetric(100*float64(s.usable)/float64(b.N), "%usable")
	b.ReportMetric(float64(s.late)-float64(s.early), "B-grown")
}
