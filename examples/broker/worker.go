package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A worker reads one partition and publishes its reports. One that takes over
// reads again what it needs, so nothing is lost.
//
// Nothing is duplicated, because a worker publishes nothing that was published, and the broker accepts a
// report only after the one that the worker believes to be the pair's latest. If two workers think that a
// partition is theirs, both read all of it, and one of them is refused and begins anew. It begins anew
// after any other error too.
type worker struct {
	*collector
	*partition
	number int
	out    func(hoplag.Report)

	known   map[string]published // by subject
	arrived time.Time            // local time when the latest record arrived
	seq     uint64               // its sequence
	saved   time.Time            // when the position was last saved
	unsaved bool                 // a record has come since
}

// A published says which of a pair's reports the broker has.
type published struct {
	sequence uint64 // of the latest message
	number   int64  // of the latest report
}

const (
	// margin is how far behind the broker's time a worker that hears nothing assumes to be.
	margin = time.Second

	// patience is how long a broker may take to deliver what it has stored.
	patience = 5 * time.Second
)

// run works until the context is done or something is wrong.
func (w *worker) run(ctx context.Context) (err error) {
	w.partition, w.arrived = newPartition(w.fleet.config), time.Now()
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
	info, err := w.reports.Info(ctx, jetstream.WithSubjectFilter(fmt.Sprintf("%s%d.>", reportPrefix, w.number)))
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
		NamePrefix:     fmt.Sprintf("partition-%d-%s", w.number, rand.Text()[:6]),
		FilterSubjects: []string{w.subjects()},
	}
	if e, err := w.positions.Get(ctx, fmt.Sprint(w.number)); err == nil {
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

func (w *worker) subjects() string { return fmt.Sprintf("%s%d.>", recordPrefix, w.number) }

// take takes a record, once the reports up to its time are made.
func (w *worker) take(ctx context.Context, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	if err := w.advance(ctx, meta.Timestamp); err != nil {
		return err
	}
	w.arrived, w.seq, w.unsaved = time.Now(), meta.Sequence.Stream, true
	w.behind(w.number, meta.NumPending)
	w.taken.Add(1)
	if !w.partition.take(meta.Timestamp, m.Subject(), m.Data()) {
		w.refused.Add(1)
	}
	return nil
}

// rest does what remains to be done while no record arrives. Time passes without records only if all that the
// broker has were read: otherwise, if a busy broker is late, other readers of the same records would make other
// reports.
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

// advance makes reports, publishes them and saves the position, when it is time by the broker's clock.
func (w *worker) advance(ctx context.Context, now time.Time) error {
	if !w.partition.advance(now) {
		return nil
	}
	if err := w.publish(ctx); err != nil || time.Since(w.saved) < every {
		return err
	}
	return w.save(ctx)
}

// publish publishes what is due, and waits until the broker has it.
func (w *worker) publish(ctx context.Context) error {
	futures := map[*tracked]jetstream.PubAckFuture{}
	for name, t := range w.pairs {
		subject := fmt.Sprintf("%s%d.%s", reportPrefix, w.number, name)
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

// save saves where a successor begins.
func (w *worker) save(ctx context.Context) error {
	start := w.from()
	if w.saved, w.unsaved = time.Now(), false; start.IsZero() {
		return nil
	}
	data, err := start.MarshalText()
	if err != nil {
		return err
	}
	_, err = w.positions.Put(ctx, fmt.Sprint(w.number), data)
	return err
}
