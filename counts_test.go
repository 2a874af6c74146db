package hoplag

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// Packets that arrive in an interval after its traffic ended are no copies. Copies are.
func TestLastPacketsAreNoCopies(t *testing.T) {
	for _, copies := range []int{1, 2} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.each(time.Millisecond, func(i int) {
				if i >= 3050 {
					return
				}
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(300 * time.Millisecond)
				for range copies {
					l.b.PassedNumber(uint64(i))
				}
			})
			named := false
			for _, r := range l.reports(9) {
				named = named || errors.Is(r.Forth.Err, ErrUnlike)
			}
			if named != (copies > 1) {
				t.Errorf("each packet arrives %d times: ErrUnlike %t", copies, named)
			}
		})
	}
}

// A session begins in one report or two, by how long messages take, and not in as many as ten cuts fill.
func TestBeginsIsShort(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true, Cut: time.Second, Report: time.Second}, 0, func(t *testing.T, l *link) {
		l.send(4*time.Second, func(int) time.Duration { return 5 * time.Millisecond }, nil)
		begins := 0
		for _, r := range l.reports(30) {
			if r.Begins {
				begins++
			}
		}
		if begins < 1 || begins > 2 {
			t.Errorf("%d of 30 reports begin", begins)
		}
	})
}

// Messages that take far longer than those before are not reported as lost, nor left out of the mean: reports
// include them, or have no mean.
func TestSlowWhenItBegins(t *testing.T) {
	const fast = 5 * time.Millisecond
	fifth := func(_ time.Duration, i int) time.Duration {
		return fast + time.Duration((5-i%5)/5)*time.Duration(25+i%7)*100*time.Millisecond
	}
	for name, c := range map[string]struct {
		wait, period time.Duration
		delay        func(at time.Duration, i int) time.Duration
	}{
		"from the start": {0, time.Millisecond, fifth}, "a fifth": {6 * time.Second, time.Millisecond, fifth},
		"until then": {6 * time.Second, time.Millisecond, func(at time.Duration, i int) time.Duration {
			return max(fast, 3*time.Second*min(1, max(0, 4500*time.Millisecond-at)))
		}},
		"slower": {6 * time.Second, time.Millisecond, func(at time.Duration, i int) time.Duration {
			return max(fast, min(150*time.Millisecond, 6*time.Second-at))
		}},
		"outage": {0, time.Millisecond, func(at time.Duration, i int) time.Duration {
			return max(fast, (6500*time.Millisecond-at)*min(1, max(0, at-4*time.Second)))
		}},
		"held": {6 * time.Second, 30 * time.Millisecond, func(at time.Duration, i int) time.Duration {
			return max(fast, min(2300*time.Millisecond, 6300*time.Millisecond-at))
		}},
	} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			begin, answered, begins := time.Now(), 0, 0
			sent := func(i int) time.Duration { return time.Duration(i) * c.period }
			delay := func(i int) time.Duration { return c.delay(sent(i), i) }
			l.send(c.period, delay, nil)
			time.Sleep(c.wait)
			for _, r := range l.reports(7) {
				d, truth := &r.Forth, r.came(begin, int(15*time.Second/c.period), sent, delay)
				if begins += map[bool]int{true: 1}[r.Begins]; d.Err == nil && d.Certain.High-d.Certain.Low > 3.2e9 {
					t.Errorf("%s: %v is no narrower than all delays", name, r)
				}
				if answered += map[bool]int{true: 1}[d.Err == nil]; d.Lost > 0 || d.Err == nil && !d.Certain.Contains(truth.Mean()) {
					t.Errorf("%s: %v, mean %s", name, r, Format(truth.Mean()))
				}
			}
			if answered < 3 || begins == 0 || begins == 7 {
				t.Errorf("%s: %d of 7 reports have a mean, and %d begin", name, answered, begins)
			}
		})
	}
}

