package queue

import (
	"math/big"
	"testing"
)

// tokens is a token bucket written for readability: it holds tokens, in bytes, that come at the rate, as exact
// numbers.
type tokens struct {
	rate, burst *big.Rat // bytes a ns, bytes
	in          *big.Rat
	at          *big.Rat // when there were as many
	left        []*big.Rat
}

func newTokens(rate int64, burst int32) *tokens {
	full := new(big.Rat).SetInt64(int64(burst))
	return &tokens{rate: big.NewRat(rate, 8e9), burst: full, in: full, at: new(big.Rat)}
}

// send returns when a packet leaves: it takes its bytes from the bucket once they are there and the packets
// before it have left.
func (s *tokens) send(t int64, bytes int32) *big.Rat {
	now := new(big.Rat).SetInt64(t)
	if n := len(s.left); n > 0 && s.left[n-1].Cmp(now) > 0 {
		now = s.left[n-1]
	}
	came := new(big.Rat).Sub(now, s.at)
	s.in = new(big.Rat).Add(s.in, came.Mul(came, s.rate))
	if s.in.Cmp(s.burst) > 0 {
		s.in = s.burst
	}
	s.at = now
	if lacks := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(bytes)), s.in); lacks.Sign() > 0 {
		s.at = new(big.Rat).Add(now, new(big.Rat).Quo(lacks, s.rate))
		s.in = new(big.Rat).SetInt64(int64(bytes))
	}
	s.in = new(big.Rat).Sub(s.in, new(big.Rat).SetInt64(int64(bytes)))
	s.left = append(s.left, s.at)
	return s.at
}

// backlog is how many packets have not wholly left at t.
func (s *tokens) backlog(t int64) (n int) {
	for n < len(s.left) && s.left[len(s.left)-1-n].Cmp(new(big.Rat).SetInt64(t)) > 0 {
		n++
	}
	return n
}

func TestShaperIsReference(t *testing.T) {
	Heavy(t)
	packets := bursty(6000, 3)
	for _, rate := range []int64{1e9, 3e9, 7e9 + 1, 1e15} {
		for _, burst := range []int32{1500, 1501, 20000, 1<<31 - 1} {
			for _, limit := range []int{0, 30} {
				shaper := must(NewLink(LinkConfig{Rate: rate, Burst: burst, Queue: QueueConfig{Packets: limit}}))(t)
				reference := newTokens(rate, burst)
				waited, full := 0, 0
				for i, p := range packets {
					room := limit == 0 || reference.backlog(p.Time) < limit
					egress, fate := shaper.Send(p.Time, int(p.Bytes))
					if room != (fate == Passed) || !room && fate != Full {
						t.Fatalf("%d bit/s, burst %d, limit %d: packet %d is %v, room %v", rate, burst, limit, i, fate, room)
					}
					if !room {
						full++
						continue
					}
					if want := floor(reference.send(p.Time, p.Bytes)); egress != want {
						t.Fatalf("%d bit/s, burst %d, limit %d: packet %d of %d bytes at %d leaves at %d, reference says %d",
							rate, burst, limit, i, p.Bytes, p.Time, egress, want)
					}
					if egress > p.Time {
						waited++
					}
				}
				if small := rate == 1e9 && burst < 1600; small && (waited < 1000 || waited > len(packets)-100 || limit > 0 && full < 100) {
					t.Errorf("%d bit/s, burst %d, limit %d: %d waited, %d found it full, which shows too little", rate, burst, limit, waited, full)
				}
			}
		}
	}
}
