package figrli

import (
	"math"
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/rli"
)

var quick = &experiment.Run{Seed: 1, Quick: true}

// A receiver that is told every delay knows every flow's mean and deviation; one that interpolates does not.
func TestExact(t *testing.T) {
	p := simulate(quick, setting{kind: heavyTailed, utilisation: 0.7, packets: 20000, injector: adaptive})
	c := p.config(byLeft)
	c.Rate = 0
	r := experiment.Try(rli.NewReceiver(c))
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			r.Reference(rli.ReferencePacket{Sequence: uint64(i), Sent: d.out - d.delay}, d.out)
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
		}
	}
	a := p.judge(r)
	if worst := quantile(a.mean, 1); worst > 1e-12 {
		t.Errorf("worst error of a mean %v", worst)
	}
	if worst := quantile(a.deviation, 1); worst > 1e-6 {
		t.Errorf("worst error of a deviation %v", worst)
	}
	if a, _ = p.measure(byLine); quantile(a.mean, 0.25) < 1e-3 {
		t.Errorf("a quarter of the flows are off by %v at most between references", quantile(a.mean, 0.25))
	}
}

// A setting gives the same passage again. What is sent does not depend on the references, and what arrives
// agrees with the flows' truth.
func TestSimulate(t *testing.T) {
	for _, kind := range drawn {
		s := setting{kind: kind, utilisation: 0.55, packets: 5000, injector: everyNth(10)}
		p, again := simulate(quick, s), simulate(quick, s)
		if !reflect.DeepEqual(p, again) {
			t.Errorf("%s: two runs differ", kind.name)
		}
		if math.Abs(float64(len(p.stamps)-500)) > 20 || len(p.events) != 5000+len(p.stamps)-p.lost {
			t.Errorf("%s: %d references, %d departures, %d lost", kind.name, len(p.stamps), len(p.events), p.lost)
		}
		s.ahead = true
		ahead := simulate(quick, s)
		for i := range p.events {
			// The reference and its packet, in either order.
			if e := &p.events[i]; !e.regular() && p.events[i-1].regular() && ahead.events[i].regular() == ahead.events[i-1].regular() {
				t.Fatalf("%s: the reference at %d is not ahead", kind.name, i)
			}
		}
		s.injector, s.ahead = adaptive, false
		if other := simulate(quick, s); !reflect.DeepEqual(p.sent, other.sent) {
			t.Errorf("%s: other references, other packets", kind.name)
		}
		packets, sum := 0, 0.0
		for i := range p.flows {
			packets += int(p.flows[i].delays.N())
			sum += p.flows[i].mean() * float64(p.flows[i].delays.N())
		}
		if packets+p.lost != len(p.sent) || math.Abs(sum/float64(packets)-p.all.Mean()) > 1e-9*p.all.Mean() {
			t.Errorf("%s: %d packets of flows, %d lost, of %d", kind.name, packets, p.lost, len(p.sent))
		}
	}
}
