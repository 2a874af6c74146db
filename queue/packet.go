package queue

import "github.com/hoplag/hoplag/hashing"

// A Packet is one packet on its way.
type Packet struct {
	Sent  int64          // ns: when it entered the first element; all elements keep it
	Time  int64          // ns: when it got to where it is now
	Flow  hashing.Flow   // its flow
	ID    hashing.Packet // its identity
	Seq   uint64         // its number in the stream, from 0
	Bytes int32          // on the wire, at least 1
	Tag   uint8          // the caller's own mark (a reference packet, say); this package does not read it
	Fate  Fate           // what became of it
}

// A Fate is what became of a packet.
type Fate uint8

// The fates. Passed is the zero value.
const (
	Passed  Fate = iota // delivered
	Full                // dropped: the queue was at its limit
	Early               // dropped by RED at random, with the average between its thresholds
	Forced              // dropped by RED for certain, with the average above its thresholds
	Refused             // not simulated: out of order of time, or without bytes
	fates
)

var fateNames = [fates]string{"passed", "full", "early", "forced", "refused"}

// String returns the fate's name in lower case.
func (f Fate) String() string {
	if f < fates {
		return fateNames[f]
	}
	return "unknown fate"
}

// A Source yields packets in order of Time, with Sent equal to Time.
type Source interface {
	// Next stores the next packet in *p and reports whether there was one. Fields that it does not set are
	// zeroed.
	Next(p *Packet) bool
}
