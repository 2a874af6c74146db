package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
)

// Of the cuts of a template these are quiet, because losses are not reported
// while reports begin (Report.Begins), busy, and quiet again, so that finally
// all packets are in reports.
const quietCuts, lateCuts = 25, 30

// TestLoad lets a collector work for many pairs of points at once: the records of
// one pair that is measured are published under many names as they are made,
// which is the work of as many pairs. Every packet of every pair is in the reports
// once. It says what a record takes. LOAD has flags of points for more:
//
//	LOAD='-pairs 5000 -cut 2s -cells 320 -duration 40s' go test -v -timeout 20m -run Load .
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	flags := os.Getenv("LOAD")
	if flags == "" {
		t.Parallel()
		flags = "-pairs 50 -duration 2s"
	}
	b := testBroker(t)
	f, o := fleetAt(t, b.url, flags)
	c := start(t, "-role", "collector", "-url", b.url, "-cut", o.cut.String(), "-cells", fmt.Sprint(o.cells))
	passed, sent := f.fill(t, o)
	filled := time.Now()
	wanted := make([]total, o.pairs)
	for i := range wanted {
		wanted[i] = total{loadName(i), passed.Sent, passed.Received}
	}
	reports := f.audit(t, wanted, time.Minute+30*o.cut)
	last := time.Since(filled)
	taken, _ := strconv.Atoi(regexp.MustCompile(`collector_records_total (\d+)`).FindStringSubmatch(get(t, c.at))[1])
	rss, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	c.kill()
	busy := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()) / time.Duration(taken)
	t.Logf("%d points, %d records and %d messages a second: %d records, of which %d were taken at %v of CPU each",
		2*o.pairs, int(2*float64(o.pairs)/o.cut.Seconds()), o.pairs*o.rate, sent, taken, busy)
	t.Logf("%d reports, the last %v later; %s", reports, last.Round(time.Second), regexp.MustCompile(`VmRSS:.*`).Find(rss))
}

func loadName(pair int) string { return fmt.Sprintf("load-%d", pair) }

// fill publishes the records of a pair under many names as they are made, and
// returns what passed and how many records there were.
func (f *fleet) fill(t *testing.T, o *options) (passed total, sent int) {
	var points [2]*hoplag.Point
	var records [2]chan []byte
	cuts := quietCuts + int(o.duration/o.cut) + lateCuts
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range points {
		points[i] = testPoint(t, f.config)
		records[i] = make(chan []byte, cuts)
		go func() {
			for r := range points[i].Records(ctx) {
				records[i] <- r
			}
		}()
	}
	var passing sync.WaitGroup
	passing.Go(func() {
		sleep(ctx, quietCuts*o.cut)
		passed.pass(ctx, [2][]*hoplag.Point{points[:1], points[1:]}, o.duration, o.rate)
	})
	for range cuts {
		both := [2][]byte{<-records[0], <-records[1]}
		for pair := range o.pairs {
			for f.js.PublishAsyncPending() > mostPending/2 {
				time.Sleep(time.Millisecond)
			}
			for end, data := range both {
				relay.Must(f.js.PublishAsync(f.recordSubject(loadName(pair), end+1, 0), data))(t)
				sent++
			}
		}
	}
	passing.Wait()
	<-f.js.PublishAsyncComplete()
	if info, err := f.records.Info(t.Context()); err != nil || info.State.LastSeq != uint64(sent) {
		t.Fatalf("the broker took %d records of %d: %v", info.State.LastSeq, sent, err)
	}
	return passed, sent
}
