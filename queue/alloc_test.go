package queue

import (
	"testing"
)

// After a while, when queues are as large as they get, nothing allocates.
func TestAllocations(t *testing.T) {
	const n = 20000
	packets := tracked(n, 13)
	span := packets[n-1].Time + 100_000
	check := func(name string, round func(offset int64)) {
		offset := int64(0)
		run := func() {
			round(offset)
			offset += span
		}
		run()
		if got := testing.AllocsPerRun(3, run); got != 0 {
			t.Errorf("%s: %v allocations for %d packets, want none", name, got, n)
		}
	}
	link := must(NewLink(lossyLink))(t)
	check("link", func(offset int64) {
		for i := range packets {
			link.Send(offset+packets[i].Time, int(packets[i].Bytes))
		}
	})
	s, p, out := strict(t), Packet{}, Packet{}
	check("scheduler", func(offset int64) {
		for i := range packets {
			p = packets[i]
			p.Time += offset
			for s.Next(p.Time, &out) {
			}
			s.Send(&p)
		}
		for s.Next(offset+span-1, &out) {
		}
	})
}
