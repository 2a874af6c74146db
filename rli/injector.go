package rli

import (
	"cmp"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// An InjectorConfig says when references go out (section III-B.1): after Every packets, after Interval
// nanoseconds, or after whichever comes first; or by Algorithm 1.
type InjectorConfig struct {
	// Every is the n of 1-in-n: the number of packets between references, up to 10^9, give or take a quarter,
	// so that references do not keep step with any flow. Zero: not by number.
	Every int
	// Interval is the τ of 1-in-τ: the mean nanoseconds between references, up to 10^15, counted in packets,
	// because the first packet after a given time waits less than others. Zero: not by time.
	Interval int64
	// Rate is the capacity of the link in bits per second, l_c, up to 10^15. If it is not 0, Algorithm 1 adapts
	// to the utilisation u, over 16 times Sparse packets: Every is the distance up to 60 % of Rate, 1/r_max,
	// Sparse, Every to 10^6, from 85 % on, 1/r_min, and in between √(1−((umin−u)/(umax−umin))²)·(rmax−rmin) + rmin.
	Rate     int64
	Sparse   int
	Injector uint32 // identifies the injector in its references: see Config.Injector
}

// PaperInjector adapts with the paper's limits, for a link of 10 Gb/s.
var PaperInjector = InjectorConfig{Every: 10, Sparse: 300, Rate: 10e9}

// The paper's limits of utilisation, u_min and u_max, and the weight α of the newest, not given there.
const (
	leastUtilisation = 0.6
	mostUtilisation  = 0.85
	smoothing        = 1.0 / 16
)

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *InjectorConfig) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("rli", field, got, want) }
	switch {
	case c.Every < 0 || c.Every > 1e9:
		return bad("Every", c.Every, "0 to 10^9")
	case c.Interval < 0 || c.Interval > 1e15:
		return bad("Interval", c.Interval, "0 to 10^15")
	case c.Every == 0 && (c.Interval == 0 || c.Rate != 0):
		return bad("Every", c.Every, "1 or more without Interval, or with Rate")
	case c.Rate < 0 || c.Rate > maxRate:
		return bad("Rate", c.Rate, "0 to 10^15")
	case c.Rate == 0 && c.Sparse != 0 || c.Rate > 0 && (c.Sparse < c.Every || c.Sparse > 1e6):
		return bad("Sparse", c.Sparse, "0 without Rate, Every to 10^6 with it")
	}
	return nil
}

// An Injector decides when reference packets go out. It is not safe for concurrent use; the zero value panics.
type Injector struct {
	config  InjectorConfig
	n       int     // packets between references at present
	left    float64 // how many times n there are until the next one
	last    int64   // when the latest went out
	since   uint32  // packets by then
	passed  float64 // packets lately, if there is an Interval
	took    float64 // ns that they took
	next    uint64
	packets uint32
	key     key
	// For Algorithm 1:
	bytes       float64 // c_b: of packets since the utilisation was last measured
	measured    int64   // when that was
	counted     uint32  // packets by then
	utilisation float64 // u_est; 0 before it was measured
}

// NewInjector returns a new injector. The error wraps [estimate.ErrConfig].
func NewInjector(c InjectorConfig) (*Injector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Injector{config: c, n: 1}, nil
}

// Packet reports a packet that goes out at time t, in nanoseconds, which must not decrease. If it returns true,
// as for the first packet, send the reference directly behind the packet: encode it with Append.
func (j *Injector) Packet(bytes int, t int64) (ReferencePacket, bool) {
	made(j.n > 0, "Injector")
	j.packets++
	j.bytes += float64(bytes)
	if j.config.Rate > 0 && j.packets-j.counted >= uint32(j.config.Sparse) {
		j.measure(t)
	}
	j.left -= 1 / float64(j.n)
	due := j.next == 0 || j.left < 0.5/float64(j.n)
	if j.took == 0 && j.config.Interval > 0 { // how many packets pass in that time is not known yet
		due = due || t-j.last >= j.config.Interval
	}
	if !due {
		return ReferencePacket{}, false
	}
	p := ReferencePacket{Sequence: j.next, Sent: t, Packets: j.packets, Injector: j.config.Injector}
	if bytes >= 0 && bytes <= math.MaxUint16 {
		p.Behind = uint16(bytes)
	}
	if j.next == 0 {
		j.bytes, j.measured = 0, t
	} else if j.config.Interval > 0 {
		j.passed += float64(j.packets-j.since) - j.passed/lately
		j.took += float64(max(t-j.last, 1)) - j.took/lately
	}
	j.n = j.distance()
	// The next one is n packets away, give or take a quarter.
	uniform, quarter := float64(hashing.Word(uint64(j.config.Injector), j.next)>>11)/(1<<53), j.n/4
	j.left = float64(j.n-quarter+int(uniform*float64(2*quarter+1))) / float64(j.n)
	j.next, j.last, j.since = j.next+1, t, j.packets
	return p, true
}

// distance returns the number of packets between references at present.
func (j *Injector) distance() int {
	n := math.MaxInt32
	if j.config.Rate > 0 {
		n = j.config.adapted(j.utilisation)
	} else if j.config.Every > 0 {
		n = j.config.Every
	}
	if j.took > 0 {
		n = min(n, int(min(max(j.passed/j.took*float64(j.config.Interval), 1), 1e9)))
	}
	return n
}

// measure updates the moving average (lines 10 and 11), but not at references: bursts would be missed.
func (j *Injector) measure(t int64) {
	if t <= j.measured {
		return
	}
	now := j.bytes * 8e9 / float64(t-j.measured) / float64(j.config.Rate)
	j.utilisation = now*smoothing + cmp.Or(j.utilisation, now)*(1-smoothing)
	j.bytes, j.measured, j.counted = 0, t, j.packets
	j.n = j.distance()
}

// adapted returns the distance at utilisation u (lines 12 and 13).
func (c *InjectorConfig) adapted(u float64) int {
	x := (min(max(u, leastUtilisation), mostUtilisation) - leastUtilisation) / (mostUtilisation - leastUtilisation)
	least, most := 1/float64(c.Sparse), 1/float64(c.Every)
	return int(math.Round(1 / (math.Sqrt(1-x*x)*(most-least) + least)))
}

// SetKey tags every reference with SipHash under a secret key. The receiver needs the same key: see [Receiver.SetKey].
func (j *Injector) SetKey(secret [16]byte) { j.key = key{hashing.SipHashFromKey(secret), true} }

// Append appends the encoding of a reference that goes out at time now to dst, with a tag if there is a key. In
// software that is later than its packet, so the encoding carries both times.
func (j *Injector) Append(dst []byte, p ReferencePacket, now int64) []byte {
	if late := now - p.Sent; late > 0 {
		if late += int64(p.After); late > math.MaxUint32 {
			p.Behind, late = 0, 0
		}
		p.Sent, p.After = now, uint32(late)
	}
	start := len(dst)
	dst = p.append(dst)
	if j.key.set {
		dst = wire.AppendUint(dst, j.key.hash.Bytes(dst[start:]), tagSize)
	}
	return dst
}
