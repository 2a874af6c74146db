package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// load fills the stream with records of many pairs, starts collectors, and
// prints how fast they get through it. All pairs have the records of one pair
// that is really measured, and the broker gets them when they are made: the
// work is the same as that of as many pairs, and so are the reports.
func (f *fleet) load(ctx context.Context, o *options, rows *programs.Rows) error {
	records, passed, err := f.fill(ctx, o)
	if err != nil {
		return err
	}
	l := loaded{Collectors: o.collectors, Pairs: o.pairs, Packets: float64(passed.Sent) / busyCuts}
	for end := range records {
		for _, r := range records[end] {
			l.Bytes += o.pairs * len(r)
		}
	}
	info, err := f.records.Info(ctx)
	if err != nil {
		return err
	}
	l.Records = info.State.LastSeq
	children, began, before := []*child(nil), time.Now(), cpuTime()
	for range o.collectors {
		c, err := startCollector(ctx, o)
		if err != nil {
			return err
		}
		defer c.kill()
		children = append(children, c)
	}
	if err := f.drained(ctx, l.Records, o.pairs); err != nil {
		return err
	}
	l.Seconds, l.Broker = time.Since(began).Seconds(), (cpuTime() - before).Seconds()
	for _, c := range children {
		if err := c.end(); err != nil {
			return err
		}
		l.Shares = append(l.Shares, float64(c.records)/float64(l.Records))
		l.CPU = append(l.CPU, c.busy.Seconds())
		l.Busy += c.busy.Seconds()
		l.Collected += c.records
	}
	l.Rate, l.PerCPU = float64(l.Records)/l.Seconds, float64(l.Records)/l.Busy
	for i := range o.pairs {
		passed.Pair = loadName(i)
		n, err := f.audit(ctx, passed, 15*time.Second)
		if err != nil {
			return err
		}
		l.Reports += n
	}
	l.print(rows)
	return rows.Err
}

// A loaded is what load prints.
type loaded struct {
	Collectors, Pairs int
	Records           uint64
	Bytes             int
	Packets           float64   // counted by a busy record
	Seconds           float64   // from the start of the processes to the last report
	Rate              float64   // records a second
	Busy              float64   // CPU seconds of the collectors
	CPU               []float64 // of each
	PerCPU            float64   // records for each second of a CPU that collectors have
	Broker            float64   // CPU seconds of the broker meanwhile
	Collected         uint64    // records that collectors took: more than there are if partitions changed hands
	Shares            []float64 // of the records, by collector
	Reports           int       // that contain every packet of every pair once
}

func (l *loaded) print(rows *programs.Rows) {
	if rows.JSON {
		rows.Object(l)
		return
	}
	var shares strings.Builder
	for i, s := range l.Shares {
		fmt.Fprintf(&shares, "  %.2f (%.2f s)", s, l.CPU[i])
	}
	rows.Printf(`records      %d of %d pairs, %d bytes each, %.0f packets in a busy one
collected    %.0f records/s by %d processes in %.2f s, broker's CPU %.2f s
for a CPU    %.0f records/s: %.0f µs a record
shares       %s
reports      %d, with every packet of every pair once
`, l.Records, l.Pairs, uint64(l.Bytes)/l.Records, l.Packets, l.Rate, l.Collectors, l.Seconds, l.Broker,
		l.PerCPU, 1e6/l.PerCPU, strings.TrimSpace(shares.String()), l.Reports)
}

// cpuTime returns how long this process kept CPUs busy.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A child is a collector in a separate process.
type child struct {
	*exec.Cmd
	status  string // address
	records uint64 // it took
	busy    time.Duration
}

func startCollector(ctx context.Context, o *options) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{Cmd: exec.CommandContext(ctx, program, "-role", "collector", "-url", o.url,
		"-partitions", fmt.Sprint(o.partitions), "-cut", o.cut.String())}
	c.Env = append(os.Environ(), "HOPLAG_KEY="+o.key)
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("collector does not start: %w", err)
	}
	_, address, _ := strings.Cut(strings.TrimSpace(line), " at ")
	c.status = strings.TrimSuffix(address, "/metrics") + "/status"
	return c, nil
}

// end asks a collector what it did, and kills it.
func (c *child) end() error {
	answer, err := http.Get(c.status)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var s status
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return err
	}
	c.kill()
	c.records, c.busy = s.Records, c.ProcessState.UserTime()+c.ProcessState.SystemTime()
	return nil
}

func (c *child) kill() {
	c.Process.Kill()
	c.Wait()
}

