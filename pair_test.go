package hoplag

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
)

// A pair that is neither point reports as a follower does: in order, once, and by the second point's clock, even if records come twice.
func TestPair(t *testing.T) {
	onLink(t, Config{Key: testKey}, -40*time.Second, func(t *testing.T, l *link) {
		l.send(time.Millisecond, both(1), both(2))
		p, err := NewPair(Config{Key: testKey}, "a", "b")
		must0(t, err)
		for point, take := range map[*Point]func(string, []byte) error{l.a.Load(): p.TakeFirst, l.b: p.TakeSecond} {
			l.all.Go(func() {
				for record := range point.Records(l.ctx) {
					time.Sleep(20 * time.Millisecond) // on the bus
					for range 2 {
						if err := take("", record); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		var reports []Report
		for len(reports) < 6 {
			time.Sleep(300 * time.Millisecond)
			for {
				r, ok := p.Next()
				if !ok {
					break
				}
				reports = append(reports, r)
			}
		}
		want(t, reports)
		if r := reports[5]; r.From != "a" || r.To != "b" || math.Abs(r.Clock.Offset+40e9) > 30e3 || time.Since(r.Start) > 4*time.Second {
			t.Errorf("%v, started %v ago", r, time.Since(r.Start))
		}
		// The first point goes silent.
		l.a.Load().Close()
		for {
			time.Sleep(300 * time.Millisecond)
			if r, ok := p.Next(); ok && errors.Is(r.Err, ErrSilent) {
				break
			}
		}
	})
}

// Records that a stream kept give the same reports whenever they are read, if
// the pair is told when they came, and the same means if they only come in that order.
func TestPairAt(t *testing.T) {
	type arrival struct {
		at    time.Time
		point *Point
		data  []byte
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: testKey}, -40*time.Second)
		l.send(time.Millisecond, both(1), both(2))
		stream := make(chan arrival, 1000)
		for _, point := range []*Point{l.a.Load(), l.b} {
			l.all.Go(func() {
				for record := range point.Records(l.ctx) {
					stream <- arrival{time.Now(), point, record}
				}
			})
		}
		time.Sleep(6 * time.Second)
		l.close()
		var kept []arrival
		for len(stream) > 0 {
			kept = append(kept, <-stream)
		}
		replay := func(pace time.Duration, at bool) (lines []string, means []float64) {
			p, err := NewPair(Config{Key: testKey}, "a", "b")
			must0(t, err)
			for _, k := range kept {
				time.Sleep(pace)
				if at {
					p.At(k.at)
				}
				for r, ok := p.Next(); ok; r, ok = p.Next() {
					data, err := r.MarshalJSON()
					must0(t, err)
					lines, means = append(lines, string(data)), append(means, r.Forth.Mean)
				}
				take := p.TakeFirst
				if k.point == l.b {
					take = p.TakeSecond
				}
				if err := take("", k.data); err != nil {
					t.Fatal(err)
				}
			}
			return lines, means
		}
		atOnce, told := replay(0, true)
		late, _ := replay(time.Second, true)
		if len(atOnce) < 4 || !slices.Equal(atOnce, late) {
			t.Errorf("read at once:\n%v\nread slowly:\n%v", atOnce, late)
		}
		if _, means := replay(0, false); !slices.Equal(means, told) {
			t.Errorf("means %v of records whose arrival is not told, %v of others", means, told)
		}
	})
}

// What was known of a clock ages as fast as clocks may drift.
func TestLeastAges(t *testing.T) {
	var l least
	l.add(0, 1, 0)
	if l.add(1e6, 2, 0.9e9); l.x != 1 {
		t.Error("it aged by more than a clock drifts")
	}
	if l.add(1e6, 3, 1.1e9); l.x != 3 {
		t.Error("it does not age")
	}
}

// A queue may stand on one path beside exchanges that take less, or that meet a queue on the other path: a mean is then known to
// within both. In a LAN the clocks leave it known to a quarter of the round trip, 50 µs, though packets seem to come before they are
// sent, unless two of a cell were sent in one cut at its end, and 1,000 packets leave 4·29/√1000 µs. Drifts of 500 ppm add 25 µs for
// half a cut, and levels add as much as is on the way. A round trip is measured 280 µs off where packets leave 0.7 s after others did.
func TestPathsAndClocks(t *testing.T) {
	c := clocks{messages: tracked{known: true}, exchanges: tracked{known: true, reading: clock.Reading{RoundTrip: 9, Stepped: true}}}
	if r := (Report{}); c.tell(&r, 0) != nil || r.Err != nil {
		t.Error("exchanges that take longer than packets show a step:", r.Err)
	}
	for _, w := range []struct {
		period, forth, back, more, later, request, reply, ahead time.Duration
		drift, half, trip                                       float64
	}{
		{2e6, 49e6, 9e6, 1e6, 0, 9e6, 9e6, -70e9, 0, 9.5e6, 1e6},
		{2e6, 49e6, 9e6, 1e6, 0, 49e6, 9e6, 7e6, 0, 11e6, 1e6},
		{1e6, 100e3, 100e3, 100e3, 0, 150e3, 150e3, 1000 * time.Hour, 0, 55e3, 4e3},
		{1e6, 100e3, 100e3, 100e3, 0, 150e3, 150e3, 0, 5e-4, 300e3, 300e3},
		{1e9, 405e6, 405e6, 1, 300e6, 5e6, 5e6, 7e6, 4e-4, 5.5e6, 1.5e6},
	} {
		onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
			l.a.Load().Close()
			l.a.Store(l.newPoint(t, Config{Key: testKey}, "a", newTestClock(w.ahead, w.drift)))
			pass := func(i int, from, to *Direction, least time.Duration) {
				from.PassedNumber(uint64(i))
				time.Sleep(least + time.Duration(uint64(hashing.Word(uint64(least), uint64(i)))%uint64(w.more)))
				to.PassedNumber(uint64(i))
			}
			l.each(w.period, func(i int) {
				time.Sleep(100 * time.Millisecond)
				pass(i, l.a.Load().Direction, l.b.Direction, w.forth)
				time.Sleep(w.later)
				pass(i, l.b.Back, l.a.Load().Back, w.back)
			})
			sampled := 4 * 0.41 * float64(w.more) / math.Sqrt(1e9/float64(w.period))
			n, wide, forth, back := 0, 0, float64(w.forth+w.more/2), float64(w.back+w.more/2)
			for r := range l.b.Follow(l.ctx, func(_ context.Context, request []byte) ([]byte, error) {
				time.Sleep(w.request)
				defer time.Sleep(w.reply)
				return l.a.Load().Answer(request)
			}) {
				i, trip := r.Forth.MeanInterval95, r.RoundTrip
				off := max(trip.Low-forth-back, forth+back-trip.High)
				if n > 7 && (!i.Contains(forth) || !r.Back.MeanInterval95.Contains(back) || off > sampled || r.Forth.Lost+r.Back.Lost > 0) {
					t.Errorf("%+v: %v", w, r)
				}
				if i.High-i.Low > 2*w.half || trip.High-trip.Low > 2*w.trip {
					wide++
				}
				if n++; n == 24 {
					break
				}
			}
			if wide > 12 {
				t.Errorf("%+v: %d of 24 intervals are wide", w, wide)
			}
		})
	}
}

