package hoplag

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/flows"
	"github.com/hoplag/hoplag/lda/lost"
)

func sampleReport() Report {
	return Report{
		Number: 7, Start: time.Unix(7, 0).UTC(), Length: time.Second, From: "a\"\\\n", To: "b",
		Forth: Traffic{
			Mean: 39.137e6, Sent: 100, Received: 95, Lost: 5,
			MeanInterval95:      estimate.Interval{Low: 38.9e6, High: 40e6, Confidence: 0.95},
			StdDev:              27.752e6,
			DeviationInterval95: estimate.Interval{Low: 27e6, High: math.Inf(1), Confidence: 0.95},
			Quantiles: []lda.Quantile{{P: 0.99, Delay: 91.2e6,
				Interval: estimate.Interval{Low: 90e6, High: 93e6, Confidence: 0.95}}},
			AtMost:  []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 40, 60, 95, 95, 95, 95, 95, 95, 95},
			Flows:   []flows.Delay{{Flow: 1 << 60, Mean: 4e6, Sent: 9}},
			Missing: []lost.Name{{ID: 1 << 60, Packet: 1 << 60, Sent: 1 << 60}},
		},
		Back: Traffic{Err: ErrIdle},
		Clock: clock.Reading{Time: 7e9 + 1<<60, Offset: -1e6, Drift: 3e-5,
			Likely: estimate.Interval{Low: -1.001e6, High: -0.999e6, Confidence: 0.95}},
		Err: fmt.Errorf("%w: no route", ErrSilent),
	}
}

var sameErrors = cmp.Options{
	cmp.Comparer(func(a, b error) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error() && errors.Is(a, ErrSilent) == errors.Is(b, ErrSilent) &&
			errors.Is(a, ErrIdle) == errors.Is(b, ErrIdle))
	}),
	cmpopts.EquateEmpty(),
}