// Of the cuts of a template these are quiet, because losses are not reported
// while reports begin (Report.Begins), busy, and quiet again, so that finally
// all packets are in reports.
const quietCuts, busyCuts, lateCuts = 25, 75, 25

const allCuts = quietCuts + busyCuts + lateCuts

// template measures a pair for a while, sends the records of both points, and
// returns what passed.
func template(ctx context.Context, o *options, records [2]chan<- []byte) (passed total, err error) {
	var points [2]*hoplag.Point
	for i := range points {
		if points[i], err = hoplag.NewPoint(o.config()); err != nil {
			return passed, err
		}
		defer points[i].Close()
	}
	var recording sync.WaitGroup
	for i, p := range points {
		recording.Go(func() {
			n := 0
			for r := range p.Records(ctx) {
				records[i] <- r
				if n++; n == allCuts {
					break
				}
			}
		})
	}
	sleep(ctx, quietCuts*o.cut)
	sending, stop := context.WithTimeout(ctx, busyCuts*o.cut)
	defer stop()
	for began := time.Now(); sending.Err() == nil; sleep(sending, time.Millisecond) {
		from := passed.Sent + 1
		for ; float64(passed.Sent) < loadRate*time.Since(began).Seconds(); passed.Sent++ {
			points[0].PassedNumber(passed.Sent + 1)
		}
		to := passed.Sent
		time.AfterFunc(pointsDelay, func() {
			for i := from; i <= to; i++ {
				if i%pointsLoss != 0 {
					points[1].PassedNumber(i)
				}
			}
		})
	}
	recording.Wait()
	passed.Received = passed.Sent - passed.Sent/pointsLoss
	return passed, ctx.Err()
}

// loadRate is how many packets a second the points of a template count, if
// they have the processor.
const loadRate = 20000

// fill publishes the records of a template under many names as they come, and
// returns them and what passed.
func (f *fleet) fill(ctx context.Context, o *options) (records [2][][]byte, passed total, err error) {
	info, err := f.records.Info(ctx)
	if err != nil {
		return records, passed, err
	}
	if info.State.LastSeq > 0 {
		const used = "stream %s has had %d records, want a broker where nobody collects yet"
		return records, passed, fmt.Errorf(used, info.Config.Name, info.State.LastSeq)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	come := [2]chan []byte{make(chan []byte, allCuts), make(chan []byte, allCuts)}
	finished := make(chan total, 1)
	go func() {
		counted, err := template(ctx, o, [2]chan<- []byte{come[0], come[1]})
		if err != nil {
			cancel(err)
			return
		}
		finished <- counted
	}()
	for cut := range allCuts {
		for end := range records {
			select {
			case r := <-come[end]:
				records[end] = append(records[end], r)
			case <-ctx.Done():
				return records, passed, context.Cause(ctx)
			}
		}
		if err := f.fillCut(ctx, o.pairs, [2][]byte{records[0][cut], records[1][cut]}, uint64(2*o.pairs*(cut+1))); err != nil {
			return records, passed, err
		}
	}
	select {
	case passed = <-finished:
		return records, passed, nil
	case <-ctx.Done():
		return records, passed, context.Cause(ctx)
	}
}

// fillCut publishes the records of one cut for all pairs, and waits until the
// broker has as many as wanted.
func (f *fleet) fillCut(ctx context.Context, pairs int, records [2][]byte, want uint64) error {
	for i := range pairs {
		f.room(ctx)
		for end, data := range records {
			if _, err := f.js.PublishAsync(f.recordSubject(loadName(i), end+1, 0), data); err != nil {
				return err
			}
		}
	}
	select {
	case <-f.js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	info, err := f.records.Info(ctx)
	if err == nil && info.State.LastSeq != want {
		err = fmt.Errorf("the broker took %d records of %d", info.State.LastSeq, want)
	}
	return err
}

func loadName(pair int) string { return fmt.Sprintf("load-%d", pair) }

// drained waits until the records up to a sequence are collected: for each
// partition those up to its last one. The pairs' records take turns.
func (f *fleet) drained(ctx context.Context, last uint64, pairs int) error {
	through := map[int]uint64{}
	for i := range pairs {
		through[f.partition(loadName(i))] = last - uint64(2*(pairs-1-i))
	}
	for len(through) > 0 && ctx.Err() == nil {
		for p, end := range through {
			e, err := f.positions.Get(ctx, fmt.Sprint(p))
			if err != nil {
				continue // nobody works on it yet
			}
			var at position
			if err := json.Unmarshal(e.Value(), &at); err != nil {
				return err
			}
			if at.Through >= end {
				delete(through, p)
			}
		}
		sleep(ctx, 10*time.Millisecond)
	}
	return ctx.Err()
}
