package mplane

import (
	"fmt"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// ring is a network of routers in a ring, all of them upgraded: 2 segments
// between and 4 inside for each.
func ring(b *testing.B, routers int) *Plan {
	n := NewNetwork()
	var all []Router
	for i := range routers {
		next := (i + 1) % routers
		for _, l := range [][2]int{{i, next}, {next, i}} {
			if err := n.AddLink(fmt.Sprint(l[0]), fmt.Sprint(l[1]), 1); err != nil {
				b.Fatal(err)
			}
		}
	}
	for r := range Router(routers) {
		all = append(all, r)
	}
	p, err := n.Plan(Deployment{Upgraded: all})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkStation takes the reports of 10,000 segments of one interval, puts
// a path together, which solves all clocks, and looks for what is slow: what a
// station does each second. ns/segment × 10,000 should be below a second.
func BenchmarkStation(b *testing.B) {
	p := ring(b, 1667)
	key := NewKey("key")
	s, err := NewStation(StationConfig{Plan: p, Key: key, Length: second, History: 16})
	if err != nil {
		b.Fatal(err)
	}
	fingerprint, segments := p.Network().Fingerprint(), 0
	path := []Router{0, 1, 2, 3, 4}
	interval := uint64(0)
	for b.Loop() {
		segments = 0
		for r := range Router(p.Network().Routers()) {
			report := Report{Monitor: r, Interval: interval, Network: fingerprint}
			for _, probed := range p.MSet(r) {
				report.Measurements = append(report.Measurements, usual(probed.ID, 1e6))
			}
			for _, id := range p.Internal(r) {
				report.Measurements = append(report.Measurements, usual(id, 1e4))
			}
			segments += len(report.Measurements)
			data, err := AppendReport(nil, report, key)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Receive(int64(interval)*second, data); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Localise(path, 0, interval); err != nil {
			b.Fatal(err)
		}
		interval++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(segments), "ns/segment")
}

// BenchmarkPlanUpgrades plans the upgrade of a sixth of a ladder of 400
// routers, in which many paths cost the same.
func BenchmarkPlanUpgrades(b *testing.B) {
	n := NewNetwork()
	for i := range 200 {
		for _, l := range [][2]string{
			{fmt.Sprint("l", i), fmt.Sprint("r", i)}, {fmt.Sprint("l", i), fmt.Sprint("l", i+1)}, {fmt.Sprint("r", i), fmt.Sprint("r", i+1)},
		} {
			if n.AddLink(l[0], l[1], 1) != nil || n.AddLink(l[1], l[0], 1) != nil {
				b.Fatal("a link is refused")
			}
		}
	}
	for b.Loop() {
		if _, err := n.PlanUpgrades(b.Context(), UpgradeDemand{Count: 66}); err != nil {
			b.Fatal(err)
		}
	}
}

// usual is a measurement of a segment's usual mean.
func usual(id SegmentID, mean float64) Measurement {
	return Measurement{Segment: id, Sent: 1000, Delay: estimate.Delay{Mean: mean, StdDev: 1e3, N: 900}, Error: 100}
}
