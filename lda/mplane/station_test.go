package mplane

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

const second = int64(1e9)

// A world is a network whose segments have delays that are known, measured by routers whose clocks are not.
type world struct {
	t       *testing.T
	plan    *Plan
	path    []Router    // from A to D
	ids     []SegmentID // along it
	station *Station
	random  *rand.Rand
	key     Key

	offset, drift []float64             // ns, and ns an interval, by router
	usual         map[SegmentID]float64 // ns
	slow          map[SegmentID]float64 // ns more
	lossy         map[SegmentID]float64 // share of packets
	dropReport    func(Report) bool
	readings      bool // monitors read each other's clocks, to 1 µs
	change        func(*Measurement, uint64)
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	network, key := toy(t), NewKey("the key of all reports")
	p, path := toyPlan(t, network), routers(t, network, "A", "F", "C", "D")
	ids, err := p.Along(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStation(StationConfig{Plan: p, Key: key, Length: second})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, plan: p, path: path, ids: ids, station: s, random: rand.New(rand.NewPCG(seed, 0)), key: key,
		usual: map[SegmentID]float64{}, slow: map[SegmentID]float64{}, lossy: map[SegmentID]float64{}, change: func(*Measurement, uint64) {},
	}
	n := len(p.monitors)
	for range n {
		w.offset = append(w.offset, (w.random.Float64()-0.5)*2e8)
		w.drift = append(w.drift, (w.random.Float64()-0.5)*1e5) // ±50 ppm
	}
	for r := range Router(n) {
		for _, probed := range p.MSet(r) {
			// Both directions take about as long, as on one wire.
			w.usual[probed] = 1e6*float64(len(p.Hops(probed))-1)*float64(3+(probed.From+probed.To)%5) + w.random.Float64()*2e4
		}
		for _, id := range p.Internal(r) {
			w.usual[id] = 2e4 + w.random.Float64()*1e5
		}
	}
	return w
}

// report sends the station everything that is measured in an interval.
func (w *world) report(interval uint64) {
	for r := range Router(len(w.plan.monitors)) {
		for part := range slices.Chunk(append(w.plan.MSet(r), w.plan.Internal(r)...), maxMeasurements) {
			report := Report{Monitor: r, Interval: interval}
			for _, id := range part {
				report.Measurements = append(report.Measurements, w.measure(id, interval))
			}
			if w.dropReport != nil && w.dropReport(report) {
				continue
			}
			if err := w.receive(report, w.key, interval); err != nil && !errors.Is(err, ErrDisputed) {
				w.t.Fatal(err)
			}
		}
	}
}

// segment returns what the station knows of a segment.
func (w *world) segment(id SegmentID, interval uint64) (Measurement, bool) {
	if v := w.station.at(id, interval); v != nil {
		return v.Measurement, true
	}
	return Measurement{}, false
}

