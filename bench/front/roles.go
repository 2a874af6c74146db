package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
)

// A message is the time when it was sent and a unique number, 8 bytes each.
const messageSize = 16

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// first sends messages from many goroutines. It keeps each message for a while
// after it passed the point: that is the delay to measure.
func first(ctx context.Context, o options) error {
	point, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey("a key of the benchmark"), ClocksAgree: true, Name: "first"})
	if err != nil {
		return err
	}
	defer point.Close()
	listener, err := net.Listen("tcp", o.reports)
	if err != nil {
		return err
	}
	go point.Serve(listener)
	var all sync.WaitGroup
	for range o.goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			for ctx.Err() == nil {
				if err := sendAll(ctx, o, point, random); err != nil {
					time.Sleep(50 * time.Millisecond) // the other one is not there yet
				}
			}
		})
	}
	all.Wait()
	return nil
}

// sendAll sends messages over one connection, until it breaks.
func sendAll(ctx context.Context, o options, point *hoplag.Point, random *rand.Rand) error {
	conn, err := net.Dial("tcp", o.data)
	if err != nil {
		return err
	}
	defer conn.Close()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.ExpFloat64() / o.rate * 1e9))
		now := time.Now()
		message := binary.BigEndian.AppendUint64(make([]byte, 0, messageSize), uint64(now.UnixNano()))
		message = binary.BigEndian.AppendUint64(message, random.Uint64())
		point.Record(now, point.Packet(message))
		time.Sleep(time.Duration(random.ExpFloat64() * 2e6))
		if _, err := conn.Write(message); err != nil {
			return err
		}
	}
	return nil
}

// A truth is the exact delays of the messages received in each second.
type truth struct {
	mu      sync.Mutex
	seconds map[int64]*exactSecond
}

type exactSecond struct{ sum, packets float64 }

func (t *truth) add(now time.Time, delay float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seconds[now.Unix()]
	if s == nil {
		s = new(exactSecond)
		t.seconds[now.Unix()] = s
	}
	s.sum += delay
	s.packets++
}

// take returns the exact mean of a second, and forgets it.
func (t *truth) take(unix int64) (mean, packets float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seconds[unix]
	delete(t.seconds, unix)
	if s == nil {
		return math.NaN(), 0
	}
	return s.sum / s.packets, s.packets
}

// second receives messages, reports, and judges the reports.
func second(ctx context.Context, o options, out io.Writer) error {
	point, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey("a key of the benchmark"), ClocksAgree: true, Name: "second"})
	if err != nil {
		return err
	}
	defer point.Close()
	listener, err := net.Listen("tcp", o.data)
	if err != nil {
		return err
	}
	defer listener.Close()
	exact := truth{seconds: map[int64]*exactSecond{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go receiveAll(conn, point, &exact)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var j judge
	fmt.Fprintf(out, "%-8s  %8s  %6s  %-34s  %10s  %s\n", "second", "received", "lost", "mean, 95 % interval", "exact", "")
	for r := range point.FollowOver(ctx, hoplag.Dial("tcp", o.reports)) {
		mean, packets := exact.take(r.Start.Unix())
		fmt.Fprintln(out, j.row(r, mean, packets))
	}
	return j.verdict(out, o)
}

// receiveAll takes the messages of one connection.
func receiveAll(conn net.Conn, point *hoplag.Point, exact *truth) {
	defer conn.Close()
	var message [messageSize]byte
	for {
		if _, err := io.ReadFull(conn, message[:]); err != nil {
			return
		}
		now := time.Now()
		point.Record(now, point.Packet(message[:]))
		exact.add(now, float64(now.UnixNano()-int64(binary.BigEndian.Uint64(message[:]))))
	}
}

// A judge counts what is wrong with the reports.
type judge struct {
	last                                     int64
	reports, measured, inside, begins, gone  int
	repeated, missing, received, lost, extra int
}

// row judges a report and formats it.
func (j *judge) row(r hoplag.Report, exact, packets float64) string {
	if j.reports++; j.reports > 1 {
		switch {
		case r.Number <= j.last:
			j.repeated++
		case r.Number > j.last+1:
			j.missing += int(r.Number - j.last - 1)
		}
	}
	j.last = r.Number
	d := &r.Forth
	j.received += int(d.Received)
	j.lost += int(d.Lost)
	j.extra += int(d.Extra)
	note := ""
	switch {
	case errors.Is(r.Err, hoplag.ErrSilent):
		j.gone++
		note = "silent"
	case r.Begins:
		j.begins++
		note = "begins"
	case d.Err != nil:
		note = d.Err.Error()
	default:
		j.measured++
		if d.MeanInterval95.Contains(exact) {
			j.inside++
		} else {
			note = "outside"
		}
	}
	interval := fmt.Sprintf("%s (%s to %s)", hoplag.Format(d.Mean), hoplag.Format(d.MeanInterval95.Low), hoplag.Format(d.MeanInterval95.High))
	return fmt.Sprintf("%-8s  %8d  %6d  %-34s  %10s  %s", r.Start.Local().Format("15:04:05"), d.Received, d.Lost, interval,
		hoplag.Format(exact), note)
}

// verdict sums up, and fails if the reports are not what they should be.
func (j *judge) verdict(out io.Writer, o options) error {
	fmt.Fprintf(out, "\n%d reports: %d with a mean, %d of them with the exact one in the interval; %d silent, %d in which a session began\n",
		j.reports, j.measured, j.inside, j.gone, j.begins)
	fmt.Fprintf(out, "%d intervals missing, %d repeated; %d messages received, %d lost, %d extra; %d goroutines in each process, pid %d\n",
		j.missing, j.repeated, j.received, j.lost, j.extra, o.goroutines, os.Getpid())
	expected := int(o.duration.Seconds()) - 4
	switch {
	case j.missing > 0 || j.repeated > 0:
		return fmt.Errorf("%d intervals are missing and %d repeated", j.missing, j.repeated)
	case j.reports < expected:
		return fmt.Errorf("%d reports in %v", j.reports, o.duration)
	case j.measured < expected/2:
		return fmt.Errorf("%d reports with a mean in %v", j.measured, o.duration)
	case float64(j.measured-j.inside) > 0.05*float64(j.measured)+3*math.Sqrt(0.05*0.95*float64(j.measured)):
		return fmt.Errorf("%d of %d means are outside their 95 %% interval", j.measured-j.inside, j.measured)
	}
	return nil
}
