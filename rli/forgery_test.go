package rli

import "testing"

// TestForgedDelayIsBounded: without a key, a forged reference is believed that says
// it was sent right after the last true one, and only packets around it are given
// delays up to the time since. With a key it is refused: the negative control.
func TestForgedDelayIsBounded(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		s := newSteady(t, 0)
		j, err := NewInjector(InjectorConfig{Every: 1, ReferenceBytes: 64})
		if err != nil {
			t.Fatal(err)
		}
		if s.run(50); keyed {
			s.SetKey([16]byte{1})
		}
		const rounds, wait = 20, 40_000
		for range rounds {
			if !keyed {
				s.run(50)
			}
			sent := s.at - s.delay + 1
			s.at += wait
			s.Update(1, 100, s.at)
			data := j.Append(nil, ReferencePacket{Sequence: s.sequence, Sent: sent})
			if err := s.Accept(data, s.at); (err != nil) != keyed {
				t.Fatalf("keyed %v: %v", keyed, err)
			}
			s.sequence++
		}
		k := s.Counts()
		if keyed {
			if k.Forged != rounds {
				t.Errorf("%+v", k)
			}
			continue
		}
		// Of 51 · 10 packets of a round the forgery is an end of the lines for 11.
		most := 2000 + (wait+2000)*11.0/510
		if mean := s.mean(t); k.Implausible != 0 || mean < 1550 || mean > most {
			t.Errorf("a mean of %v, want up to %v; %+v", mean, most, k)
		}
	}
}

// TestForgedNumber: a reference that lies about how many packets were sent takes the
// intervals away, and moves no delay.
func TestForgedNumber(t *testing.T) {
	s := newSteady(t, 0)
	s.run(100)
	before := s.mean(t)
	for i := range uint32(3) {
		s.Reference(ReferencePacket{Sequence: s.sequence, Sent: s.at, Packets: 1 << 31 >> (8 * i)}, s.at+1500)
		s.sequence++
	}
	total, err := s.Total()
	if err != nil || total.Mean != before || total.MeanInterval(0.9).Bounded() {
		t.Errorf("%+v, %v, in %+v; %v before", total, err, total.MeanInterval(0.9), before)
	}
}