// receive gives the station a report, in an interval.
func (w *world) receive(r Report, key Key, now uint64) error {
	w.t.Helper()
	data, err := w.station.config.Plan.encode(r, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.station.Receive(int64(now)*second, data)
}

// reports passes a number of intervals.
func (w *world) reports(intervals uint64) {
	for i := range intervals {
		w.report(i)
	}
}

// measure is what the monitors find: 5 % of the mean is chance.
func (w *world) measure(id SegmentID, interval uint64) Measurement {
	mean := w.truth(id)
	if !id.internal() {
		mean += w.ahead(id.To, interval) - w.ahead(id.From, interval)
	}
	m := Measurement{Segment: id, Sent: 10_000, Error: 0.02 * w.usual[id], Delay: estimate.Delay{StdDev: 0.5 * w.usual[id], N: 5000}}
	m.Delay.Mean = mean + w.random.NormFloat64()*0.05*w.usual[id]
	if w.readings && !id.internal() {
		m.ahead, m.aheadError = w.ahead(id.To, interval)-w.ahead(id.From, interval)+1e3*w.random.NormFloat64(), 1e3
	}
	m.Lost = uint64(float64(m.Sent) * (0.002*w.random.Float64() + w.lossy[id]))
	w.change(&m, interval)
	return m
}

func (w *world) truth(id SegmentID) float64 { return w.usual[id] + w.slow[id] }

func (w *world) ahead(r Router, interval uint64) float64 {
	return w.offset[r] + w.drift[r]*float64(interval)
}

// A segment that has become slow is named in every interval from the fourth on, with the interval in which it
// began, and nothing else ever is, although clocks drift and one is stepped.
func TestLocalise(t *testing.T) {
	const looks, begins, runs = 17, 20, 40
	alarms, missed := 0, 0
	for seed := range uint64(runs) {
		w := newWorld(t, seed)
		fault := w.ids[seed%uint64(len(w.ids))]
		for interval := range uint64(begins + 10) {
			if interval == looks+1 {
				w.offset[w.path[2]] += 3e6 // a clock is set
			}
			if interval == begins {
				w.slow[fault] = 2 * w.usual[fault]
			}
			w.report(interval)
			v, err := w.station.Localise(w.path, interval)
			switch {
			case interval < looks:
			case err != nil || len(v.Unknown) > 0:
				t.Fatalf("%+v, %v", v, err)
			case interval < begins:
				alarms += len(v.Suspects)
			case interval >= begins+3 && (len(v.Suspects) != 1 || v.Suspects[0].Segment != fault ||
				v.Suspects[0].Excess < w.usual[fault] || v.Suspects[0].Since != begins):
				missed++
			}
		}
	}
	t.Logf("of %d looks %d miss faults; %d false alarms in %d", 7*runs, missed, alarms, 3*runs)
	if missed > 7*runs/100 || alarms > 3*runs/100 {
		t.Error("want at most 1 % of either")
	}
}

// What was not reported or where nothing came is said to be missing, and not assumed to be healthy; where all was lost,
// that is known. A segment that has traffic again is neither slow nor lossy for it. If it then loses more than usual for
// four intervals, it is named.
func TestMissing(t *testing.T) {
	for name, came := range map[string]lda.Result{"no report": {}, "nothing sent": {}, "all lost": {Sent: 1000, Lost: 1000}} {
		w := newWorld(t, 5)
		id, sent := w.ids[1], came.Sent > 0
		w.dropReport = func(r Report) bool { return name == "no report" && r.Interval < 20 && r.Monitor == id.Via }
		w.change = func(m *Measurement, interval uint64) {
			if m.Segment == id && interval < 20 {
				*m = Measure(id, &came)
			} else if m.Segment == id && interval >= 40 {
				m.Lost += m.Sent / 20
			}
		}
		for interval := range uint64(44) {
			w.report(interval)
			p, err := w.station.Path(w.path, interval)
			if none := errors.Is(err, estimate.ErrNoSamples) && slices.Contains(p.Missing, id) && (p.Loss == 1) == sent; none != (interval < 20) {
				t.Errorf("%s, interval %d: %+v, %v", name, interval, p, err)
			}
			v, _ := w.station.Localise(w.path, interval)
			named := slices.ContainsFunc(v.Suspects, func(p Suspect) bool { return p.Segment == id && p.Lossy && p.Excess > 0.04 })
			if interval < 40 && len(v.Suspects) > 0 || interval == 43 && named == sent || slices.Contains(v.Unknown, id) != (interval < 28) {
				t.Errorf("%s, interval %d: %+v", name, interval, v)
			}
		}
	}
}

// Reports that are forged, damaged, of another network or time, of unplanned segments, repeated, or
// contradictory.
func TestBadReports(t *testing.T) {
	w := newWorld(t, 1)
	a, f := w.path[0], w.path[1]
	id := w.plan.MSet(a)[0]
	m := w.measure(id, 100)
	good := Report{Monitor: a, Interval: 100, Measurements: []Measurement{m}}
	try := func(name string, r Report, key Key, want error) {
		t.Helper()
		if err := w.receive(r, key, 100); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	with := func(change func(*Report)) Report {
		r := good
		r.Measurements = slices.Clone(good.Measurements)
		change(&r)
		return r
	}
	try("no tag", good, Key{}, ErrForged)
	try("another key", good, NewKey("x"), ErrForged)
	elsewhere, _ := aPlan.encode(good, w.key)
	if err := w.station.Receive(100*second, elsewhere); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another network: error %v", err)
	}
	try("of the future", with(func(r *Report) { r.Interval = 103 }), w.key, ErrInterval)
	try("of the far future", with(func(r *Report) { r.Interval = math.MaxUint64 }), w.key, ErrInterval)
	try("of long ago", with(func(r *Report) { r.Interval = 100 - 62 }), w.key, ErrInterval)
	try("no such router", with(func(r *Report) { r.Monitor = -7 }), w.key, estimate.ErrMismatch)
	try("somebody else's segment", with(func(r *Report) { r.Monitor = f; r.Measurements[0].Segment.To = 1 }), w.key, estimate.ErrMismatch)
	try("no such segment", with(func(r *Report) { r.Measurements[0].Segment.Path = 5 }), w.key, estimate.ErrMismatch)
	if _, ok := w.segment(id, 100); ok {
		t.Error("a bad report was stored")
	}
	try("a good one", good, w.key, nil)
	try("the same again", good, w.key, nil)
	if got, ok := w.segment(id, 100); !ok || got != m {
		t.Errorf("%+v, want %+v", got, m)
	}
	try("another of the same", with(func(r *Report) { r.Measurements[0].Lost++ }), w.key, ErrDisputed)
	if _, ok := w.segment(id, 100); ok {
		t.Error("one of two contradictory measurements is believed")
	}
}

// After a change of topology the new plan's reports are accepted, and the old one's are not.
func TestReplan(t *testing.T) {
	w := newWorld(t, 1)
	w.report(1)
	old := outside([]Router{w.path[1], w.path[2]}) // F and C, between which there is no link any more
	n := new(Network)
	for _, name := range []string{"A", "B", "F", "C", "E", "D"} { // as in toy
		if _, err := n.addRouter(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []string{"AB2", "AF1", "BF2", "FE2", "CD1", "DE1"} {
		both(t, n, l[:1], l[1:2], float64(l[2]-'0'))
	}
	after := toyPlan(t, n)
	if err := w.station.Replan(nil); !errors.Is(err, estimate.ErrConfig) || after.Internal(99) != nil {
		t.Errorf("no plan: %v, and a router that does not exist: %v", err, after.Internal(99))
	}
	if err := w.station.Replan(after); err != nil {
		t.Fatal(err)
	}
	send := func(id SegmentID, interval uint64) error {
		return w.receive(Report{Monitor: id.From, Interval: interval,
			Measurements: []Measurement{{Segment: id, Sent: 1}}}, w.key, interval)
	}
	newest := outside(routers(t, n, "F", "E", "D", "C"))
	if err := errors.Join(send(newest, 4), send(newest, 5)); err != nil {
		t.Error(err)
	}
	if err := send(old, 5); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("a segment of the old plan: error %v", err)
	}
	other := new(Network) // the same routers, in another order
	for _, name := range []string{"F", "E", "D", "C", "B", "A"} {
		if _, err := other.addRouter(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.station.Replan(toyPlan(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("a plan of other routers: error %v", err)
	}
}
