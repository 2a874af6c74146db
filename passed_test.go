package hoplag

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// What a thousand goroutines record, while a reader keeps cutting and the garbage collector empties the pools,
// equals what a single one adds up.
func TestPassedAddsUp(t *testing.T) {
	const goroutines, each = 1000, 200
	config := Config{Key: testKey}.withDefaults()
	d := newDirection(&config, newTimeline(nil))
	total := borrowInto(new(*tally), &config)
	collect := func() {
		if done, _ := d.rotate(farthest); done != nil {
			total.all.Merge(&done.all.Aggregator)
			total.flows.Merge(done.flows)
			done.giveBack()
		}
	}
	var writers, reader sync.WaitGroup
	var finished atomic.Bool
	reader.Add(1)
	go func() {
		defer reader.Done()
		for i := 0; !finished.Load(); i++ {
			collect()
			if i%16 == 0 {
				runtime.GC()
			}
		}
	}()
	at := func(g, i int) time.Time { return time.Unix(1e9, int64(g*each+i)) }
	for g := range goroutines {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := range each {
				d.Record(0, at(g, i), hashing.Packet(hashing.Mix(uint64(g), uint64(i))))
			}
		}()
	}
	writers.Wait()
	finished.Store(true)
	reader.Wait()
	collect()

	want, err := lda.New(config.Cells)
	must0(t, err)
	for g := range goroutines {
		for i := range each {
			want.Update(hashing.Packet(hashing.Mix(uint64(g), uint64(i))), at(g, i).UnixNano())
		}
	}
	if !slices.Equal(total.all.AppendPacked(nil, 0), want.AppendPacked(nil, 0)) {
		t.Errorf("%d packets were added up, want %d, or their times or digests differ", total.all.Packets(), goroutines*each)
	}
}

// A log is used again once its pool has dropped it.
func TestLogsAreUsedAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // or all processors begin and end 400 collections
	config := Config{}.withDefaults()
	d := newDirection(&config, newTimeline(nil))
	d.shards = d.shards[:1]
	for range 200 {
		d.PassedNumber(1)
		runtime.GC()
		runtime.GC()
	}
	d.shards[0].mu.Lock()
	defer d.shards[0].mu.Unlock()
	if n := len(d.shards[0].logs); n > 50 {
		t.Errorf("%d logs after the pool was emptied 200 times", n)
	}
}

// Every way to say that a message passed names the same message.
func TestPassedAlike(t *testing.T) {
	p, err := NewPoint(Config{Key: testKey})
	must0(t, err)
	defer p.Close()
	id := binary.LittleEndian.AppendUint64(nil, 0x1234567890abcdef)
	p.Passed(id)
	p.PassedNumber(0x1234567890abcdef)
	p.Passed(id, p.Flow([]byte("f")))
	p.Record(0, time.Now(), p.Packet(id), hashing.Digest(p.hash.seed, id))
	if packets := logged(t, p); len(packets) != 5 || len(slices.Compact(packets)) != 1 {
		t.Errorf("one message is %x", packets)
	}
}

// logged returns the packets that have passed a point and are in none of its shards yet.
func logged(t *testing.T, p *Point) (packets []hashing.Packet) {
	for _, s := range p.shards {
		for _, l := range s.logs {
			for _, e := range l.entries[:l.n.Load()] {
				packets = append(packets, e.packet)
				if age := time.Since(time.Unix(0, e.time)); age < -time.Second || age > time.Minute {
					t.Errorf("a packet passed %v ago", age)
				}
			}
		}
	}
	slices.Sort(packets)
	return packets
}

