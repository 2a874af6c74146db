package rli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// An InjectorConfig says when references go out (section III-B.1): after Every
// packets, after Interval nanoseconds, or whichever comes first. With
// Adaptive, the number of packets follows the link's utilisation instead.
type InjectorConfig struct {
	// Every is the n of 1-in-n: a reference goes out after this many packets,
	// up to 10^9. Zero means not by number. It must be 0 with Adaptive.
	Every int

	// Interval is the τ of 1-in-τ: a reference goes out this many nanoseconds
	// after the one before, up to 10^15. Zero means not by time.
	Interval int64

	// Adaptive chooses the rate by Algorithm 1.
	Adaptive Adaptation

	// ReferenceBytes is the size of a reference packet on the link, 1 to
	// 65,536, for [Injector.Overhead].
	ReferenceBytes int

	// Injector identifies the injector in its references: see Config.Injector.
	Injector uint32
}

// An Adaptation is Algorithm 1. The moving average u of the utilisation,
// clamped to its limits, gives the injection rate
//
//	√(1 − ((umin − u)/(umax − umin))²) · (rmax − rmin) + rmin
//
// This is an ellipse from rmax at umin down to rmin at umax. The zero value
// turns adaptation off.
type Adaptation struct {
	Rate                           int64   // l_c: capacity of the link, bits per second, 1 to 10^15
	MinUtilisation, MaxUtilisation float64 // u_min below u_max, 0 to 1
	MinRate, MaxRate               float64 // r_min up to r_max, references per packet, 10^-6 to 1
	Smoothing                      float64 // α: weight of the newest utilisation, over 0 and up to 1
}

// PaperAdaptation has the paper's limits, for a link of 10 Gb/s. The paper
// does not give its smoothing factor.
var PaperAdaptation = Adaptation{
	Rate:           10e9,
	MinUtilisation: 0.6, MaxUtilisation: 0.85,
	MinRate: 1.0 / 300, MaxRate: 1.0 / 10,
	Smoothing: 1.0 / 16,
}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *InjectorConfig) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("rli", field, got, want) }
	a := &c.Adaptive
	adaptive := *a != Adaptation{}
	switch {
	case c.Every < 0 || c.Every > 1e9:
		return bad("Every", c.Every, "0 to 10^9")
	case c.Interval < 0 || c.Interval > 1e15:
		return bad("Interval", c.Interval, "0 to 10^15")
	case c.ReferenceBytes < 1 || c.ReferenceBytes > maxSize:
		return bad("ReferenceBytes", c.ReferenceBytes, fmt.Sprintf("1 to %d", maxSize))
	case adaptive && c.Every != 0:
		return bad("Every", c.Every, "0 with Adaptive")
	case !adaptive && c.Every == 0 && c.Interval == 0:
		return bad("Every", c.Every, "1 or more without Interval and Adaptive")
	case !adaptive:
	case a.Rate < 1 || a.Rate > maxRate:
		return bad("Adaptive.Rate", a.Rate, "1 to 10^15")
	case !(a.MinUtilisation >= 0 && a.MinUtilisation < a.MaxUtilisation && a.MaxUtilisation <= 1):
		return bad("Adaptive's utilisation", [2]float64{a.MinUtilisation, a.MaxUtilisation}, "0 to 1, the lesser first")
	case !(a.MinRate >= 1e-6 && a.MinRate <= a.MaxRate && a.MaxRate <= 1):
		return bad("Adaptive's rate", [2]float64{a.MinRate, a.MaxRate}, "10^-6 to 1, the lesser first")
	case !(a.Smoothing > 0 && a.Smoothing <= 1):
		return bad("Adaptive.Smoothing", a.Smoothing, "over 0, up to 1")
	}
	return nil
}

// MaxDistance returns the largest number of packets between two references, by
// number of packets alone. The receiver's buffer must hold that many. It
// returns 0 if Interval alone decides; then it is as many as the link
// transmits in that time.
func (c *InjectorConfig) MaxDistance() int {
	if c.Adaptive != (Adaptation{}) {
		return c.Adaptive.distance(c.Adaptive.MinRate)
	}
	return c.Every
}

// An Injector decides when reference packets go out. It is not safe for
// concurrent use.
type Injector struct {
	config      InjectorConfig
	begun       bool
	left        int   // packets until the next reference
	last        int64 // when the latest reference went out
	next        uint64
	bytes       float64 // c_b: of packets since the utilisation was last measured
	since       int64   // when that was
	utilisation float64 // u_est
	overhead    Overhead
	first, now  int64 // times of the first and the latest packet
	key         key
}

