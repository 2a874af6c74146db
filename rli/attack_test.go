package rli

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// steady is a receiver of packets with delays of 1,000 to 2,000 ns.
type steady struct {
	*Receiver
	at, delay int64
	sequence  uint64
	random    *rand.Rand
}

func newSteady(t *testing.T, rate int64) *steady {
	t.Helper()
	c := DefaultConfig
	c.Rate, c.Flows = rate, 64
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	return &steady{Receiver: r, random: rand.New(rand.NewPCG(1, 2))}
}

func (s *steady) run(references int) {
	for range references {
		for range 10 {
			s.at += 5000
			s.Update(1, s.config.ReferenceBytes, s.at)
		}
		s.at += 5000
		s.delay = 1000 + s.random.Int64N(1000)
		s.Reference(ReferencePacket{Sequence: s.sequence, Sent: s.at - s.delay}, s.at)
		s.sequence++
	}
}

func (s *steady) mean(t *testing.T) float64 {
	t.Helper()
	s.Flush()
	total, err := s.Total()
	if err != nil {
		t.Fatal(err)
	}
	return total.Mean
}

// TestImplausibleReference: a reference that cannot be true does no harm, and later ones are believed as
// before. The negative control believes it.
func TestImplausibleReference(t *testing.T) {
	for name, lie := range map[string]func(s *steady) ReferencePacket{
		"sent a second ago":       func(s *steady) ReferencePacket { return ReferencePacket{Sequence: s.sequence, Sent: s.at - 1e9} },
		"and of a number far off": func(s *steady) ReferencePacket { return ReferencePacket{Sequence: math.MaxUint64, Sent: s.at - 1e9} },
		"sent in a second":        func(s *steady) ReferencePacket { return ReferencePacket{Sequence: s.sequence, Sent: s.at + 1e9} },
		"sent never":              func(s *steady) ReferencePacket { return ReferencePacket{Sequence: s.sequence, Sent: math.MinInt64} },
		"of another injector":     func(s *steady) ReferencePacket { return ReferencePacket{Sequence: s.sequence, Injector: 7} },
	} {
		for _, rate := range []int64{0, 1e9} {
			s := newSteady(t, rate)
			for range 20 {
				s.run(50)
				s.Reference(lie(s), s.at+10)
			}
			k := s.Counts()
			if mean := s.mean(t); mean < 1300 || mean > 1700 || k.Refused != 20 || k.Lost != 0 {
				t.Errorf("%s, rate %d: a mean of %v, %+v", name, rate, mean, k)
			}
			// The negative control: a guard that knows nothing.
			s = newSteady(t, rate)
			s.run(50)
			s.order = order{}
			if p := lie(s); p.Injector == 0 && p.Sent > -latest {
				s.Reference(p, s.at+10)
				s.run(1)
				if mean := s.mean(t); mean > 1300 && mean < 1700 {
					t.Errorf("%s, rate %d: harmless without the guard, too: %v", name, rate, mean)
				}
			}
		}
	}
}

