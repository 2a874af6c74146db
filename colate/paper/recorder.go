package paper

import (
	"github.com/hoplag/hoplag/hashing"
)

// A Recorder is one point (§3.1). Make one with New; it never grows. It holds
// the epoch being recorded and the one before.
//
// It has a single writer and no locks.
type Recorder struct {
	epochs [2]*Epoch // the first is being recorded
}

// An Epoch is what one point recorded between two handovers (§1.4): counter
// vectors with sums of time stamps.
type Epoch struct {
	config  Config
	sums    []uint64 // vector after vector
	vectors [MaxVectors]Vector
}

// A Vector describes one counter vector of an epoch.
type Vector struct {
	Packets uint64
	Fill    uint64 // the sum of their time stamps in units (t_X)
}

func (v *Vector) add(o Vector) {
	v.Packets += o.Packets
	v.Fill += o.Fill
}

// New returns an empty recorder. The error wraps [estimate.ErrConfig].
func New(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := new(Recorder)
	for i := range r.epochs {
		r.epochs[i] = &Epoch{config: c, sums: make([]uint64, c.Vectors*c.Counters)}
	}
	return r, nil
}

// Config returns the configuration that the recorder was made with.
func (r *Recorder) Config() Config { return r.epochs[0].config }

// Current returns the epoch being recorded.
func (r *Recorder) Current() *Epoch { return r.epochs[0] }

// Update records that packet p of flow f passed at time t, in nanoseconds
// since an epoch that all points share. If there is no room for it, the
// current epoch ends and the packet begins the next. Update returns the epoch
// that ended, which is valid until the next one ends, or nil.
//
// The paper draws j at random. Here the packet's digest decides j and the
// vector, so that two points agree on them.
func (r *Recorder) Update(f hashing.Flow, p hashing.Packet, t int64) (ended *Epoch) {
	if !r.epochs[0].add(f, p, t) {
		r.epochs[0], r.epochs[1] = r.epochs[1], r.epochs[0]
		r.epochs[0].reset()
		r.epochs[0].add(f, p, t)
		return r.epochs[1]
	}
	return nil
}

// add adds a packet and reports whether there was room. An empty epoch has
// room.
func (e *Epoch) add(f hashing.Flow, p hashing.Packet, t int64) bool {
	c := &e.config
	k := min(hashing.LeadingZeros(uint64(p)), c.Vectors-1)
	j := hashing.Row(uint64(p), uint64(c.PerFlow))
	at := uint64(k)*uint64(c.Counters) + position(c.Identity, f, j, uint64(c.Counters))
	stamp := uint64(t>>(c.Shift&63)) & c.timeMask()
	v := &e.vectors[k]
	if c.Threshold != 0 && v.Fill+stamp > c.Threshold || (e.sums[at]+stamp)>>c.Bits != 0 {
		return false
	}
	e.sums[at] += stamp
	v.Packets++
	v.Fill += stamp
	return true
}

func (e *Epoch) reset() {
	clear(e.sums)
	e.vectors = [MaxVectors]Vector{}
}

// Packets returns the number of packets in the epoch.
func (e *Epoch) Packets() uint64 {
	var n uint64
	for _, v := range e.vectors {
		n += v.Packets
	}
	return n
}

// Vector describes vector k, 0 to Vectors-1.
func (e *Epoch) Vector(k int) Vector { return e.vectors[:e.config.Vectors][k] }

// Counter returns the sum in counter i of vector k, in units.
func (e *Epoch) Counter(k, i int) uint64 {
	return e.sums[k*e.config.Counters : (k+1)*e.config.Counters][i]
}
