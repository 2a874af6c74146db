package hoplag

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// What a thousand goroutines put down, while a reader cuts it all the time and
// the garbage collector empties the pools, is what one alone adds up.
func TestPassedAddsUp(t *testing.T) {
	const goroutines, each = 1000, 200
	config := Config{Key: testKey}.withDefaults()
	d := newDirection(&config, newTimeline(nil))
	total := newTally(&config)
	collect := func() {
		for _, s := range d.shards {
			done := s.rotate(math.MaxInt64)
			total.addPile(done)
			s.release(done)
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
				d.Record(at(g, i), hashing.Packet(hashing.Mix(uint64(g), uint64(i))))
			}
		}()
	}
	writers.Wait()
	finished.Store(true)
	reader.Wait()
	collect()

	want, err := lda.New(config.lda())
	if err != nil {
		t.Fatal(err)
	}
	for g := range goroutines {
		for i := range each {
			want.Update(hashing.Packet(hashing.Mix(uint64(g), uint64(i))), at(g, i).UnixNano())
		}
	}
	if !slices.Equal(total.all.AppendCells(nil), want.AppendCells(nil)) {
		t.Errorf("%d packets were added up, want %d, or their times or digests differ", total.all.Packets(), goroutines*each)
	}
	logs := 0
	for _, s := range d.shards {
		logs += len(s.logs)
	}
	if logs > len(d.shards)*maxLogs {
		t.Errorf("%d logs of %d shards", logs, len(d.shards))
	}
}

// Where more goroutines are interrupted than there may be logs, nothing is lost.
func TestLogsAreFew(t *testing.T) {
	config := Config{}.withDefaults()
	d := newDirection(&config, newTimeline(nil))
	d.shards = d.shards[:1]
	s := d.shards[0]
	for i := range maxLogs + 10 {
		h := s.newHandle() // and never given back
		for range 3 {
			h.log.append(entry{packet: hashing.Word(1, uint64(i))})
		}
	}
	total := newTally(&config)
	total.addPile(s.rotate(math.MaxInt64))
	if got := total.all.Packets(); got != 3*(maxLogs+10) || len(s.logs) != maxLogs {
		t.Errorf("%d packets in %d logs, want %d in %d", got, len(s.logs), 3*(maxLogs+10), maxLogs)
	}
}

// A log is used again once its pool let go of it.
func TestLogsAreUsedAgain(t *testing.T) {
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
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	id := binary.LittleEndian.AppendUint64(nil, 0x1234567890abcdef)
	p.Passed(id)
	p.PassedNumber(0x1234567890abcdef)
	p.PassedIn(p.Flow([]byte("f")), id)
	p.Record(time.Now(), p.Packet(id))
	var packets []hashing.Packet
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
	if len(packets) != 4 || len(slices.Compact(packets)) != 1 {
		t.Errorf("one message is %x", packets)
	}
}

func TestPassedAllocatesNothing(t *testing.T) {
	p, err := NewPoint(Config{Key: testKey, Cut: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if raceEnabled() {
		t.Skip("the race detector makes a sync.Pool drop what it holds")
	}
	text, flow := "a trace id of more than thirty-two bytes", p.Flow([]byte("f"))
	if n := testing.AllocsPerRun(5000, func() {
		p.Passed([]byte(text))
		p.PassedNumber(7)
		p.PassedIn(flow, []byte(text))
		p.Record(time.Time{}, 1, 2, 3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPassed compares a passage with a reading of the clock, in turns, by
// the wall time of all goroutines together.
func BenchmarkPassed(b *testing.B) {
	p, err := NewPoint(Config{Key: testKey})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	base := time.Now()
	for _, goroutines := range []int{1, 2, 30, 1000} {
		for _, path := range []struct {
			name string
			call func(id uint64)
		}{
			{"clock", func(uint64) { sink = time.Since(base) }},
			{"Passed", func(id uint64) {
				var bytes [8]byte
				binary.LittleEndian.PutUint64(bytes[:], id)
				p.Passed(bytes[:])
			}},
			{"PassedNumber", p.PassedNumber},
		} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", path.name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				var all sync.WaitGroup
				for g := range goroutines {
					all.Add(1)
					go func() {
						defer all.Done()
						for i := range b.N/goroutines + 1 {
							path.call(uint64(g)<<32 | uint64(i))
						}
					}()
				}
				all.Wait()
			})
		}
	}
}

var sink time.Duration

// raceEnabled tells that the tests run under the race detector: there, a pool drops
// some of what it is given.
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

// What time.Now returned is taken by the clock that Passed reads, which goes on
// evenly; a card's time stamp as it is.
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