func TestPassedAllocatesNothing(t *testing.T) {
	p, err := NewPoint(Config{Key: testKey, Cut: time.Hour})
	must0(t, err)
	defer p.Close()
	if raceEnabled() {
		t.Skip("the race detector makes a sync.Pool drop what it holds")
	}
	text, flow := "a trace id of more than thirty-two bytes", p.Flow([]byte("f"))
	if n := testing.AllocsPerRun(5000, func() {
		p.Passed([]byte(text))
		p.PassedNumber(7)
		p.Passed([]byte(text), flow)
		p.Record(0, time.Time{}, 1, 2, 3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPassed compares a passage of an id at hand with the least that any takes, in turns: the clock (21 ns), an atomic that
// nobody else wants, a hash, and a store (4.6). pool+cells has a log for each processor, which spares the 50 ns that a cache
// line costs when several want it (4 to 5, for 116 instructions), and adds full logs to cells (as much). Another 1 to 2 are 21
// instructions for a clock that is set, a seed or SipHash, and a log that readers find, and 12 where an id is bytes. Processors do
// all that before they read the clock again. Then all of these again, as several goroutines take them together, by the wall clock.
func BenchmarkPassed(b *testing.B) {
	p, err := NewPoint(Config{Key: testKey})
	must0(b, err)
	defer p.Close()
	base, leastLog, total, ids := time.Now(), new(log), borrowInto(new(*tally), &p.config), [logSize][8]byte{}
	for i := range ids {
		binary.LittleEndian.PutUint64(ids[i][:], uint64(i))
	}
	pool := sync.Pool{New: func() any { return new(log) }}
	store := func(l *log, n uint32, id uint64) {
		l.entries[n%logSize] = entry{time: int64(time.Since(base)), packet: hashing.Word(1, id)}
	}
	least := func(id uint64) { store(leastLog, leastLog.n.Add(1), id) }
	for _, path := range []struct {
		name string
		bar  float64 // 15 ns more than the clock, where the floor takes 25.9
		call func(id uint64)
	}{
		{"clock", 0, func(uint64) { sink = time.Since(base) }},
		{"clock+atomic+store", 0, least},
		{"pool+cells", 0, func(id uint64) {
			l := pool.Get().(*log)
			n := l.n.Load()
			store(l, n, id)
			if l.n.Store(n + 1); n%logSize == logSize-1 {
				total.add(l.entries[:])
			}
			pool.Put(l)
		}},
		{"Passed", 1.4, func(id uint64) { p.Passed(ids[id%logSize][:]) }},
		{"PassedNumber", 1.4, p.PassedNumber},
	} {
		times := func(f func(uint64)) speed.Loop {
			return func(from, to int) {
				for i := range uint64(to - from) {
					f(uint64(from) + i)
				}
			}
		}
		b.Run(path.name+"/alone", func(b *testing.B) { speed.Compare(b, speed.StreamLength, path.bar, times(path.call), times(least)) })
		for _, goroutines := range []int{1, 2, 30, 1000} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", path.name, goroutines), func(b *testing.B) {
				var all sync.WaitGroup
				for g := range goroutines {
					all.Go(func() { times(path.call)(g<<20, g<<20+b.N/goroutines+1) })
				}
				all.Wait()
			})
		}
	}
}

var sink time.Duration

// raceEnabled tells that the tests run under the race detector: there, a pool drops some of what it is given.
func raceEnabled() bool {
	var pool sync.Pool
	for range 100 {
		pool.Put(new(int))
		if pool.Get() == nil {
			return true
		}
	}
	return false
}

// What time.Now returned is taken by the clock that Passed reads, which goes on evenly; a card's time stamp as it is.
func TestTimelineOf(t *testing.T) {
	clock := newTimeline(nil)
	clock.wall.Add(int64(time.Hour)) // as if the wall clock had been set since
	for range 100 {
		before := clock.now()
		at := time.Now()
		if got, after := clock.of(at), clock.now(); got < before || got > after {
			t.Fatalf("%d, want %d to %d", got, before, after)
		}
		if got, want := clock.of(at.Round(0)), at.UnixNano(); got != want {
			t.Fatalf("a time stamp is taken for %d, want %d", got, want)
		}
	}
}

// Exchanges that fail nine times in ten, and one in ten of which takes up to ten seconds, delay reports but
// falsify none. What comes late is in a report that says which time it covers.
func TestFollowBadTransport(t *testing.T) {
	for name, ask := range map[string]func(l *link, random *rand.Rand) func(context.Context, []byte) ([]byte, error){
		"slow": func(l *link, random *rand.Rand) func(context.Context, []byte) ([]byte, error) {
			return func(ctx context.Context, request []byte) ([]byte, error) {
				if random.IntN(10) == 0 {
					time.Sleep(time.Duration(random.Float64() * 10e9))
				}
				return l.exchange(ctx, request)
			}
		},
		"failing": func(l *link, random *rand.Rand) func(context.Context, []byte) ([]byte, error) {
			return func(ctx context.Context, request []byte) ([]byte, error) {
				if random.IntN(10) > 0 {
					return nil, errors.New("no route")
				}
				return l.exchange(ctx, request)
			}
		},
	} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.send(time.Millisecond, func(i int) time.Duration {
				if i%100 == 7 {
					return -1
				}
				return 5 * time.Millisecond
			}, nil)
			var received, lost uint64
			var end time.Time
			for r := range l.b.Follow(l.ctx, ask(l, rand.New(rand.NewPCG(7, 8)))) {
				if r.Err == nil && (!r.Forth.near(5e6) || r.Start.Before(end)) {
					t.Errorf("%s: %v, starts %v after the end of the one before", name, r, r.Start.Sub(end))
				}
				if r.Err == nil {
					end = r.Start.Add(r.Length)
					if perSecond := float64(r.Forth.Received) / r.Length.Seconds(); !r.Begins && (perSecond < 930 || perSecond > 1050) {
						t.Errorf("%s: %d received in %v", name, r.Forth.Received, r.Length)
					}
				}
				received, lost = received+r.Forth.Received, lost+r.Forth.Lost
				if r.Number > l.b.number(time.Now().UnixNano())/10 || time.Since(end) < 3*time.Second && received > 40_000 {
					break
				}
			}
			if share := float64(lost) / float64(received+lost); share < 0.0095 || share > 0.0105 {
				t.Errorf("%s: %d received, %d lost, want one in a hundred", name, received, lost)
			}
		})
	}
}

