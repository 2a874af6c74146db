package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/hoplag/hoplag"
)

// load fills the stream with records of many pairs, starts collectors, and
// prints how fast they get through it. All pairs have the records of one that
// was really measured: the work is the same.
func (f *fleet) load(ctx context.Context, o *options, stdout io.Writer) error {
	records, err := template(ctx, o)
	if err != nil {
		return err
	}
	bytes, err := f.fill(ctx, o.pairs, records)
	if err != nil {
		return err
	}
	info, err := f.records.Info(ctx)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	began := time.Now()
	var children []*exec.Cmd
	for range o.collectors {
		c := exec.CommandContext(ctx, program, "-role", "collector", "-url", o.url, "-partitions", fmt.Sprint(f.partitions))
		c.Env = append(os.Environ(), "HOPLAG_KEY="+o.key)
		if err := c.Start(); err != nil {
			return err
		}
		children = append(children, c)
	}
	err = f.drained(ctx, info.State.LastSeq, o.pairs)
	took := time.Since(began)
	var busy time.Duration
	for _, c := range children {
		c.Process.Kill()
		c.Wait()
		busy += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if err != nil {
		return err
	}
	l := loaded{o.collectors, o.pairs, len(records[0]) * 2 * o.pairs, bytes, took.Seconds(), busy.Seconds(), 0, 0}
	l.Points = float64(bytes) / l.Seconds / pointRate
	l.PerCPU = float64(bytes) / l.Busy / pointRate
	if o.json {
		return json.NewEncoder(stdout).Encode(l)
	}
	_, err = fmt.Fprintf(stdout, "%-10s %8s %9s %9s %9s %9s %16s %18s\n%-10d %8d %9d %9.1f %9.2f %9.2f %16.0f %18.0f\n",
		"collectors", "pairs", "records", "MiB", "seconds", "CPU s", "points 27 KiB/s", "the same per CPU",
		l.Collectors, l.Pairs, l.Records, float64(l.Bytes)/(1<<20), l.Seconds, l.Busy, l.Points, l.PerCPU)
	return err
}

// pointRate is what a point publishes, in bytes a second.
const pointRate = 27 << 10

// A loaded is what load prints.
type loaded struct {
	Collectors, Pairs, Records, Bytes int
	Seconds                           float64 // from the start of the processes to the last report
	Busy                              float64 // CPU seconds of the collectors
	Points                            float64 // of 27 KiB a second that they keep up with
	PerCPU                            float64 // the same for each CPU that they have to themselves
}

// template measures a pair for a while and returns the records of both points.
func template(ctx context.Context, o *options) (records [2][][]byte, err error) {
	const cuts = 30
	var points [2]*hoplag.Point
	for i := range points {
		if points[i], err = hoplag.NewPoint(o.config()); err != nil {
			return records, err
		}
		defer points[i].Close()
	}
	done := make(chan int)
	for i, p := range points {
		go func() {
			for r := range p.Records(ctx) {
				if records[i] = append(records[i], r); len(records[i]) == cuts {
					break
				}
			}
			done <- i
		}()
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for i := uint64(1); working.Err() == nil; i++ {
			for range 20 { // 20,000 a second or so fill the counters
				points[0].PassedNumber(i)
				points[1].PassedNumber(i)
				i++
			}
			sleep(working, time.Millisecond)
		}
	}()
	<-done
	<-done
	return records, ctx.Err()
}

// fill publishes the records under many names.
func (f *fleet) fill(ctx context.Context, pairs int, records [2][][]byte) (bytes int, err error) {
	if info, err := f.records.Info(ctx); err != nil {
		return 0, err
	} else if info.State.LastSeq > 0 {
		return 0, fmt.Errorf("stream %s has had %d records, want a broker where nobody collects yet", info.Config.Name, info.State.LastSeq)
	}
	for cut := range records[0] {
		for i := range pairs {
			for end := range records {
				data := records[end][cut]
				bytes += len(data)
				if _, err := f.js.PublishAsync(f.recordSubject(fmt.Sprintf("load-%d", i), end+1), data); err != nil {
					return 0, err
				}
			}
		}
		select {
		case <-f.js.PublishAsyncComplete():
			if info, err := f.records.Info(ctx); err != nil {
				return 0, err
			} else if want := uint64(2 * pairs * (cut + 1)); info.State.LastSeq != want {
				return 0, fmt.Errorf("the broker took %d records of %d", info.State.LastSeq, want)
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return bytes, nil
}

// drained waits until the records up to a sequence are collected, all but those
// of the last moment of each partition.
func (f *fleet) drained(ctx context.Context, last uint64, pairs int) error {
	used := map[int]bool{}
	for i := range pairs {
		used[f.partition(fmt.Sprintf("load-%d", i))] = true
	}
	for ctx.Err() == nil {
		least := uint64(math.MaxUint64)
		for p := range used {
			var at position
			if e, err := f.positions.Get(ctx, fmt.Sprint(p)); err == nil {
				if err := json.Unmarshal(e.Value(), &at); err != nil {
					return err
				}
			}
			least = min(least, at.Through)
		}
		if least+uint64(2*pairs) >= last {
			return nil
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return ctx.Err()
}
