package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/nats-io/nats.go"
)

// A traffic is messages through a broker, as fast as it takes them, with a
// point where they are published and one where they are received.
type traffic struct {
	first, second *hoplag.Point
	stamps        stamps
	mode          atomic.Int32
	ways          []*way
	conns         []*nats.Conn
	options       *options
}

// A way is one publisher, with its subject and the subscription.
type way struct {
	conn               *nats.Conn
	subject            string
	published, arrived atomic.Uint64 // messages
	latest             atomic.Uint64 // number of the latest that arrived
}

// What is done to each message, besides sending and receiving it.
const (
	withPoints = 1 << iota
	withStamps
)

// One message in echoEvery is answered, for the clocks.
const echoEvery = 64

// header is the size of a message's number and the time at which it was sent,
// if stamped.
const header = 16

func newTraffic(o *options, url string) (*traffic, error) {
	t := &traffic{options: o, stamps: stamps{seconds: map[int64]*estimate.Moments{}}}
	for name, p := range map[string]**hoplag.Point{"publisher": &t.first, "subscriber": &t.second} {
		var err error
		if *p, err = hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey(o.key), Name: name}); err != nil {
			return nil, err
		}
	}
	for i := range o.publishers {
		w := &way{subject: fmt.Sprintf("hoplag.measure.%d", i)}
		t.ways = append(t.ways, w)
		if err := t.connect(w, url); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// connect makes a way: a connection that publishes and one that receives.
func (t *traffic) connect(w *way, url string) (err error) {
	if w.conn, err = connect(url); err != nil {
		return err
	}
	t.conns = append(t.conns, w.conn)
	receiver, err := connect(url)
	if err != nil {
		return err
	}
	t.conns = append(t.conns, receiver)
	echo := w.subject + ".echo"
	if _, err := w.conn.Subscribe(echo, func(m *nats.Msg) { t.first.Back.Passed(m.Data) }); err != nil {
		return err
	}
	id := []byte(w.subject)
	s, err := receiver.Subscribe(w.subject, func(m *nats.Msg) { t.receive(w, receiver, echo, id, m.Data) })
	if err != nil {
		return err
	}
	limit := t.options.pending
	if limit == 0 {
		limit = -1
	}
	return errors.Join(s.SetPendingLimits(limit, -1), receiver.Flush(), w.conn.Flush())
}

// receive handles each message that arrives. Its identity is the subject and
// the number.
func (t *traffic) receive(w *way, conn *nats.Conn, echo string, subject, data []byte) {
	number := binary.BigEndian.Uint64(data)
	mode := t.mode.Load()
	if mode&withPoints != 0 {
		id := append(subject, data[:8]...)
		t.second.Passed(id)
		if number%echoEvery == 0 {
			t.second.Back.Passed(id)
			conn.Publish(echo, id)
		}
	}
	if mode&withStamps != 0 {
		t.stamps.add(int64(binary.BigEndian.Uint64(data[8:])), time.Now().UnixNano())
	}
	w.arrived.Add(1)
	w.latest.Store(number)
}

// send sends messages until the context is done.
func (t *traffic) send(ctx context.Context, w *way) {
	data := make([]byte, t.options.size)
	id := append([]byte(w.subject), make([]byte, 8)...)
	began, before := time.Now(), w.published.Load()
	for ctx.Err() == nil {
		number := w.published.Load() + 1
		t.wait(w, number, began, number-before)
		binary.BigEndian.PutUint64(data, number)
		mode := t.mode.Load()
		if mode&withStamps != 0 {
			binary.BigEndian.PutUint64(data[8:], uint64(time.Now().UnixNano()))
		}
		if mode&withPoints != 0 {
			copy(id[len(w.subject):], data)
			t.first.Passed(id)
		}
		if w.conn.Publish(w.subject, data) != nil {
			return // closed
		}
		w.published.Store(number)
	}
	w.conn.Flush()
}

// wait waits while too many messages are on their way, so that the broker does
// not cut the receiver off, and for the rate. It waits only briefly for lost
// messages.
func (t *traffic) wait(w *way, number uint64, began time.Time, sent uint64) {
	for tries := 0; number > w.latest.Load()+uint64(t.options.window) && tries < 100; tries++ {
		w.conn.Flush()
	}
	if t.options.rate > 0 {
		due := began.Add(time.Duration(float64(sent) * float64(len(t.ways)) / t.options.rate * float64(time.Second)))
		if ahead := time.Until(due); ahead > time.Millisecond {
			w.conn.Flush()
			time.Sleep(ahead)
		}
	}
}

// run sends for a while, and returns how many messages arrived per second.
func (t *traffic) run(ctx context.Context, mode int32, d time.Duration) float64 {
	t.mode.Store(mode)
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, before := t.totals()
	began := time.Now()
	var all sync.WaitGroup
	for _, w := range t.ways {
		all.Go(func() { t.send(ctx, w) })
	}
	all.Wait()
	_, after := t.totals()
	return float64(after-before) / time.Since(began).Seconds()
}

// totals returns how many messages were published, and how many arrived.
func (t *traffic) totals() (published, arrived uint64) {
	for _, w := range t.ways {
		published += w.published.Load()
		arrived += w.arrived.Load()
	}
	return published, arrived
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
	if published, arrived := t.totals(); !o.json {
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