// A packet counts in the cut of its stamp, whenever its log is emptied.
func TestPacketsBelongToTheirCut(t *testing.T) {
	config := Config{Key: testKey}.withDefaults()
	d := newDirection(&config, newTimeline(nil))
	s := d.shards[0]
	d.drop(0)
	var counts []uint64
	var late []uint32
	s.mu.Lock()
	s.add([]entry{{time: 98e6}, {time: 103e6}, {time: 99e6}, {time: 250e6}, {time: 150e6}, {time: 390e6}}, math.MinInt64, nil)
	s.mu.Unlock()
	for cut := range int64(5) {
		n := uint64(0)
		done, tardy := d.rotate(cut + 1)
		if done != nil {
			n = done.all.Packets()
		}
		counts, late = append(counts, n), append(late, tardy)
	}
	if want := []uint64{4, 1, 1, 0, 0}; !slices.Equal(counts, want) || !slices.Equal(late, []uint32{3, 0, 0, 0, 0}) {
		t.Errorf("cuts of %v packets, want %v, and of the first some came late", counts, want)
	}
}

// An idle point is a timer: it keeps no counters, and a few cuts without a record.
func TestIdlePointIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(NewPoint(Config{Key: testKey}))
		defer p.Close()
		time.Sleep(time.Hour)
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.history.cuts); n > keptCuts || p.history.size > n*storedSize || len(p.shards[0].piles) > 0 || len(p.shards[0].logs) > 0 {
			t.Errorf("%d cuts are kept of an hour in which nothing passed", n)
		}
	})
}

// One way and without exchanges, a mean is a bound without an upper end, or refused if messages seem to arrive before they
// are sent. Where the clocks are said to agree and do not, that is an error, too.
func TestUnknownClocks(t *testing.T) {
	for _, c := range []struct {
		agree bool
		ahead time.Duration
		want  error
	}{{false, -3 * time.Second, nil}, {false, 3 * time.Second, estimate.ErrClocks}, {false, 30 * time.Millisecond, estimate.ErrClocks},
		{true, 30 * time.Millisecond, estimate.ErrClocks}, {true, 5500 * time.Microsecond, estimate.ErrClocks}, {true, 0, nil}} {
		synctest.Test(t, func(t *testing.T) {
			config := Config{Key: testKey, ClocksAgree: c.agree}
			l := newLink(t, config, c.ahead)
			defer l.close()
			l.send(time.Millisecond, func(i int) time.Duration { return time.Duration(5+i%3) * time.Millisecond }, nil)
			pair := must(NewPair(config, "a", "b"))
			for point, take := range map[*Point]func(string, []byte) error{l.a.Load(): pair.TakeFirst, l.b: pair.TakeSecond} {
				l.all.Go(func() {
					for record := range point.Records(l.ctx) {
						if err := take("", record); err != nil {
							t.Error(err)
						}
					}
				})
			}
			time.Sleep(9 * time.Second)
			n := 0
			for r, ok := pair.Next(); ok; r, ok = pair.Next() {
				n++
				switch i := r.Forth.MeanInterval95; {
				case !errors.Is(r.Forth.Err, c.want) || strings.Contains(fmt.Sprint(r.ClockErr), "apart") != (!c.agree && c.ahead.Abs() > time.Second):
					t.Errorf("%+v: %v", c, r)
				case c.want != nil:
				case c.agree && math.Abs(r.Forth.Mean-6e6) > 1e5 || !c.agree && !i.Contains(6e6) || i.Bounded() != c.agree:
					t.Errorf("%+v: mean in %v, %v", c, i, r)
				}
			}
			if n < 2 {
				t.Errorf("%d reports", n)
			}
		})
	}
}

