package main

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/nats-io/nats.go"
)

// A traffic is messages through a broker, with a point where they are published
// and one where they are received.
type traffic struct {
	first, second *hoplag.Point
	stamps        stamps
	mode          atomic.Int32
	conns         []*nats.Conn
	options       *options

	published, arrived atomic.Uint64 // messages
	latest             atomic.Uint64 // number of the latest that arrived
}

// What is done to each message, besides sending and receiving it.
const (
	withPoints = 1 << iota
	withStamps
)

const (
	subject = "hoplag.measure"

	// One message in echoEvery is answered, for the clocks.
	echoEvery = 64

	// header is the size of a message's number, which is its identity, and of the
	// time at which it was sent, if stamped.
	header = 16
)

func newTraffic(o *options, url string) (t *traffic, err error) {
	t = &traffic{options: o, stamps: stamps{seconds: map[int64]*estimate.Moments{}}}
	for name, p := range map[string]**hoplag.Point{"publisher": &t.first, "subscriber": &t.second} {
		if *p, err = hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey(o.key), Name: name}); err != nil {
			return nil, err
		}
	}
	for range 2 {
		conn, err := connect(url)
		if err != nil {
			t.close()
			return nil, err
		}
		t.conns = append(t.conns, conn)
	}
	_, err = t.conns[0].Subscribe(subject+".echo", func(m *nats.Msg) { t.first.Back.PassedNumber(binary.BigEndian.Uint64(m.Data)) })
	s, other := t.conns[1].Subscribe(subject, func(m *nats.Msg) { t.receive(m.Data) })
	if err = errors.Join(err, other); err != nil {
		t.close()
		return nil, err
	}
	limit := t.options.pending
	if limit == 0 {
		limit = -1
	}
	return t, errors.Join(s.SetPendingLimits(limit, -1), t.conns[1].Flush(), t.conns[0].Flush())
}

// receive handles each message that arrives.
func (t *traffic) receive(data []byte) {
	number, mode := binary.BigEndian.Uint64(data), t.mode.Load()
	if mode&withPoints != 0 {
		t.second.PassedNumber(number)
		if number%echoEvery == 0 {
			t.second.Back.PassedNumber(number)
			t.conns[1].Publish(subject+".echo", data[:8])
		}
	}
	if mode&withStamps != 0 {
		t.stamps.add(int64(binary.BigEndian.Uint64(data[8:])), time.Now().UnixNano())
	}
	t.arrived.Add(1)
	t.latest.Store(number)
}

// run sends for a while, and returns how many messages arrived per second.
func (t *traffic) run(ctx context.Context, mode int32, d time.Duration) float64 {
	t.mode.Store(mode)
	data, began, before, sent := make([]byte, t.options.size), time.Now(), t.arrived.Load(), uint64(0)
	for ; ctx.Err() == nil && time.Since(began) < d; sent++ {
		number := t.published.Load() + 1
		t.wait(number, began, sent)
		binary.BigEndian.PutUint64(data, number)
		if mode&withStamps != 0 {
			binary.BigEndian.PutUint64(data[8:], uint64(time.Now().UnixNano()))
		}
		if mode&withPoints != 0 {
			t.first.PassedNumber(number)
		}
		if t.conns[0].Publish(subject, data) != nil {
			break // closed
		}
		t.published.Store(number)
	}
	t.conns[0].Flush()
	return float64(t.arrived.Load()-before) / time.Since(began).Seconds()
}

// wait waits while too many messages are on their way, so that the broker does
// not cut the receiver off, and for the rate. It waits only briefly for lost
// messages.
func (t *traffic) wait(number uint64, began time.Time, sent uint64) {
	for tries := 0; number > t.latest.Load()+uint64(t.options.window) && tries < 100; tries++ {
		t.conns[0].Flush()
	}
	if t.options.rate > 0 {
		due := began.Add(time.Duration(float64(sent) / t.options.rate * float64(time.Second)))
		if ahead := time.Until(due); ahead > time.Millisecond {
			t.conns[0].Flush()
			time.Sleep(ahead)
		}
	}
}

func (t *traffic) close() {
	for _, c := range t.conns {
		c.Close()
	}
	t.first.Close()
	t.second.Close()
}

// exchange carries the second point's requests to the first one, also through
// the broker.
func exchange(p *hoplag.Point, url string) (ask hoplag.Exchange, done func(), err error) {
	conn, err := connect(url)
	if err != nil {
		return nil, nil, err
	}
	subject := nats.NewInbox()
	_, err = conn.Subscribe(subject, func(m *nats.Msg) {
		if reply, err := p.Answer(m.Data); err == nil {
			m.Respond(reply)
		}
	})
	return func(ctx context.Context, request []byte) ([]byte, error) {
		m, err := conn.RequestWithContext(ctx, subject, request)
		if err != nil {
			return nil, err
		}
		return m.Data, nil
	}, conn.Close, err
}

