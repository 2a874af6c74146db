// Package truth works out from a list of packets what happened between two points, as literally as possible.
// Tests hold synopses to it.
package truth

// A Packet is sent by one point and, unless it is Lost, received by another.
type Packet struct {
	Sent, Received int64
	Lost           bool
	Cell           int
	Flow           uint64
}

// A Window is what happened between two times.
type Window struct {
	Sent, Received int     // packets, in it
	Lost           int     // of those sent in it
	Way            float64 // time in it that packets were on their way which came, be it later
	Delays         float64 // of those received in it, added up
}

// PerPacket returns the time on the way for each packet received.
func (w Window) PerPacket() float64 { return w.Way / float64(w.Received) }

// MeanDelay returns the mean delay of the packets received.
func (w Window) MeanDelay() float64 { return w.Delays / float64(w.Received) }

// add adds what happened to a packet after one time and up to another.
func (w *Window) add(p Packet, from, to int64) {
	if from <= p.Sent && p.Sent < to {
		w.Sent++
		if p.Lost {
			w.Lost++
		}
	}
	if !p.Lost {
		begins, ends := max(p.Sent, from), min(p.Received, to)
		if begins < ends {
			w.Way += float64(ends - begins)
		}
		if from <= p.Received && p.Received < to {
			w.Received++
			w.Delays += float64(p.Received - p.Sent)
		}
	}
}

// Between returns what happened to packets after one time and up to another, by a key: their cell, their flow
// or anything else that distinguishes them.
func Between[K comparable](packets []Packet, from, to int64, key func(Packet) K) map[K]Window {
	windows := map[K]Window{}
	for _, p := range packets {
		w := windows[key(p)]
		w.add(p, from, to)
		windows[key(p)] = w
	}
	return windows
}

// Of returns what happened to all packets.
func Of(packets []Packet, from, to int64) (w Window) {
	for _, p := range packets {
		w.add(p, from, to)
	}
	return w
}

// ByFlow is a key for Between.
func ByFlow(p Packet) uint64 { return p.Flow }