// A mean that is certainly negative is an error, and such a round trip is not known.
func TestNegativeDelay(t *testing.T) {
	negative := estimate.Interval{Low: -5e6, High: -1e6}
	both := Traffic{MeanInterval95: negative, Certain: negative}
	r := Report{Forth: both, Back: both}
	if r.roundTrip(estimate.Interval{}, 0, 0, 0); r.RoundTrip.Confidence > 0 {
		t.Errorf("round trip %+v", r.RoundTrip)
	}
	if r.Forth.settle(clock.Reading{}, clock.Reading{}, nil, 0, estimate.Empirical{}); !errors.Is(r.Forth.Err, estimate.ErrClocks) {
		t.Errorf("%v, %v", r.Forth, r.Forth.Err)
	}
}

// A shardedPath has packets that pass two points, each of several shards, any of which a packet may pass.
type shardedPath struct {
	seal   *sealer
	shards [2]int
	cuts   int
	whole  [2][]*tally   // by point and cut
	parts  [2][][]*tally // by point, shard and cut
}

const (
	pathBegin  = int64(17e9) // number of the first cut
	pathQuiet  = 15          // cuts before the first packet, and after the last
	pathPacket = 40          // in a cut
)

func newShardedPath(c Config, seed uint64, first, second, cuts int) *shardedPath {
	p := &shardedPath{seal: newSealer(c), shards: [2]int{first, second}, cuts: cuts}
	for point, n := range p.shards {
		for range cuts {
			p.whole[point] = append(p.whole[point], borrowInto(new(*tally), &c))
		}
		p.parts[point] = make([][]*tally, n)
		for s := range n {
			for range cuts {
				p.parts[point][s] = append(p.parts[point][s], borrowInto(new(*tally), &c))
			}
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for cut := pathQuiet; cut < cuts-pathQuiet; cut++ {
		for range pathPacket {
			packet := hashing.Packet(r.Uint64())
			at := (pathBegin+int64(cut))*int64(c.Cut) + r.Int64N(int64(c.Cut))
			p.count(0, at, packet, r)
			p.count(1, at+int64(r.ExpFloat64()*20e6), packet, r)
		}
	}
	return p
}

// count counts a packet at some shard of a point.
func (p *shardedPath) count(point int, at int64, packet hashing.Packet, r *rand.Rand) {
	cut := at/int64(p.seal.config.Cut) - pathBegin
	for _, t := range []*tally{p.whole[point][cut], p.parts[point][r.IntN(p.shards[point])][cut]} {
		t.add([]entry{{time: at, packet: packet}})
	}
}

// record is that of a cut.
func (p *shardedPath) record(session uint64, cut int, t *tally) []byte {
	at := pathBegin + int64(cut)
	if t.all.Packets() == 0 {
		t = nil
	}
	return p.seal.signed(&interval{session: session, after: at - 1, through: at}, [2]*tally{t, nil})
}

// ended is a moment after a cut.
func (p *shardedPath) ended(cut int) time.Time {
	return time.Unix(0, (pathBegin+int64(cut)+1)*int64(p.seal.config.Cut))
}

// reports returns the reports of a pair that take gives the records of each cut.
func (p *shardedPath) reports(t *testing.T, c Config, take func(pair *Pair, cut int)) (all []Report) {
	pair, err := NewPair(c, "a", "b")
	must0(t, err)
	for cut := range p.cuts + 100 {
		pair.At(p.ended(cut))
		if cut < p.cuts {
			take(pair, cut)
		}
		for r, ok := pair.Next(); ok; r, ok = pair.Next() {
			all = append(all, r)
		}
	}
	return all
}

func must0(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The records of shards give the same reports as those of one point that saw all packets, in whatever order
// they arrive; those of one shard alone do not.
func TestShardsAreOne(t *testing.T) {
	c := Config{Key: testKey}.withDefaults()
	p := newShardedPath(c, 1, 3, 2, 80)
	want := p.reports(t, c, func(pair *Pair, cut int) {
		must0(t, pair.TakeFirst("", p.record(1, cut, p.whole[first][cut])))
		must0(t, pair.TakeSecond("", p.record(2, cut, p.whole[second][cut])))
	})
	sharded := func(least int) []Report {
		r := rand.New(rand.NewPCG(2, 2))
		return p.reports(t, c, func(pair *Pair, cut int) {
			for _, s := range r.Perm(3) {
				if s >= least {
					must0(t, pair.TakeFirst(string('a'+rune(s)), p.record(uint64(10+s), cut, p.parts[first][s][cut])))
				}
			}
			for _, s := range r.Perm(2) {
				must0(t, pair.TakeSecond(string('a'+rune(s)), p.record(uint64(20+s), cut, p.parts[second][s][cut])))
			}
			if at := pathBegin + int64(cut); (at+1)%10 == 0 { // a standby, which cuts seldom
				must0(t, pair.TakeFirst("idle", p.seal.signed(&interval{session: 30, after: at - 10, through: at}, [2]*tally{})))
			}
		})
	}
	same := func(x, y []Report) string {
		ignore := cmpopts.IgnoreFields(Report{}, "Begins") // shards are first heard of one by one
		return cmp.Diff(x, y, ignore, sameErrors)
	}
	if len(want) < 5 {
		t.Fatalf("%d reports", len(want))
	}
	if diff := same(want, sharded(0)); diff != "" {
		t.Errorf("of one point − of shards +:\n%s", diff)
	}
	if same(want, sharded(1)) == "" {
		t.Error("one shard can be left out: the test proves nothing")
	}
}

// A shard is waited for whose records come later than the others'.
func TestLateShard(t *testing.T) {
	c := Config{Key: testKey, ClocksAgree: true}.withDefaults()
	p, sent := newShardedPath(c, 1, 2, 1, 80), uint64(0)
	for _, r := range p.reports(t, c, func(pair *Pair, cut int) {
		must0(t, pair.TakeFirst("early", p.record(1, cut, p.parts[first][0][cut])))
		if late := cut - 2; late >= 0 {
			must0(t, pair.TakeFirst("late", p.record(2, late, p.parts[first][1][late])))
		}
		must0(t, pair.TakeSecond("", p.record(3, cut, p.whole[second][cut])))
	}) {
		if sent += r.Forth.Sent; r.Forth.Lost+r.Forth.Extra > 0 {
			t.Error(r)
		}
	}
	if all := uint64(80-2*pathQuiet) * pathPacket; sent != all {
		t.Errorf("%d sent of %d", sent, all)
	}
}

// While packets pass, a shard joins, another begins anew, and a third leaves. Reports say when they begin anew;
// all others have every packet once, with its delay.
func TestShardsComeAndGo(t *testing.T) {
	c := Config{Key: testKey}.withDefaults()
	const cuts, joins, restarts, goes = 300, 60, 120, 180
	p := newShardedPath(c, 3, 3, 1, cuts)
	// Shard 0 has what shard 1 would have before it joins, and shard 2 after it left.
	move := func(from, cut int) {
		must0(t, p.parts[first][0][cut].all.Merge(&p.parts[first][from][cut].all.Aggregator))
		p.parts[first][from][cut].all.Reset()
	}
	for cut := range cuts {
		if cut < joins {
			move(1, cut)
		}
		if cut >= goes {
			move(2, cut)
		}
	}
	reports := p.reports(t, c, func(pair *Pair, cut int) {
		must0(t, pair.TakeFirst("0", p.record(1, cut, p.parts[first][0][cut])))
		if cut >= joins {
			session := uint64(2)
			if cut >= restarts {
				session = 3
			}
			must0(t, pair.TakeFirst("1", p.record(session, cut, p.parts[first][1][cut])))
		}
		if cut < goes {
			must0(t, pair.TakeFirst("2", p.record(4, cut, p.parts[first][2][cut])))
			must0(t, pair.TakeFirst("2", p.record(4, cut, p.parts[first][2][cut]))) // again
		}
		must0(t, pair.TakeSecond("", p.record(9, cut, p.whole[second][cut])))
	})
	var sent, received, lost, extra uint64
	begins, silent := 0, 0
	for i, r := range reports {
		sent += r.Forth.Sent
		received += r.Forth.Received
		lost += r.Forth.Lost
		extra += r.Forth.Extra
		if i > 0 && r.Begins && !reports[i-1].Begins {
			begins++
		}
		if errors.Is(r.Err, ErrSilent) && r.Start.Before(p.ended(cuts-pathQuiet)) {
			silent++
		}
		if d := r.Forth; d.Err == nil && !r.Begins && math.Abs(d.Mean-20e6) > 6*20e6/math.Sqrt(10*pathPacket) {
			t.Errorf("report %d: mean %v", r.Number, Format(d.Mean))
		}
	}
	// A record of the shard that joins, or begins anew, may end before the others' and is then left out; nothing else is.
	const all = (cuts - 2*pathQuiet) * pathPacket
	if received != all || sent > all || sent < all-2*pathPacket || lost+extra != 0 {
		t.Errorf("%d sent, %d received, %d lost, %d extra, of %d", sent, received, lost, extra, all)
	}
	if begins != 3 || silent < 3 || silent > 5 {
		t.Errorf("%d times begun anew, want 3 after the first; %d silent reports while a shard is waited for", begins, silent)
	}
}

// TestKeyForgesAnswers: whoever holds the key and answers in the place of the first point can make up
// anything: here messages that seem to have been sent 3 ms later.
func TestKeyForgesAnswers(t *testing.T) {
	for key, believed := range map[Key]bool{testKey: true, NewKey("another secret key"): false} {
		onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
			forger := must(NewPoint(Config{Key: key}))
			defer forger.Close()
			l.send(time.Millisecond, func(int) time.Duration { return 5 * time.Millisecond }, nil)
			l.each(time.Millisecond, func(i int) { time.Sleep(3 * time.Millisecond); forger.PassedNumber(uint64(i)) })
			ask := func(_ context.Context, request []byte) ([]byte, error) { return forger.Answer(request) }
			n := 0
			for r := range l.b.Follow(l.ctx, ask) {
				if n++; n <= 2 {
					continue
				}
				if d := r.Forth; believed && (r.Err != nil || !d.near(2e6)) || !believed && (!errors.Is(r.Err, ErrSilent) || d.Received > 0) {
					t.Errorf("signed with %v: %v", key, r)
				}
				if n == 6 {
					break
				}
			}
		})
	}
}

// A shard that is late when the transport is cut is waited for when it is back.
func TestLateShardAfterOutage(t *testing.T) {
	c, sent := Config{Key: testKey, ClocksAgree: true}.withDefaults(), uint64(0)
	const cuts, from, back = 240, 60, 130
	p := newShardedPath(c, 1, 2, 1, cuts)
	for _, r := range p.reports(t, c, func(pair *Pair, cut int) {
		early, late := cut, cut-1 // the first cut of each that is delivered
		switch {
		case cut >= from && cut < back:
			return
		case cut == back:
			early, late = from, cut // the late one's come with the next cut
		case cut == back+1:
			late = from - 1
		}
		for k := early; k <= cut; k++ {
			must0(t, pair.TakeFirst("early", p.record(1, k, p.parts[first][0][k])))
			must0(t, pair.TakeSecond("", p.record(3, k, p.whole[second][k])))
		}
		for k := max(late, 0); k < cut; k++ {
			must0(t, pair.TakeFirst("late", p.record(2, k, p.parts[first][1][k])))
		}
	}) {
		sent += r.Forth.Sent
	}
	if all := uint64(cuts-2*pathQuiet) * pathPacket; sent != all {
		t.Errorf("%d sent of %d", sent, all)
	}
}