// Traffic that tempts reports to be sure of what they do not know. Each interval holds the mean, and some do
// not hold a mean that is a tenth lower.
func TestReportsHold(t *testing.T) {
	long(t)
	chance := func(i int) float64 { return float64(hashing.Word(5, uint64(i))>>1|1) * 0x1p-63 }
	each := func(period time.Duration) func(int) time.Duration {
		return func(i int) time.Duration { return time.Duration(i) * period }
	}
	lost := func(share float64, i int, delay time.Duration) time.Duration {
		if chance(i+1e9) < share {
			return -1
		}
		return delay
	}
	for name, c := range map[string]struct {
		messages    int
		sent, delay func(i int) time.Duration // negative delays are losses
	}{
		"bursts left them": {45_000, func(i int) time.Duration { return time.Duration(3*(i/5000)*1e9 + 15e7 + i%5000*2e3) },
			func(i int) time.Duration { return time.Duration(-1e8 * math.Log(chance(i))) }},
		"delays rise": {60_000, each(150_000), func(i int) time.Duration { return time.Duration(5e7 + 4e8*math.Mod(float64(i)/2533, 1)) }},
		"a burst is lost while one is slow": {1500, each(20 * time.Millisecond), func(i int) time.Duration {
			if i == 350 {
				return 7 * time.Second
			} else if i >= 700 && i <= 780 {
				return -1
			}
			return time.Duration(5e8 / math.Sqrt(chance(i)))
		}},
		"some come after they were lost": {4000, each(5 * time.Millisecond), func(i int) time.Duration {
			return time.Duration(1+i%9+map[bool]int{true: 5000}[i >= 2000 && i < 2040]) * time.Millisecond
		}},
		"stalls and losses": {180_000, each(125 * time.Microsecond), func(i int) time.Duration {
			stalled := max(0, time.Duration(15_200-i%37_600)*125*time.Microsecond)
			return lost(0.03, i, stalled+time.Duration(17e6-5e6*math.Log(chance(i))))
		}},
		"a long path that loses some": {200_000, each(100 * time.Microsecond), func(i int) time.Duration {
			return lost(0.01, i, time.Duration(28e7-2e7*math.Log(chance(i))))
		}},
	} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			begin, answered, sharp := time.Now(), 0, 0
			l.play(c.messages, c.sent, c.delay, nil)
			for _, r := range l.reports(int(c.sent(c.messages)/time.Second) + 4) {
				d, truth := &r.Forth, r.came(begin, c.messages, c.sent, c.delay)
				if d.Err != nil {
					continue
				}
				if answered++; !d.Certain.Contains(truth.Mean()) {
					t.Errorf("%s: %v, certainly %s to %s, mean %s", name, r, Format(d.Certain.Low), Format(d.Certain.High), Format(truth.Mean()))
				}
				if !d.Certain.Contains(0.9 * truth.Mean()) {
					sharp++
				}
			}
			if answered < 5 || sharp == 0 {
				t.Errorf("%s: %d reports have a mean, %d of them not one that is a tenth less", name, answered, sharp)
			}
		})
	}
}

// came returns the delays of the messages that came in a report, each sent a given time after the first.
func (r *Report) came(begin time.Time, messages int, sent, delay func(i int) time.Duration) (m estimate.Moments) {
	from, to := r.Start.Sub(begin), r.Start.Add(r.Length).Sub(begin)
	for i := 0; i < messages && sent(i) < to; i++ {
		d := delay(i)
		if at := sent(i) + d; d >= 0 && at >= from && at < to {
			m.Add(float64(d))
		}
	}
	return m
}

// Reports hold from the first one on, whichever clock is ahead, and whether by more or by less than messages take.
func TestFirstReports(t *testing.T) {
	const slow = 20
	for _, ahead := range []time.Duration{-30, -12, 3, 12, 30} {
		onLink(t, Config{Key: testKey}, ahead*time.Millisecond, func(t *testing.T, l *link) {
			l.send(time.Millisecond, func(i int) time.Duration { return time.Duration(slow+i%4) * time.Millisecond }, nil)
			for _, r := range l.reports(3) {
				if d := &r.Forth; d.Err != nil || !d.Certain.Contains(slow*1e6+1.5e6) || math.Abs(d.Mean-slow*1e6) > 8e6 {
					t.Errorf("%v ahead: %v, certainly %s to %s", ahead*time.Millisecond, r, Format(d.Certain.Low), Format(d.Certain.High))
				}
			}
		})
	}
}