// An idle point cuts once a report; once something passes, it resumes cutting at each Cut.
func TestIdlePointCutsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(NewPoint(Config{Key: testKey}))
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		time.AfterFunc(20*time.Second, func() { p.PassedNumber(1) })
		var idle, busy int
		for record := range p.Records(ctx) {
			r := must(p.seal.decode(record))
			if end := (r.through + 1) % 10; r.through > r.after+1 && end != 0 {
				t.Errorf("a cut of %d ends within a report", r.through-r.after)
			}
			if busy > 0 || r.parts[forth].packed != nil {
				busy++
			} else {
				idle++
			}
		}
		if idle < 20 || idle > 35 || busy < 10 || busy > 20 {
			t.Errorf("%d records of 20 s in which nothing passed, %d of 5 s after that", idle, busy)
		}
	})
}

// A clock that stands still between ticks is refused, because its stamps are off by up to a tick.
func TestCoarseClock(t *testing.T) {
	for tick, ok := range map[time.Duration]bool{0: true, 1: true, 100 * time.Microsecond: false, 15625 * time.Microsecond: false} {
		clock := newTestClock(0, 0)
		clock.tick.Store(int64(tick))
		err := Config{Key: testKey, Clock: clock}.validate()
		if (err == nil) != ok || err != nil && !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("a clock that ticks in %v: %v", tick, err)
		}
	}
}

// What is recorded within three cuts of its stamp is measured as if it had been in time, and a report that
// refuses what comes later says so.
func TestRecordedLate(t *testing.T) {
	for _, late := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
		onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
			l.each(5*time.Millisecond, func(i int) {
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(7 * time.Millisecond)
				at, packet := l.clocks[l.b].Now(), l.b.Packet(binary.LittleEndian.AppendUint64(nil, uint64(i)))
				time.Sleep(late)
				l.b.Record(0, at, packet)
			})
			named := 0
			for _, r := range l.reports(9)[3:] {
				if err := r.Forth.Err; err == nil && !r.Forth.near(7e6) || late < time.Second && err != nil {
					t.Errorf("%v late: %v", late, r)
				} else if err != nil && strings.Contains(err.Error(), "recorded long after") {
					named++
				}
			}
			if named > 0 != (late > time.Second) {
				t.Errorf("%v late: %d reports name it", late, named)
			}
		})
	}
}

// A stamp of another time, ids that most packets share, and packets that alone came after they had counted as lost: a
// report holds the mean, or says why it has none.
func TestStrangePackets(t *testing.T) {
	const usual = 7 * time.Millisecond
	record := func(ahead time.Duration) func(l *link, i int) {
		return func(l *link, i int) {
			if i == 1000 {
				l.b.Record(0, l.clocks[l.b].Now().Add(ahead), 1)
			}
		}
	}
	none := func(*link, int) {}
	for _, c := range []struct {
		messages int
		ids      uint64
		strays   func(l *link, i int)
		delay    func(i int) time.Duration
		want     string // an error
	}{
		{5000, math.MaxUint64, record(-250 * time.Millisecond), func(int) time.Duration { return usual }, ""},
		{5000, math.MaxUint64, record(10 * time.Second), func(int) time.Duration { return usual }, ""},
		{5000, 8, none, func(int) time.Duration { return 158 * time.Millisecond }, "repeat an id"},
		{1400, math.MaxUint64, none, func(i int) time.Duration {
			return usual + time.Duration(max(0, i-1397))*3500*time.Millisecond
		}, "1 packets came that had counted as lost"},
	} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.each(5*time.Millisecond, func(i int) {
				if i >= c.messages {
					return
				}
				l.a.Load().PassedNumber(uint64(i) % c.ids)
				time.Sleep(c.delay(i))
				l.b.PassedNumber(uint64(i) % c.ids)
				c.strays(l, i)
			})
			named := 0
			for _, r := range l.reports(17) {
				if d := &r.Forth; d.Err == nil && !d.Certain.Contains(float64(usual)) {
					t.Errorf("%v, certainly %s to %s", r, Format(d.Certain.Low), Format(d.Certain.High))
				} else if c.want != "" && d.Err != nil && strings.Contains(d.Err.Error(), c.want) {
					named++
				}
			}
			if named == 0 && c.want != "" {
				t.Errorf("no report says: %s", c.want)
			}
		})
	}
}