// measure prints, a row a second, what the points and what time stamps say
// about messages through the broker, and then what each costs.
func measure(ctx context.Context, o *options, url string, rows *programs.Rows) error {
	t, err := newTraffic(o, url)
	if err != nil {
		return err
	}
	defer t.close()
	ask, done, err := exchange(t.first, url)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, o.duration+4*time.Second)
	defer cancel()
	var sum measured
	following, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() {
		for r := range t.second.FollowOver(following, ask) {
			sum.add(rows, r, t.stamps.take(r.Start.Add(r.Length-time.Nanosecond).Unix()))
		}
	})
	t.run(ctx, withPoints|withStamps, o.duration)
	sleep(ctx, 3500*time.Millisecond) // for the last report
	stop()
	all.Wait()
	if published, arrived := t.published.Load(), t.arrived.Load(); !o.json {
		d := &sum.Report.Forth
		rows.Printf("\n%-10s %10s %10s %9s %12s\n", "in all", "published", "arrived", "lost", "mean")
		rows.Printf("%-10s %10d %10d %9d %12s\n", "points", d.Sent, d.Received, d.Lost, hoplag.Format(d.Mean))
		rows.Printf("%-10s %10s %10d %9s %12s\n", "stamps", "", sum.StampReceived, "", hoplag.Format(sum.StampMean))
		rows.Printf("%-10s %10d %10d %9d\n", "exactly", published, arrived, published-arrived)
	}
	if rows.Err == nil && o.costs {
		costs(rows, t)
	}
	return rows.Err
}

// A measured is what the points report, and what time stamps say.
type measured struct {
	Report        hoplag.Report
	StampReceived uint64
	StampMean     float64 // ns
}

// add prints a report, and adds it up.
func (sum *measured) add(rows *programs.Rows, r hoplag.Report, s estimate.Moments) {
	d, all := &r.Forth, &sum.Report.Forth
	all.Sent += d.Sent
	all.Lost += d.Lost - d.Extra // what came after all
	if all.Received += d.Received; d.Err == nil && d.Received > 0 {
		all.N += d.Received
		all.Mean += (d.Mean - all.Mean) * float64(d.Received) / float64(all.N)
	}
	if sum.StampReceived += s.N(); s.N() > 0 {
		sum.StampMean += (s.Mean() - sum.StampMean) * float64(s.N()) / float64(sum.StampReceived)
	}
	if rows.JSON {
		rows.Object(measured{r, s.N(), s.Mean()})
		return
	}
	mean, within, p99 := programs.Columns(d)
	off, note := "", r.Clock.String()
	if d.Err == nil {
		off = programs.Off(d.Mean, s.Mean())
	}
	if r.Err != nil {
		note = r.Err.Error()
	}
	rows.Heading("%-8s %10s %23s %10s %9s %7s | stamps: %10s %9s %9s | clocks",
		"time", "mean", "95 % of means", "p99", "messages", "lost", "mean", "error", "messages")
	rows.Printf("%-8s %10s %23s %10s %9d %7d | %18s %9s %9d | %s\n", r.Start.Format(time.TimeOnly), mean, within, p99, d.Received, d.Lost,
		hoplag.Format(s.Mean()), off, s.N(), note)
}

// A cost is the cost of measuring: messages a second with it, and the time per
// message, at both ends together.
type cost struct {
	Measured string
	Rate     float64 // messages a second
	Relative float64 // of that of bare messages
}

// costs sends as fast as possible without measuring and with each kind of it,
// in turns, and prints the best of each: other programs only ever slow them
// down.
func costs(rows *programs.Rows, t *traffic) {
	kinds := []cost{{Measured: "nothing"}, {Measured: "by stamps"}, {Measured: "by points"}, {Measured: "by both"}}
	modes := []int32{0, withStamps, withPoints, withPoints | withStamps}
	const rounds, each = 5, 300 * time.Millisecond
	for range rounds {
		for i := range kinds {
			kinds[i].Rate = max(kinds[i].Rate, t.run(context.Background(), modes[i], each))
		}
	}
	if !rows.JSON {
		rows.Printf("\n%-10s %14s %10s\n", "measured", "messages/s", "of bare")
	}
	for _, k := range kinds {
		if k.Relative = k.Rate / kinds[0].Rate; rows.JSON {
			rows.Object(k)
		} else {
			rows.Printf("%-10s %14.0f %8.1f %%\n", k.Measured, k.Rate, 100*k.Relative)
		}
	}
}

// sleep waits for a time, or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