// Cells that always have packets on their way reveal only long after a session began which were on their way
// then. These are not extra; copies, which are found in the same way, are.
func TestBeginsAmongMany(t *testing.T) {
	c := Config{Key: testKey, ClocksAgree: true}
	c.Cells = lda.Config{SumBits: 64, DigestBits: 32}
	c.Cells.Banks[0], c.Cells.Banks[1] = lda.Bank{Rows: 64}, lda.Bank{Rows: 64, Shift: 3}
	onLink(t, c, 0, func(t *testing.T, l *link) {
		begin, extra := time.Now(), [2]uint64{}
		copies := func(at time.Time) int { return map[bool]int{true: 1}[at.Sub(begin) > 12*time.Second] }
		l.each(time.Millisecond, func(i int) {
			l.a.Load().PassedNumber(uint64(i))
			time.Sleep(time.Duration(-300e6 * math.Log(float64(hashing.Word(1, uint64(i))>>1|1)*0x1p-63)))
			for range 1 + (i+1)%2*copies(time.Now()) {
				l.b.PassedNumber(uint64(i))
			}
		})
		time.Sleep(2 * time.Second)
		for _, r := range l.reports(30) {
			extra[copies(r.Start)] += r.Forth.Extra
		}
		if extra[0] > 20 || extra[1] < 8000 {
			t.Errorf("%d extra before there were copies, and %d after", extra[0], extra[1])
		}
	})
}

// A first report without losses says so, but not where losses could hide behind what was on its way.
func TestFirstLossIsKnown(t *testing.T) {
	for delay, known := range map[time.Duration]bool{5 * time.Millisecond: true, 2 * time.Second: false} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.send(time.Millisecond, func(int) time.Duration { return delay }, nil)
			time.Sleep(5 * time.Second)
			if d := l.reports(1)[0].Forth; d.Received < 900 || d.Lost > 0 || d.LossUnknown == known {
				t.Errorf("delays of %v: %v", delay, d)
			}
		})
	}
}

// Where traffic pauses for so long that points, each by its clock, cut seldom, nothing is lost, and neither
// point is silent. The sender's cuts end sooner than the receiver's: by more than packets take, so that
// receptions wait, or by less. Or they end later. The deviation is sharp, once it is known which.
func TestPausesLoseNothing(t *testing.T) {
	for _, row := range []struct {
		ahead, slow, pause time.Duration
		burst              uint64
	}{{120, 5, 5500, 4000}, {120, 30, 5500, 4000}, {-30, 5, 1000, 300}, {108, 5, 1000, 1700}} {
		onLink(t, Config{Key: testKey}, row.ahead*time.Millisecond, func(t *testing.T, l *link) {
			l.all.Go(func() {
				for i := uint64(0); l.ctx.Err() == nil; i++ {
					if i%row.burst == 0 {
						time.Sleep(row.pause * time.Millisecond)
					}
					l.a.Load().PassedNumber(i)
					l.all.Go(func() {
						time.Sleep((row.slow + time.Duration(i%3)) * time.Millisecond)
						l.b.PassedNumber(i)
					})
					time.Sleep(time.Millisecond)
				}
			})
			for i, r := range l.reports(27) {
				f, wide := &r.Forth, r.Forth.MeanInterval95.High-r.Forth.MeanInterval95.Low > 16e6 // for clocks known to 15
				wide = i > 7 && f.Received > 500 && (wide || f.StdDev > 2e6)
				if r.Err != nil || f.Lost+f.Extra > 0 || i == 8 && f.Received == 0 || wide || errors.Is(f.Err, estimate.ErrClocks) {
					t.Errorf("%d: %v, deviation %s", i, r, Format(f.StdDev))
				}
			}
		})
	}
}

// Packets that counted as lost and come after all wait for a report with room for them: none loses more than was sent.
func TestLostWereSent(t *testing.T) {
	w, d := way{}, Traffic{}
	w.account(&d, &lda.Result{Sent: 53, Lost: 186, Extra: 133}, false, 1e9)
	if d.Sent != 186 || d.Lost != 186 || d.Extra != 0 {
		t.Errorf("%v", d)
	}
	d = Traffic{Received: 200}
	if w.account(&d, &lda.Result{Sent: 200, Received: 200}, false, 1e9); d.Sent != 67 || d.Received != 200 || d.Extra != 133 {
		t.Errorf("%v", d)
	}
	w, d = way{ledger: ledger{given: 500}}, Traffic{}
	for _, r := range []lda.Result{{Sent: 499, Received: 997, Extra: 433}, {Sent: 500, Received: 500, Extra: 65}, {Received: 2}} {
		one := Traffic{Received: r.Received}
		w.account(&one, &r, false, 1e9)
		d.Extra += one.Extra
	}
	if d.Extra != 500 {
		t.Errorf("%d extra of 500 that came after all", d.Extra)
	}
	w, d = way{ledger: ledger{given: 49, out: 25}}, Traffic{} // the sender records 204 packets only after the report
	for _, r := range []lda.Result{{Sent: 4796, Received: 4959, Lost: 37}, {Sent: 5204, Received: 4956, Lost: 48, Outstanding: 25}} {
		one := Traffic{Received: r.Received}
		w.account(&one, &r, false, 1e9)
		d.Sent, d.Lost, d.Extra = d.Sent+one.Sent, d.Lost+one.Lost, d.Extra+one.Extra
	}
	if d.Sent != 10_000 || d.Lost-d.Extra != 85 {
		t.Errorf("%d sent and %d lost but for extra ones, want 10000 and 85", d.Sent, d.Lost-d.Extra)
	}
	w = *newComparison(Config{Key: testKey}.withDefaults()).ways[forth] // as many as came tell nothing of the mean
	if d = (Traffic{Received: 50, Extra: 2}); w.why(&d, &lda.Result{Sent: 50, Received: 50, Extra: 50}, 0, false, false) == nil {
		t.Error("a mean where 50 are extra of 50 that came")
	}
}

