//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
)

// TestMeasure measures costs.csv, from which TestPage then writes the page:
//
//	go test ./bench/scale -measure -v -timeout 30m
//
// It counts the processor's time, not the clock's, so a busy machine matters
// less. Without the flag it measures a little, and keeps nothing.
func TestMeasure(t *testing.T) {
	bursts, seconds, rates, many := 1<<18, 12, rates, []int{100, 1000, 5000}
	if !*measure {
		bursts, seconds, rates, many = 1<<4, 2, rates[:1], many[:0]
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 << 30)) // 5,000 young pairs and as much garbage take more
	var m meter
	m.frames(bursts)
	for _, rate := range append([]float64{0}, rates...) {
		m.points(t, rate, seconds)
	}
	for _, rate := range rates {
		m.floor(rate, bursts/16)
		m.pairs(t, rate, fewPairs, seconds)
		if rate < 1e7 {
			m.store(rate)
		}
	}
	for _, pairs := range many {
		m.pairs(t, 1e4, pairs, seconds)
	}
	if *measure {
		measured = m.String()
		if err := os.WriteFile("costs.csv", m.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A meter writes costs, each with its name, the rate or number that it was measured at, and its value.
type meter struct{ bytes.Buffer }

func (m *meter) row(name string, at, value float64) { fmt.Fprintf(m, "%s,%g,%.4g\n", name, at, value) }

// processor returns the seconds of processors that this process has used.
func processor() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// frames measures what a tap spends on a frame: its identity, in bursts of 32, and the point's record.
func (m *meter) frames(bursts int) {
	frame := make([]byte, 96)
	copy(frame[12:], []byte{8, 0, 0x45, 0, 0, 82})
	frame[22], frame[23], frame[30] = 64, 17, 9
	batch, packets, flows, at := make([][]byte, 32), make([]hashing.Packet, 32), make([]hashing.Flow, 32), make([]int, 32)
	for i := range batch {
		batch[i] = bytes.Clone(frame)
	}
	identifier := hashing.NewIdentifier(1, hashing.LinkEthernet, hashing.DefaultTunnels)
	p := newPoint()
	defer p.Close()
	number := uint16(0)
	run := func(record bool) float64 {
		begin := processor()
		for range bursts {
			number++
			for _, f := range batch {
				f[18], f[19] = byte(number>>8), byte(number)
			}
			if identifier.Frames(batch, packets, flows, at); record {
				p.Record(0, time.Now(), packets...)
			}
		}
		return (processor() - begin) / float64(bursts) / 32 * 1e9
	}
	identity := min(run(false), run(false), run(false))
	m.row("ns to identify a frame", 0, identity)
	m.row("ns to record an identity in a burst", 0, min(run(true), run(true), run(true))-identity)
	begin := processor()
	for i := range 16 * bursts {
		p.PassedNumber(uint64(i))
	}
	m.row("ns to record a message", 0, (processor()-begin)/float64(16*bursts)*1e9)
}

func newPoint() *hoplag.Point {
	return must(hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey("a key to measure with"), ClocksAgree: true}))
}

const (
	tick     = time.Millisecond
	onWay    = 5 // ticks
	fewPairs = 10
)

// A kept record is a point's record of a cut, and its time.
type kept struct {
	at   time.Time
	from int // point
	data []byte
}

// points runs two points, and measures what they cost beside recording and what they send. It returns their records.
func (m *meter) points(t *testing.T, rate float64, seconds int) (records []kept) {
	size := 0
	synctest.Test(t, func(t *testing.T) {
		newPoint().Close()
		free := heap()
		ends := [2]*hoplag.Point{newPoint(), newPoint()}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var all sync.WaitGroup
		for from, p := range ends {
			all.Go(func() {
				for data := range p.Records(ctx) {
					mu.Lock()
					records, size = append(records, kept{time.Now(), from, data}), size+len(data)
					mu.Unlock()
				}
			})
		}
		random, begin := rand.New(rand.NewPCG(1, 2)), processor()
		way, lost := make([][]hashing.Packet, onWay+1), 0.0
		for i := range seconds * int(time.Second/tick) {
			time.Sleep(tick)
			burst := way[i%len(way)][:0]
			for range int(rate*float64(i+1)/1000) - int(rate*float64(i)/1000) {
				burst = append(burst, hashing.Packet(random.Uint64()))
			}
			way[i%len(way)] = burst
			ends[0].Record(0, time.Now(), burst...)
			arrived := way[(i+1)%len(way)]
			if lost += float64(len(arrived)) / 1000; lost >= 1 { // one in a thousand, all of a tick at once
				n := min(len(arrived), int(lost))
				arrived, lost = arrived[n:], lost-float64(n)
			}
			ends[1].Record(0, time.Now(), arrived...)
		}
		used := processor() - begin
		m.row("KiB of a point", rate, (heap()-free)/2/1024)
		cancel()
		all.Wait()
		m.row("KB a second from a point", rate, float64(size)/2e3/float64(seconds))
		m.row("ms a second of a point", rate, used*1e3/2/float64(seconds))
		ends[0].Close()
		ends[1].Close()
	})
	return records
}

