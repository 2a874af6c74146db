package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A worker makes the reports of one partition. They are a function of the
// stream of records: the time is when the broker stored a record, so whoever
// reads the same records makes the same reports. A worker that takes over
// begins a warm-up before the latest report, and does not publish again what
// was published. So nothing is lost.
//
// Nothing is duplicated, because the broker accepts a report only after the
// one that the worker believes to be the pair's latest. If two workers think
// that a partition is theirs, both read all of it, and one of them is refused
// and begins anew. It begins anew after any other error too.
type worker struct {
	*collector
	partition int
	out       func(hoplag.Report)

	pairs   map[string]*tracked
	known   map[string]published // by subject
	tick    time.Time            // reports are made up to here
	stamp   time.Time            // of the latest record
	arrived time.Time            // local time when that record arrived
	seq     uint64               // its sequence
	marks   []time.Time          // places in the stream
	saved   time.Time            // when the position was last saved
	unsaved bool                 // a record has come since
}

// A tracked is a pair of points.
type tracked struct {
	pair   *hoplag.Pair
	latest time.Time // time of its latest record
	due    []hoplag.Report
}

// collect collects the reports that are ready.
func (t *tracked) collect() {
	for r, ok := t.pair.Next(); ok; r, ok = t.pair.Next() {
		t.due = append(t.due, r)
	}
}

// A published is what the broker has of a pair's reports.
type published struct {
	sequence uint64 // of the latest message
	number   int64  // of the latest report
}

const (
	// every is the time between requests for reports.
	every = 100 * time.Millisecond

	// margin is how far behind the broker's time a worker that hears nothing
	// assumes to be.
	margin = time.Second

	// patience is how long a broker may take to deliver what it has.
	patience = 5 * time.Second
)

// warmUp is how much of the stream before the latest reports a pair's state
// depends on: package hoplag waits 30 cuts at most for what is on its way, and
// takes the clocks' difference from 64 records.
func (w *worker) warmUp() time.Duration { return max(10*time.Second, 100*w.config.Cut) }

// forget returns how long a silent pair is still reported.
func (w *worker) forget() time.Duration { return max(time.Minute, 100*w.config.Cut) }

// run works until the context is done or something is wrong.
func (w *worker) run(ctx context.Context) (err error) {
	w.pairs, w.arrived = map[string]*tracked{}, time.Now()
	if w.known, err = w.published(ctx); err != nil {
		return err
	}
	messages, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer messages.Stop()
	for ctx.Err() == nil {
		wait := 2 * every
		if w.unsaved { // so that it is saved soon, but not more often than without a pause
			wait = max(every-time.Since(w.saved), every/5)
		}
		m, err := messages.Next(jetstream.NextMaxWait(wait))
		if errors.Is(err, nats.ErrTimeout) {
			err = w.rest(ctx)
		} else if err == nil {
			err = w.take(ctx, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// published returns what was published for each pair.
func (w *worker) published(ctx context.Context) (map[string]published, error) {
	info, err := w.reports.Info(ctx, jetstream.WithSubjectFilter(fmt.Sprintf("%s%d.>", reportPrefix, w.partition)))
	if err != nil {
		return nil, err
	}
	known := map[string]published{}
	for subject := range info.State.Subjects {
		m, err := w.reports.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return nil, err
		}
		var reports []hoplag.Report
		if err := json.Unmarshal(m.Data, &reports); err != nil || len(reports) == 0 {
			return nil, fmt.Errorf("%s: no reports: %v", subject, err)
		}
		known[subject] = published{m.Sequence, reports[len(reports)-1].Number}
	}
	return known, nil
}

// open begins to read the partition at the saved time.
func (w *worker) open(ctx context.Context) (jetstream.MessagesContext, error) {
	from := jetstream.OrderedConsumerConfig{
		NamePrefix:     fmt.Sprintf("partition-%d-%s", w.partition, rand.Text()[:6]),
		FilterSubjects: []string{w.subjects()},
	}
	if e, err := w.positions.Get(ctx, fmt.Sprint(w.partition)); err == nil {
		start := new(time.Time)
		if err := start.UnmarshalText(e.Value()); err != nil {
			return nil, err
		}
		from.DeliverPolicy, from.OptStartTime = jetstream.DeliverByStartTimePolicy, start
	} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, err
	}
	consumer, err := w.js.OrderedConsumer(ctx, w.records.CachedInfo().Config.Name, from)
	if err != nil {
		return nil, err
	}
	return consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(500, 4<<20))
}

func (w *worker) subjects() string { return fmt.Sprintf("%s%d.>", recordPrefix, w.partition) }

// take takes a record, once the reports up to its time are made.
func (w *worker) take(ctx context.Context, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	if err := w.advance(ctx, meta.Timestamp); err != nil {
		return err
	}
	w.stamp, w.arrived, w.seq, w.unsaved = meta.Timestamp, time.Now(), meta.Sequence.Stream, true
	if len(w.marks) == 0 {
		w.marks = append(w.marks, w.stamp)
	}
	w.behind(w.partition, meta.NumPending)
	w.taken.Add(1)
	if !w.takeFrom(m.Subject(), m.Data()) {
		w.refused.Add(1)
	}
	return nil
}

// takeFrom takes a record of a sender, and reports whether it is of the fleet's
// Key and Config: no other can start a pair.
func (w *worker) takeFrom(subject string, record []byte) bool {
	name := strings.Split(subject, ".")
	if len(name) != 6 || !pairName.MatchString(name[3]) || !pairName.MatchString(name[5]) {
		return false
	}
	t := w.pairs[name[3]]
	if t == nil {
		p, err := hoplag.NewPair(w.config, name[3]+".1", name[3]+".2")
		if err != nil {
			return false
		}
		t = &tracked{pair: p}
	}
	t.pair.At(w.stamp)
	take := map[string]func(shard string, record []byte) error{"1": t.pair.TakeFirstShard, "2": t.pair.TakeSecondShard}[name[4]]
	if take == nil || take(name[5], record) != nil {
		return false
	}
	t.collect() // now, because many records may have come in no time
	t.latest = w.stamp
	w.pairs[name[3]] = t
	return true
}

// rest does what there is to do while no record comes. Time goes on without
// records only if all that are in the broker have been read: if a busy broker is
// late, others who read the same records would make other reports.
func (w *worker) rest(ctx context.Context) error {
	if w.unsaved {
		if err := w.publish(ctx); err != nil {
			return err
		}
		return w.save(ctx)
	}
	silent := time.Since(w.arrived)
	now := w.stamp.Add(silent - margin)
	if silent < margin || w.stamp.IsZero() || now.Before(w.tick) {
		return nil
	}
	last, err := w.records.GetLastMsgForSubject(ctx, w.subjects())
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && last.Sequence == w.seq:
		return w.advance(ctx, now)
	case err == nil && last.Sequence < w.seq:
		return errors.New("the broker has lost records")
	case silent > patience:
		return errors.Join(errors.New("the broker does not deliver what it has"), err)
	}
	return nil
}