// A bridge loops for three seconds, and each message comes 21 times. Some time after that there is a mean again, and it is right.
func TestLoopThatIsOver(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		begin, delay := time.Now(), func(i int) time.Duration {
			return time.Duration(100+700*(hashing.Word(1, uint64(i))%2)) * time.Millisecond
		}
		l.each(5*time.Millisecond, func(i int) {
			l.a.Load().PassedNumber(uint64(i))
			time.Sleep(delay(i))
			for range 1 + map[bool]int{true: 20}[i >= 1400 && i < 2000] {
				l.b.PassedNumber(uint64(i))
				time.Sleep(2 * time.Millisecond)
			}
		})
		for n, r := range l.reports(26) {
			m := r.came(begin, 6000, func(i int) time.Duration { return time.Duration(i) * 5 * time.Millisecond }, delay)
			if after := n > 18; after && r.Forth.Err != nil || (after || n < 6) && r.Forth.Err == nil && !r.Forth.Certain.Contains(m.Mean()) {
				t.Errorf("%d: %v, want %s", n, r, Format(m.Mean()))
			}
		}
	})
}

// Points that see different ids learn that, also where messages are few. If they see the same ones later, there is a
// mean again, although clocks were set back meanwhile.
func TestFewUnlikePackets(t *testing.T) {
	for _, other := range []uint64{0, 1 << 30} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.each(100*time.Millisecond, func(i int) {
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(100 * time.Millisecond)
				if i < 80 {
					i += int(other)
				}
				l.b.PassedNumber(uint64(i))
			})
			time.AfterFunc(10*time.Second, func() {
				l.clocks[l.a.Load()].ahead.Add(-int64(time.Hour))
				l.clocks[l.b].ahead.Add(-int64(time.Hour))
			})
			named, reports := false, l.reports(20)
			for _, r := range reports[:8] {
				named = named || errors.Is(r.Forth.Err, ErrUnlike)
			}
			if named != (other > 0) || !reports[19].Forth.near(100e6) {
				t.Errorf("10 messages a second, ids differ by %d: named %t, later %v", other, named, reports[19])
			}
		})
	}
}

// Reports of 21 ms forget how long packets took no sooner than longer ones do: of one message every two
// seconds, none counts as lost for being slower than the one before.
func TestShortReportsTakeNoneForLost(t *testing.T) {
	c := Config{Key: testKey, ClocksAgree: true, Cut: 7 * time.Millisecond, Report: 21 * time.Millisecond}
	onLink(t, c, 0, func(t *testing.T, l *link) {
		l.send(2*time.Second, func(i int) time.Duration { return time.Duration(40+7*i%40) * time.Millisecond }, nil)
		var received, lost uint64
		for _, r := range l.reports(6000) {
			received, lost = received+r.Forth.Received, lost+r.Forth.Lost
		}
		if received < 50 || lost > 0 {
			t.Errorf("%d received, %d lost", received, lost)
		}
	})
}