// TestTaggedReferences: with a key, only references of its holder are believed, and only once.
func TestTaggedReferences(t *testing.T) {
	injector, err := NewInjector(InjectorConfig{Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	injector.SetKey([16]byte{1, 2, 3})
	s := newSteady(t, 0)
	s.SetKey([16]byte{1, 2, 3})
	var sent [][]byte
	for i := range int64(200) {
		p, _ := injector.Packet(100, 1000*i)
		data := injector.Append(nil, p, p.Sent)
		if len(data) != ReferenceSize+8 {
			t.Fatalf("%d bytes", len(data))
		}
		sent = append(sent, data)
		s.Update(1, 100, 1000*i+500)
		if err := s.Accept(data, 1000*i+500); err != nil {
			t.Fatal(err)
		}
	}
	last := ReferencePacket{Sequence: 200, Sent: 1e6}
	plain := last.append(nil)
	other := key{hashing.SipHashFromKey([16]byte{1, 2, 4}), true}
	forged := &Injector{key: other}
	for _, bad := range [][]byte{nil, plain, append(bytes.Clone(plain), 0, 0, 0, 0, 0, 0, 0, 0),
		forged.Append(nil, last, last.Sent)} {
		if err := s.Accept(bad, 1e6); !errors.Is(err, estimate.ErrEncoding) && !errors.Is(err, ErrForged) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	for _, old := range sent { // again, all of them, in order
		s.Update(1, 100, 1e6)
		if err := s.Accept(old, 1e6); err != nil {
			t.Fatal(err)
		}
	}
	k := s.Counts()
	if mean := s.mean(t); k.Refused != 204 || k.Steps != 0 || mean != 500 {
		t.Errorf("%+v, mean %v", k, mean)
	}
}

// TestTableKeepsItsSecret: flows that were chosen to fall in one group of a table with a known secret are
// spread like others over a table with an unknown one.
func TestTableKeepsItsSecret(t *testing.T) {
	c := DefaultConfig
	known, other := newTable(&c, [2]uint64{3, 5}), newTable(&c, [2]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9})
	random := rand.New(rand.NewPCG(5, 6))
	groups := map[uint64]int{}
	for chosen := 0; chosen < 200; {
		if f := hashing.Flow(random.Uint64()); known.mix(f)&known.mask == 7 {
			chosen++
			// 200 flows over 16,384 groups: 6 in one, with probability 10^-12.
			if groups[other.mix(f)&other.mask]++; groups[other.mix(f)&other.mask] == 6 {
				t.Errorf("six of them begin at group %d", other.mix(f)&other.mask)
			}
		}
	}
	a, _ := NewReceiver(c)
	b, _ := NewReceiver(c)
	if a.flows.secret == b.flows.secret {
		t.Error("two receivers have the same secret")
	}
}

// TestFloodGivesWay: while a flood of flows of one packet each fills the table, flows with many packets keep
// their records, and others that begin later get one.
func TestFloodGivesWay(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows = Left, 0, 1000
	r, _ := NewReceiver(c)
	random, early, late := rand.New(rand.NewPCG(7, 8)), 0, 0
	r.flows.secret = [2]uint64{random.Uint64(), random.Uint64() | 1} // of 1,000 secrets 12 fail
	const flows, packets = 50, 400
	for i := range 200_000 {
		now := int64(i) * 1e4 // 2 s
		r.Update(hashing.Flow(random.Uint64()), 100, now)
		if i%100 == 0 {
			r.Reference(ReferencePacket{Sequence: uint64(i / 100), Sent: now}, now)
		}
		if i%10 == 0 {
			f := hashing.Flow(i / 10 % flows)
			if i >= 100_000 {
				f += 1000
			}
			r.Update(f, 100, now)
		}
	}
	for f := range hashing.Flow(flows) {
		if res, err := r.Estimate(f); err == nil && res.N > packets/4 {
			early++
		}
		if res, err := r.Estimate(f + 1000); err == nil && res.N > packets/4 {
			late++
		}
	}
	k := r.Counts()
	total, _ := r.Total()
	in := uint64(0)
	for _, res := range r.All() {
		in += res.N
	}
	if early < 45 || late < 35 || in+k.Shed+k.Evicted != total.N {
		t.Errorf("%d early and %d late flows of %d have most of their packets; %d packets in records, %+v", early, late, flows, in, k)
	}
}

// TestSmallEncodingAsksForLittle: a few hundred bytes cannot make a receiver allocate more than its own Config
// takes.
func TestSmallEncodingAsksForLittle(t *testing.T) {
	for _, flows := range []int{100_000, 500_000, 10_000_000} {
		c := DefaultConfig
		r, _ := NewReceiver(c)
		r.config.Flows = flows
		data, _ := r.MarshalBinary()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b := &Receiver{}
		err := b.UnmarshalBinary(data)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, estimate.ErrEncoding) || got > 1<<20 {
			t.Errorf("%d bytes: %v after %d bytes of memory", len(data), err, got)
		}
	}
}

// TestForgedReferenceWithinReason: whoever can send references, or holds the key of tagged ones, is believed within what
// is possible: a delay of up to the time since the reference before. If every other reference, 55 µs apart, says 40 µs
// instead of 1.5, the mean is 20; one that says a millisecond is left out. With another key none is believed.
func TestForgedReferenceWithinReason(t *testing.T) {
	forger := func(k byte) *Injector { return &Injector{key: key{hashing.SipHashFromKey([16]byte{k}), true}} }
	for name, c := range map[string]struct {
		keyed  bool
		forger *Injector
		delay  int64
		low    float64
		high   float64
	}{
		"no key":                 {false, nil, 40_000, 15_000, 25_000},
		"the key":                {true, forger(1), 40_000, 15_000, 25_000},
		"the key, a millisecond": {true, forger(1), 1_000_000, 1300, 1700},
		"another key":            {true, forger(2), 40_000, 1300, 1700},
	} {
		s := newSteady(t, 0)
		s.run(50)
		if c.keyed {
			s.SetKey([16]byte{1})
		}
		give := func(p ReferencePacket, at int64, from *Injector) {
			s.sequence++
			if from == nil {
				s.Reference(p, at)
			} else if err := s.Accept(from.Append(nil, p, p.Sent), at); (err == nil) != (from.key.hash.Bytes(nil) == s.key.hash.Bytes(nil)) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i := range 500 {
			for range 10 {
				s.at += 5000
				s.Update(1, 64, s.at)
			}
			s.at += 5000
			honest, delay := forger(1), 1000+s.random.Int64N(1000)
			if !c.keyed {
				honest = nil
			}
			if i%2 == 1 {
				honest, delay = c.forger, c.delay
			}
			give(ReferencePacket{Sequence: s.sequence, Sent: s.at - delay}, s.at, honest)
		}
		s.Flush()
		if _, err := s.Total(); errors.Is(err, ErrUntrusted) {
			continue // so many numbers are missing
		}
		if mean := s.mean(t); mean < c.low || mean > c.high {
			t.Errorf("%s: a mean of %.0f, want %v to %v; %+v", name, mean, c.low, c.high, s.Counts())
		}
	}
}
