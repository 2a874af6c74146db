package rli

// An account compares how many packets the injector saw between two references
// with how many departed between them. In a queue that is first come, first
// served, with one way to its end, all packets sent before a reference depart
// before it, or never. So the number missing can only grow. If it shrinks,
// packets departed after a reference that was sent after them, from another
// class or by another way, or the injector did not see them. References say
// nothing about those packets.
type account struct {
	told    uint32 // packets that departed
	begun   bool
	missing uint32 // sent less departed, as of the latest reference
}

// settle takes in a reference that carries the number of packets sent.
func (a *account) settle(sent uint32, c *Counts) {
	if sent == 0 {
		return
	}
	missing := sent - a.told
	if a.begun {
		if step := int32(missing - a.missing); step > 0 {
			c.Missing += uint64(step)
		} else {
			c.Overtaken += uint64(-int64(step))
		}
	}
	a.missing, a.begun = missing, true
}

// scarce is the number of packets to each overtaken one from which on results
// keep their intervals.
const scarce = 50_000