// An Overhead is the cost of references.
type Overhead struct {
	Packets, Bytes                 uint64 // that the injector saw
	References, ReferenceBytesSent uint64 // that it sent
	Elapsed                        int64  // ns from the first packet to the latest
}

// Rate returns the number of references per packet, 0 without packets.
func (o Overhead) Rate() float64 {
	if o.Packets == 0 {
		return 0
	}
	return float64(o.References) / float64(o.Packets)
}

// Capacity returns the fraction of a link of the given rate, in bits per
// second, that the references took. It returns 0 if no time has passed.
func (o Overhead) Capacity(rate int64) float64 {
	if o.Elapsed <= 0 || rate <= 0 {
		return 0
	}
	return float64(o.ReferenceBytesSent) * 8e9 / float64(o.Elapsed) / float64(rate)
}

// NewInjector returns a new injector. The error wraps [estimate.ErrConfig].
func NewInjector(c InjectorConfig) (*Injector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Injector{config: c}, nil
}

// Config returns the configuration that the injector was made with.
func (j *Injector) Config() InjectorConfig { return j.config }

// Packet reports a packet of the given size that goes out at time t. If it
// returns true, send the reference directly behind that packet, as at the same
// instant. The first packet is followed by a reference. Times must not
// decrease.
func (j *Injector) Packet(bytes int, t int64) (ReferencePacket, bool) {
	if j.overhead.Packets == 0 {
		j.first = t
	}
	j.now = t
	j.overhead.Packets++
	j.overhead.Bytes += uint64(max(bytes, 0))
	j.bytes += float64(bytes)
	j.left--
	if j.begun && !j.spent() && !j.timeUp(t) {
		return ReferencePacket{}, false
	}
	return j.inject(t, behind(bytes)), true
}

// Tick reports whether Interval is over at time t, for callers that send
// references even without packets. If it returns true, send the reference now.
func (j *Injector) Tick(t int64) (ReferencePacket, bool) {
	if !j.begun || !j.timeUp(t) {
		return ReferencePacket{}, false
	}
	j.now = t
	return j.inject(t, 0), true
}

func (j *Injector) spent() bool {
	return j.left <= 0 && (j.config.Every > 0 || j.config.Adaptive != Adaptation{})
}

func (j *Injector) timeUp(t int64) bool {
	return j.config.Interval > 0 && t-j.last >= j.config.Interval
}

// inject makes the reference and decides the distance to the next one.
func (j *Injector) inject(t int64, behind uint16) ReferencePacket {
	p := ReferencePacket{Sequence: j.next, Sent: t, Behind: behind, Packets: uint32(j.overhead.Packets), Injector: j.config.Injector}
	j.next++
	j.overhead.References++
	j.overhead.ReferenceBytesSent += uint64(j.config.ReferenceBytes)
	j.left = j.config.Every
	if j.config.Adaptive != (Adaptation{}) {
		j.measure(t)
		j.left = j.config.Adaptive.distance(j.config.Adaptive.rate(j.utilisation))
	}
	j.begun, j.last = true, t
	return p
}

// measure updates the moving average (lines 10 and 11). If no time has passed
// since it was last updated, the bytes count in the next measurement.
func (j *Injector) measure(t int64) {
	if !j.begun {
		j.bytes, j.since = 0, t
		return
	}
	if t <= j.since {
		return
	}
	a := &j.config.Adaptive
	now := j.bytes * 8e9 / float64(t-j.since) / float64(a.Rate)
	j.utilisation = now*a.Smoothing + j.utilisation*(1-a.Smoothing)
	j.bytes, j.since = 0, t
}

// Utilisation returns the moving average of the link's utilisation (u_est) as
// of the latest reference, 0 without Adaptive.
func (j *Injector) Utilisation() float64 { return j.utilisation }

// Overhead returns the cost of references so far.
func (j *Injector) Overhead() Overhead {
	o := j.overhead
	o.Elapsed = j.now - j.first
	return o
}

// rate returns the injection rate at utilisation u (lines 12 and 13).
func (a *Adaptation) rate(u float64) float64 {
	u = min(max(u, a.MinUtilisation), a.MaxUtilisation)
	x := (u - a.MinUtilisation) / (a.MaxUtilisation - a.MinUtilisation)
	return math.Sqrt(1-x*x)*(a.MaxRate-a.MinRate) + a.MinRate
}

// distance returns the number of packets per reference at the given rate.
func (a *Adaptation) distance(rate float64) int {
	return max(1, int(math.Round(1/rate)))
}