// A report survives JSON: its intervals, infinite ones too, and its errors.
func TestReportInJSON(t *testing.T) {
	for _, want := range []Report{sampleReport(), {}} {
		data, err := json.Marshal(want)
		must0(t, err)
		var got Report
		if err := json.Unmarshal(data, &got); err != nil || regexp.MustCompile(`[^"0-9]\d{17}`).Match(data) { // others have 53 bits
			t.Fatal(err, string(data))
		}
		if diff := cmp.Diff(want, got, sameErrors); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	r := sampleReport()
	if err := json.Unmarshal([]byte(`{"Number": "x"}`), &r); err == nil || r.Number != 7 {
		t.Errorf("error %v, number %d", err, r.Number)
	}
}

// Whatever the text, a report that is accepted is encoded and decoded as the same.
func FuzzReportJSON(f *testing.F) {
	for _, text := range []string{
		`{"Forth":{"Mean":1,"Err":"no samples"},"Err":"x"}`, `{"Back":{"Quantiles":[{"P":0.5}]}}`, `{}`, `null`, `{"Back":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, decoded Report
		if json.Unmarshal(data, &r) != nil {
			return
		}
		first, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q is read, and not written: %v", data, err)
		}
		if err := json.Unmarshal(first, &decoded); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if second, err := json.Marshal(decoded); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%q became %q, %v", first, second, err)
		}
	})
}

func TestReportString(t *testing.T) {
	r := sampleReport()
	r.From = "a"
	const want = "a → b  39.14 ms (38.90 ms to 40.00 ms), p99 91.20 ms, sent 100, lost 5 (5.00 %); " +
		"clocks: offset -1.000 ms ± 1.000 µs, drift 30 ppm; the other point is silent: no route"
	if got := r.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	idle := Traffic{Err: ErrIdle}
	const zero = "? → ?  no packets; clocks: not known: nothing came back"
	if got := (Report{Forth: idle, Back: idle, ClockErr: errors.New("nothing came back")}).String(); got != zero {
		t.Errorf("got %s", got)
	}
	const unlike = "? → ?  the points do not see the same packets, sent 3, received 2"
	const nothing = `? → "b\n\xff"  not measured`
	none := Report{Forth: Traffic{Err: ErrUnlike, Sent: 3, Received: 2, Lost: 1}}
	if a, b := none.String(), (Report{To: "b\n\xff"}).String(); a != unlike || b != nothing {
		t.Errorf("got %s, and of nothing %s", a, b)
	}
	r = Report{From: "a", To: "b", Begins: true, Back: idle, Forth: Traffic{
		Mean: 5e6, Received: 90, Sent: 90, MeanInterval95: estimate.Interval{Low: 4e6, High: 6e6}}}
	for unknown, want := range map[bool]string{true: "received 90, loss not known yet", false: "sent 90, lost 0 (0.00 %)"} {
		r.Forth.LossUnknown = unknown
		r.Back, want = r.Forth, "5.000 ms (4.000 ms to 6.000 ms), "+want
		if got, want := r.String(), "a → b  "+want+"; back "+want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Packets that come twice hide no loss, and those that come after they were given up are extra: no counter
// falls, and the counters add up.
func TestCountersNeverFall(t *testing.T) {
	var m Metrics
	for i, c := range []struct{ lost, extra, want uint64 }{{5, 0, 5}, {0, 3, 5}, {2, 2, 7}, {4, 0, 11}} {
		m.Add(Report{Forth: Traffic{Sent: 10, Lost: c.lost, Extra: c.extra}, Back: Traffic{Err: ErrIdle}})
		w := httptest.NewRecorder()
		m.ServeHTTP(w, nil)
		want := fmt.Sprintf("hoplag_packets_lost_total{from=\"\",to=\"\",direction=\"forth\"} %d\n", c.want)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("after report %d there is no %s", i, want)
		}
	}
}

// The metrics add up, and each line is what the exposition format has; bench/peers reads them with Prometheus' own parser.
func TestMetrics(t *testing.T) {
	var m Metrics
	m.Add(sampleReport())
	m.Add(sampleReport())
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	page := w.Body.String()
	const labels = `from="a\"\\\n",to="b",direction="forth"`
	for _, want := range []string{
		"# TYPE hoplag_packets_sent_total counter\nhoplag_packets_sent_total{" + labels + "} 200\n",
		"hoplag_packets_lost_total{" + labels + "} 10\n",
		"# HELP hoplag_packets_lost_total Packets that were given up",
		"hoplag_flow_delay_mean_seconds{" + labels + ",flow=\"1000000000000000\"} 0.004\n",
		"hoplag_delay_quantile_seconds{" + labels + ",quantile=\"0.99\"} 0.0912\n",
		"# TYPE hoplag_delay_seconds histogram\n",
		"hoplag_delay_seconds_bucket{" + labels + ",le=\"0.05\"} 120\n",
		"hoplag_delay_seconds_bucket{" + labels + ",le=\"+Inf\"} 190\n",
		"hoplag_delay_seconds_count{" + labels + "} 190\n",
		"hoplag_delay_mean_high_seconds{" + labels + "} 0.04\n",
		"hoplag_reports_failed_total{from=\"a\\\"\\\\\\n\",to=\"b\"} 2\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	none, endless := new(Metrics), estimate.Interval{High: math.Inf(1)}
	none.Add(Report{From: "\xff"})
	none.Add(Report{From: "\xfe", Start: time.Time{}.Add(-1)}) // is the same in UTF-8
	none.Add(Report{Length: time.Second})
	none.Add(Report{Start: time.Time{}.Add(3 * time.Second), Forth: Traffic{Received: 100, Flows: []flows.Delay{{MeanInterval95: endless}}}})
	none.ServeHTTP(w, nil)
	s := w.Body.String()[len(page):]
	for _, want := range []string{`reports_total{from="�",to=""} 2`, `failed_total{from="",to=""} 1`, `failed_total{from="�",to=""} 1`} {
		if !strings.Contains(s, want) || strings.Contains(s, "hoplag_delay_seconds_count") || strings.Contains(s, "hoplag_flow_delay") {
			t.Errorf("what is not known has a line, or names have no single one, or there is no %s:\n%s", want, s)
		}
	}
}

// A deviation that is all drift is 0, and in its own interval, as a mean is.
func TestDeviationIsInItsInterval(t *testing.T) {
	d := Traffic{Mean: 1e3, StdDev: 500, DeviationInterval95: estimate.Interval{Low: 414, High: 628}}
	d.settle(clock.Reading{Drift: 1e-5}, clock.Reading{}, nil, time.Second, estimate.Empirical{})
	if i := d.DeviationInterval95; d.StdDev != 0 || !i.Contains(d.StdDev) || i.High != 628 {
		t.Errorf("deviation %v, interval %v", d.StdDev, i)
	}
	d.Certain.High, d.MeanInterval95 = 2e6, estimate.Interval{Low: 500, High: 2e6}
	if d.settle(clock.Reading{Offset: 1e4}, clock.Reading{}, nil, 0, estimate.Empirical{}); d.Mean < 0 {
		t.Errorf("mean %v, interval %v", d.Mean, d.MeanInterval95)
	}
}

// A point that counts as much in each cut as in those before takes no more room, and one that has many packets that were
// alone at both points keeps the fastest.
func TestRoomIsKept(t *testing.T) {
	c := Config{Key: testKey}.withDefaults()
	d, cut, entries := newDirection(&c, newTimeline(nil)), int64(0), make([]entry, 300)
	if n := testing.AllocsPerRun(50, func() {
		cut++
		for i := range entries {
			entries[i] = entry{time: cut * int64(c.Cut), packet: hashing.Packet(i)}
		}
		s := d.shards[0]
		s.mu.Lock()
		s.add(entries, math.MinInt64, nil)
		s.mu.Unlock()
		total, _ := d.rotate(cut)
		total.giveBack()
	}); n > 0 {
		t.Errorf("a cut makes room %v times", n)
	}
	alone := newMeeting(c) // until the other point is heard
	for i := range int64(1000) {
		must(alone.take(first, "", &record{interval: interval{session: 1, after: i, through: i + 1}}))
	}
	if n := len(alone.ends[first].shards[0].queue); n > maxQueue {
		t.Errorf("%d records wait for a point that was never heard", n)
	}
	var samples tracked
	for i := range uint64(10_000) {
		samples.add(&c, forth, 0, 1e6+i*7919%10_000, 1)
	}
	all, least := samples.samples[forth].Take(), int64(math.MaxInt64)
	for i := range all {
		least = min(least, all[i].Delay)
	}
	if len(all) > 8 || least != 1e6 {
		t.Errorf("of 10,000 samples %d are kept, the least %d", len(all), least)
	}
}

// A cut takes as many bytes as the documentation of Config.History says.
func TestCutsAreSmall(t *testing.T) {
	c := Config{Key: testKey}.withDefaults()
	s := newSealer(c)
	for packets, kib := range map[int]float64{1: 0.8, 500: 4.4, 50_000: 36} {
		counted := borrowInto(new(*tally), &c)
		for i := range packets {
			counted.add([]entry{{packet: hashing.Word(1, uint64(i)), time: int64(i%500) * 2e5}})
		}
		if size := float64(len(s.record(&interval{through: 1}, [2]*tally{counted}))) / 1024; math.Abs(size/kib-1) > 0.1 {
			t.Errorf("%d packets take %.2f KiB, want %.1f", packets, size, kib)
		}
	}
}

// small is a Config of small records.
func small() Config {
	c := Config{Key: testKey, Flows: 10}
	c.Cells.Banks[0].Rows, c.Cells.SumBits, c.Cells.DigestBits = 64, 64, 16
	return c.withDefaults()
}

// someTallies have packets of both directions.
func someTallies(c *Config) [2]*tally {
	all := [2]*tally{borrowInto(new(*tally), c), borrowInto(new(*tally), c)}
	for i := range uint64(100) {
		e := entry{packet: hashing.Word(1, i), flow: hashing.Flow(i % 5), time: int64(i)}
		all[forth].add([]entry{e})
		all[back].add([]entry{e, e})
	}
	return all
}

func (s *sealer) someRecord() []byte {
	return s.signed(&interval{session: 77, after: -3, through: 9}, someTallies(&s.config))
}

func (s *sealer) signed(of *interval, counted [2]*tally) []byte {
	record := s.record(of, counted)
	return append(record, s.tag(record)...)
}

// unpack is what a part of a record counted.
func (s *sealer) unpack(p part) *tally {
	t := borrowInto(new(*tally), &s.config)
	t.addPart(p)
	return t
}

func TestRecordSurvivesTheWire(t *testing.T) {
	seal := newSealer(small())
	want := someTallies(&seal.config)
	data := seal.someRecord()
	got, err := seal.decode(data)
	must0(t, err)
	if got.session != 77 || got.after != -3 || got.through != 9 {
		t.Errorf("got %+v", got)
	}
	var tallies [2]*tally
	for i, p := range got.parts {
		tallies[i] = seal.unpack(p)
		if !bytes.Equal(want[i].all.AppendPacked(nil, 0), tallies[i].all.AppendPacked(nil, 0)) {
			t.Errorf("direction %d: packets differ", i)
		}
		if f := want[i].flows; !bytes.Equal(f.Append(nil, 0), tallies[i].flows.Append(nil, 0)) || f.Len() != 4 {
			t.Errorf("direction %d: flows differ", i)
		}
	}
	if !bytes.Equal(seal.signed(&interval{session: 77, after: -3, through: 9}, tallies), data) {
		t.Error("encoded again it is another record")
	}
}

// Every change of a bit and every cut is refused, and so is another key.
func TestRecordsAreSealed(t *testing.T) {
	c := small()
	seal := newSealer(c)
	data := seal.someRecord()
	for i := range data {
		for _, bit := range []byte{1, 0x80} {
			bad := slices.Clone(data)
			bad[i] ^= bit
			if _, err := seal.decode(bad); err == nil {
				t.Fatalf("bit %#x of byte %d may be changed", bit, i)
			}
		}
	}
	for n := range data {
		if _, err := seal.decode(data[:n]); err == nil {
			t.Fatalf("%d bytes of %d are enough", n, len(data))
		}
	}
	c.Key = NewKey("another secret key")
	other := newSealer(c)
	if _, err := other.decode(data); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another key: %v", err)
	}
	// The right identity, which is no secret, without the key.
	forger := other
	forger.identity = seal.identity
	if _, err := seal.decode(forger.signed(&interval{session: 1, through: 1}, [2]*tally{})); !errors.Is(err, errForged) {
		t.Errorf("a forged record: %v", err)
	}
}

// A follower that does not ask for flows works with a point that has them.
func TestRecordsWithoutFlows(t *testing.T) {
	c := small()
	seal := newSealer(c)
	c.Flows = 0
	plain := newSealer(c)
	if r, err := plain.decode(seal.someRecord()); err != nil || plain.unpack(r.parts[forth]).all.Packets() != 100 {
		t.Error(err)
	}
}

// Someone with the key may send nonsense by mistake: it is an error, and takes no more memory than a record.
func TestSignedNonsense(t *testing.T) {
	c := small()
	seal := newSealer(c)
	good := seal.someRecord()
	body := good[:len(good)-tagSize-4] // without the checksum
	const sizesAt = 5 + 8 + 5*8 + 2*4
	for name, change := range map[string]func([]byte) []byte{
		"a cut that ends before it begins": func(b []byte) []byte {
			binary.BigEndian.PutUint64(b[5+8+4*8:], uint64(1)<<63)
			return b
		},
		"a size of four gigabytes": func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[sizesAt:], 1<<32-1)
			return b
		},
		"a size too small":     func(b []byte) []byte { b[sizesAt+3]--; return b },
		"no sizes":             func(b []byte) []byte { return b[:sizesAt] },
		"nothing compressed":   func(b []byte) []byte { return b[:sizesAt+4] },
		"half of it":           func(b []byte) []byte { return b[:len(b)/2] },
		"bytes that are left":  func(b []byte) []byte { clear(b[sizesAt : sizesAt+4]); return b },
		"a wrong compression":  func(b []byte) []byte { b[sizesAt+4] ^= 0xff; return b },
		"other people's magic": func(b []byte) []byte { b[0]++; return b },
	} {
		bad := seal.seal(change(slices.Clone(body)))
		if _, err := seal.decode(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// No bytes make a decoder panic or take what is not signed.
func FuzzDecode(f *testing.F) {
	c := small()
	seal := newSealer(c)
	p := &Point{config: c, open: f.Context(), clock: newTimeline(nil), seal: seal, Direction: newDirection(&c, newTimeline(nil))}
	p.history = newHistory(1 << 20)
	record := seal.someRecord()
	p.history.add(stored{interval: interval{session: 77, after: -3, through: 9}, data: record[:len(record)-tagSize]}, 0)
	q := newRequest(1, position{77, 3}, nil)
	request := seal.request(q)
	reply, err := p.Answer(request)
	if err != nil {
		f.Fatal(err)
	}
	for _, message := range [][]byte{record, request, reply, nil} {
		f.Add(message, false)
		f.Add(message[:max(0, len(message)-tagSize-4)], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sign bool) {
		if sign {
			data = seal.seal(slices.Clone(data)) // by someone who has the key
		}
		if r, err := seal.decode(data); err == nil {
			again := seal.signed(&r.interval, [2]*tally{seal.unpack(r.parts[forth]), seal.unpack(r.parts[back])})
			if !sign && !bytes.Equal(again, data) {
				t.Error("a record has two encodings")
			}
		}
		p.Answer(data)
		seal.answered(q, data)
		m := newMeeting(c)
		if r, err := seal.decode(data); err == nil {
			m.take(first, "", r)
			m.take(second, "", must(seal.decode(record)))
			m.next()
		}
	})
}

// A Key that can be found by trial is refused, as are sums that may wrap. Printers show no more of a point than its name.
func TestKeysAreLong(t *testing.T) {
	p := newTestPoint(t, Config{Key: testKey}, "a")
	for _, v := range []any{p, p.Direction, p.Back} {
		if s := fmt.Sprintf("%v %+v %#v %s", v, v, v, v); s != strings.Repeat(` hoplag.Point("a")`, 4)[1:] {
			t.Error(s)
		}
	}
	for _, c := range []struct {
		config Config
		ok     bool
	}{
		{Config{}, false}, {Config{Key: NewKey("fifteen bytes..")}, false}, {Config{Key: testKey}, true},
		{Config{Key: testKey, Cells: lda.Config{Banks: [4]lda.Bank{{Rows: 8}}, SumBits: 40, DigestBits: 1}}, false},
		{Config{Key: testKey, Cells: lda.Config{Banks: [4]lda.Bank{{Rows: 8}}, SumBits: 64}}, false},
	} {
		if err := c.config.validate(); (err == nil) != c.ok || err != nil && !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// Each mistake of a user has an error message of its own.
func TestMistakesAreNamed(t *testing.T) {
	base := Config{Key: testKey, ClocksAgree: true}
	with := func(change func(*Config)) Config {
		c := base.withDefaults()
		change(&c)
		return c
	}
	other := func(l *link, i uint64) {}
	for name, c := range map[string]struct {
		there Config
		pass  func(l *link, i uint64) // at the second point
		want  string
	}{
		"ids":      {base, func(l *link, i uint64) { l.b.PassedNumber(^i) }, "do both points pass the same bytes?"},
		"some ids": {base, func(l *link, i uint64) { l.b.PassedNumber(i ^ -(i % 4 / 3)) }, "or came twice, and"},
		"fan-out":  {base, func(l *link, i uint64) { l.b.PassedNumber(i); l.b.PassedNumber(i) }, "several receivers, or come from a third"},
		"key":      {with(func(c *Config) { c.Key = NewKey("another secret key") }), other, "another Key"},
		"SipHash":  {with(func(c *Config) { c.SipHash = true }), other, "SipHash is set at one of them"},
		"cut":      {with(func(c *Config) { c.Cut = 50 * time.Millisecond }), other, "Cut is 50ms at the other point and 100ms here"},
		"rows":     {with(func(c *Config) { c.Cells.Banks[0].Rows = 1024 }), other, "Banks[0].Rows is 1024 there, 2048 here"},
		"digests":  {with(func(c *Config) { c.Cells.DigestBits = 12 }), other, "DigestBits is 12 there, 32 here"},
	} {
		onLink(t, base, 0, func(t *testing.T, l *link) {
			l.a.Swap(l.newPoint(t, c.there, "a", newTestClock(0, 0))).Close()
			l.each(time.Millisecond, func(i int) {
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(5 * time.Millisecond)
				c.pass(l, uint64(i))
			})
			r := l.reports(6)[5]
			unlike := c.there != base && !errors.Is(r.Err, estimate.ErrMismatch) || r.Forth.Lost+r.Forth.Extra > 0 // nobody knows
			if text := r.String(); r.Err == nil && r.Forth.Err == nil || !strings.Contains(text, c.want) || unlike {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	moved := httptest.NewServer(http.RedirectHandler(server.URL+"/there", http.StatusMovedPermanently))
	defer moved.Close()
	for url, want := range map[string]string{server.URL + "/wrong": "is the path right?", moved.URL: "/there, which turns a POST into a GET"} {
		if _, err := HTTP(nil, url)(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a wrong URL: %v, want %s", err, want)
		}
	}
}