// Where a point is made anew while many messages are on their way, none of which is lost, no report says that any
// was, or that clocks disagree. With each of these seeds one did, as long as reports counted as lost what had
// not settled, and took areas without what was on its way for delays.
func TestRestartLosesNothing(t *testing.T) {
	c := Config{Key: testKey, ClocksAgree: true, Report: 100 * time.Millisecond}
	for _, seed := range []uint64{0, 6, 13, 28} {
		onLink(t, c, 0, func(t *testing.T, l *link) {
			r := rand.New(rand.NewPCG(seed, 2))
			l.send(500*time.Microsecond, func(int) time.Duration { return time.Duration((0.3 + 0.7*r.ExpFloat64()) * 150e6) }, nil)
			time.AfterFunc(3*time.Second+time.Duration(seed)*13*time.Millisecond, func() {
				l.a.Swap(l.newPoint(t, c, "a", newTestClock(0, 0))).Close()
			})
			begins := 0
			for _, r := range l.reports(60) {
				if r.Begins {
					begins++
				}
				if d := r.Forth; r.Begins && (d.Lost > 5 || errors.Is(d.Err, estimate.ErrClocks)) {
					t.Errorf("seed %d: %v", seed, r)
				}
			}
			if begins < 2 {
				t.Errorf("seed %d: %d reports begin, want those of both sessions", seed, begins)
			}
		})
	}
}

// TestClockJumps sets the clock while nothing comes: the time between has no reports, and silence is reported from then on.
func TestClockJumps(t *testing.T) {
	const days = 20 * 864_000 // in cuts
	for _, by := range []int64{days, -days} {
		c := newComparison(Config{Key: NewKey("0123456789abcdef")}.withDefaults())
		c.begin(2 * days)
		silent := 0
		for cut := 2*days + by; cut < 2*days+by+100; cut += 10 {
			for r, ok := c.next(cut); ok; r, ok = c.next(cut) {
				if silent++; !errors.Is(r.Err, ErrSilent) || floorDiv(cut, 10)-r.Number > 3 {
					t.Errorf("set by %d cuts: at %d report %d: %v", by, cut, r.Number, r.Err)
				}
			}
		}
		if silent < 7 || silent > 10 {
			t.Errorf("set by %d cuts: %d reports of 10 intervals", by, silent)
		}
	}
}

// Nobody knows what was on its way when a missing record ends a session: the last report's intervals allow for slower packets.
func TestRecordsMissing(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		delay := func(i int) time.Duration {
			return time.Duration(100e6 - 100e6*math.Log(float64(hashing.Word(2, uint64(i))>>1|1)*0x1p-63))
		}
		pair, answered := must(NewPair(l.b.config, "a", "b")), 0
		begin := time.Now()
		l.send(3*time.Millisecond, delay, nil)
		take := func(p *Point, seed uint64, into func(string, []byte) error) {
			random := rand.New(rand.NewPCG(seed, 1))
			for r := range p.Records(l.ctx) {
				if random.IntN(20) > 0 {
					must0(t, into("", r))
				}
			}
		}
		go take(l.a.Load(), 1, pair.TakeFirst)
		go take(l.b, 2, pair.TakeSecond)
		for time.Sleep(50 * time.Millisecond); time.Since(begin) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
			for r, ok := pair.Next(); ok; r, ok = pair.Next() {
				truth := r.came(begin, 100_000, func(i int) time.Duration { return time.Duration(i) * 3 * time.Millisecond }, delay)
				if d := &r.Forth; d.Err == nil && !r.Begins {
					if answered++; !d.Certain.Contains(truth.Mean()) {
						t.Errorf("%v, certainly %s to %s, mean %s", r, Format(d.Certain.Low), Format(d.Certain.High), Format(truth.Mean()))
					}
				}
			}
		}
		if answered < 20 {
			t.Errorf("%d reports have a mean", answered)
		}
	})
}

// Messages that counted as lost and come after all are extra, so that losses add up to none, but for one that is on its
// way at the end, and one that may have been so when the session began.
func TestLateMessagesAreExtra(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		l.send(300*time.Microsecond, func(i int) time.Duration {
			if i%20_000 == 19_999 {
				return 3 * time.Second
			}
			return 30 * time.Millisecond
		}, nil)
		var lost, extra uint64
		for _, r := range l.reports(40) {
			lost += r.Forth.Lost
			extra += r.Forth.Extra
		}
		if lost < 5 || lost-extra > 2 {
			t.Errorf("%d lost, %d extra, want at least 5, and as many, but for two", lost, extra)
		}
	})
}

// Reports that sessions cut short get ahead of the clock, which was not set back for that.
func TestShortReportsAreNoStep(t *testing.T) {
	c := newComparison(Config{Key: testKey}.withDefaults())
	for c.begin(1000); c.current < 105; c.release() {
		c.paired++
		c.end(nil)
	}
	if _, ok := c.next(c.paired + 1); ok || c.current != 105 {
		t.Errorf("report %d follows number 104", c.current)
	}
}