// advance asks all pairs for reports, publishes them and saves the position,
// when it is time by the broker's clock.
func (w *worker) advance(ctx context.Context, now time.Time) error {
	tick := now.Truncate(every)
	if !tick.After(w.tick) {
		return nil
	}
	w.tick = tick
	for name, t := range w.pairs {
		t.pair.At(tick)
		t.collect()
		if tick.Sub(t.latest) > w.forget() && len(t.due) == 0 {
			delete(w.pairs, name)
		}
	}
	if err := w.publish(ctx); err != nil || time.Since(w.saved) < every {
		return err
	}
	return w.save(ctx)
}

// publish publishes what is due and not published, and waits until the broker
// has it.
func (w *worker) publish(ctx context.Context) error {
	futures := map[*tracked]jetstream.PubAckFuture{}
	for name, t := range w.pairs {
		subject := fmt.Sprintf("%s%d.%s", reportPrefix, w.partition, name)
		k := w.known[subject]
		for len(t.due) > 0 && t.due[0].Number <= k.number {
			t.due = t.due[1:]
		}
		if len(t.due) == 0 {
			continue
		}
		data, err := json.Marshal(t.due)
		if err != nil {
			return err
		}
		for w.js.PublishAsyncPending() >= mostPending/2 && ctx.Err() == nil {
			sleep(ctx, time.Millisecond)
		}
		message := &nats.Msg{Subject: subject, Data: data}
		if futures[t], err = w.js.PublishMsgAsync(message, jetstream.WithExpectLastSequencePerSubject(k.sequence)); err != nil {
			return err
		}
	}
	timeout := time.After(patience)
	for t, future := range futures {
		select {
		case ack := <-future.Ok():
			w.known[future.Msg().Subject] = published{ack.Sequence, t.due[len(t.due)-1].Number}
		case err := <-future.Err():
			return err
		case <-timeout:
			return errors.New("the broker refuses reports")
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, r := range t.due {
			w.out(r)
		}
		t.due = nil
	}
	return nil
}

// save saves where whoever continues begins.
func (w *worker) save(ctx context.Context) error {
	if len(w.marks) == 0 {
		return nil
	}
	if w.stamp.Sub(w.marks[len(w.marks)-1]) >= time.Second {
		w.marks = append(w.marks, w.stamp)
	}
	for len(w.marks) > 1 && w.tick.Sub(w.marks[1]) > w.warmUp() {
		w.marks = w.marks[1:]
	}
	data, err := w.marks[0].MarshalText()
	if err != nil {
		return err
	}
	w.saved, w.unsaved = time.Now(), false
	_, err = w.positions.Put(ctx, fmt.Sprint(w.partition), data)
	return err
}
