package trace

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// A Load says how much traffic to offer: at least a byte in 10^12 ns.
type Load struct {
	Rate        int64   // of the link, bits per second, 1 to 10^15
	Utilisation float64 // of that rate, above 0, at most 100: above 1 is overload
}

const (
	leastLoad = 1e-12 // bytes/ns: less is a mistake of units
	maxGap    = 1e15  // ns, eleven days, of means: more is a mistake, too
)

func (l Load) validate() error {
	switch load := l.bytesPerNS(); {
	case l.Rate < 1 || l.Rate > 1e15:
		return invalid("Rate", l.Rate, "1 to 10^15")
	case !(l.Utilisation > 0 && l.Utilisation <= 100):
		return invalid("Utilisation", l.Utilisation, "over 0 and at most 100")
	case load < leastLoad:
		return invalid("Utilisation", l.Utilisation, fmt.Sprintf("more: %.3g bytes a ns are less than %v", load, leastLoad))
	}
	return nil
}

// invalid returns the error for a field out of range.
func invalid(field string, got any, want string) error {
	return estimate.Invalid("trace", field, got, want)
}

// bytesPerNS returns the load in bytes per nanosecond.
func (l Load) bytesPerNS() float64 { return l.Utilisation * float64(l.Rate) / 8e9 }

// labels numbers the packets of a source and names its flows. Identities are hashes of numbers, scattered like
// those of real packets.
type labels struct {
	seed uint64
	sent uint64
}

// fill makes *p the next packet.
func (l *labels) fill(p *queue.Packet, time int64, flow uint64, bytes int32) {
	*p = queue.Packet{
		Sent:  time,
		Time:  time,
		Flow:  hashing.Flow(hashing.Mix(uint64(hashing.Word(l.seed, flow)), 'f')),
		ID:    hashing.Word(l.seed, l.sent),
		Seq:   l.sent,
		Bytes: bytes,
	}
	l.sent++
}