func heap() float64 {
	runtime.GC()
	runtime.GC() // which frees what has finalizers
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

// pairs measures what a collector spends on a record and on a report of each of several pairs that see the same
// traffic, in the second half of the time, when losses are reported.
func (m *meter) pairs(t *testing.T, rate float64, pairs, seconds int) {
	var discard meter
	records := discard.points(t, rate, seconds)
	debug.FreeOSMemory()
	before := heap()
	all := make([]*hoplag.Pair, pairs)
	for i := range all {
		all[i], _ = hoplag.NewPair(hoplag.Config{Key: hoplag.NewKey("a key to measure with"), ClocksAgree: true}, "a", "b")
	}
	var taking, reporting, reports, size float64
	for i, r := range records {
		if i == len(records)/2 {
			taking, reporting, reports, size = 0, 0, 0, 0
		}
		begin := processor()
		for _, p := range all {
			p.At(r.at)
			if take := []func(string, []byte) error{p.TakeFirst, p.TakeSecond}[r.from]; take("", r.data) != nil {
				panic("a record is refused")
			}
		}
		middle := processor()
		for _, p := range all {
			for r, ok := p.Next(); ok; r, ok = p.Next() {
				text, _ := json.Marshal(r)
				size += float64(len(text))
				reports++
			}
		}
		taking, reporting = taking+middle-begin, reporting+processor()-middle
	}
	per := float64((len(records) - len(records)/2) * pairs)
	suffix, at := "", rate
	if pairs != fewPairs {
		suffix, at = " beside others", float64(pairs)
	}
	m.row("µs to take a record"+suffix, at, taking/per*1e6)
	m.row("µs to report"+suffix, at, reporting/reports*1e6)
	m.row("KiB of a pair"+suffix, at, (heap()-before)/float64(pairs)/1024)
	m.row("bytes of a report"+suffix, at, size/reports)
	runtime.KeepAlive(all)
}

// floor measures a literal loop that reads the cells of both points for ten cuts, keeps what passed, and adds it up.
func (m *meter) floor(rate float64, rounds int) {
	var cells [5120][4]uint64
	events, sum, random := make([][5]uint64, 0, 10*len(cells)), uint64(0), rand.New(rand.NewPCG(1, 2))
	for range int(min(rate, 1e6) / 10) {
		cells[random.IntN(len(cells))][1]++
	}
	begin := processor()
	for i := range 10 * rounds {
		for j := range cells {
			if c := &cells[j]; c[1]|c[3] != 0 {
				events = append(events, [5]uint64{uint64(j), c[0], c[1], c[2] - c[0], c[3]})
			}
		}
		for ; i%10 == 9 && len(events) > 0; events = events[:len(events)-1] {
			sum += events[len(events)-1][3] * events[len(events)-1][4]
		}
	}
	m.row("ns of a literal loop", rate, (processor()-begin)/float64(10*rounds*len(cells))*1e9+float64(sum))
}

// store measures how many bytes a minute of counters for every flow takes.
func (m *meter) store(rate float64) {
	r := must(colate.New(colate.DefaultConfig))
	begin := processor()
	for i := range uint64(rate * 60) {
		r.Update(hashing.Flow(hashing.Mix(i%uint64(rate), 5)), hashing.Word(3, i), int64(float64(i)/rate*1e9))
	}
	m.row("ns to count for a store", rate, (processor()-begin)/(rate*60)*1e9)
	m.row("MB a minute in a store", rate, float64(len(must(r.MarshalBinary())))/1e6)
}
