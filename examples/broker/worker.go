package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
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
	*fleet
	partition int
	config    hoplag.Config
	counts    *counts
	out       func(hoplag.Report)

	pairs      map[string]*tracked
	senders    map[string]sender // by subject
	tick       time.Time         // reports are made up to here
	stamp      time.Time         // of the latest record
	arrived    time.Time         // local time when that record arrived
	seq        uint64            // its sequence
	marks      []time.Time       // places in the stream
	saved      time.Time         // when the position was last saved
	unsaved    bool              // a record has come since
	reader     string            // the broker's name for the reader, a new one when it begins anew
	connection uint64            // number of connections before this one
}

// counts covers all workers of a process.
type counts struct {
	records, bytes, refused, reports, restarts, cutOff, missing atomic.Uint64
	behind                                                      sync.Map // records that wait, by partition
}

func (c *counts) lag(partition int, n uint64) { c.behind.Store(partition, n) }

// A tracked is a pair of points.
type tracked struct {
	name   string
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

// A sender is a shard of an end of a pair.
type sender struct {
	pair *tracked
	take func(record []byte) error
}

// A published is what the broker has of a pair's reports.
type published struct {
	sequence uint64 // of the latest message
	number   int64  // of the latest report
}

// A position is how far a partition is. Everything due from the records up to
// number Through, of time Stamp, is published. Whoever continues begins with
// those of the time From.
type position struct {
	From    time.Time
	Through uint64
	Stamp   time.Time
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

// atOnce is how much a reader requests from the broker at once.
var atOnce = jetstream.PullMaxMessagesWithBytesLimit(500, 4<<20)

// warmUp is how much of the stream before the latest reports a pair's state
// depends on: package hoplag waits 10 cuts for what is on its way, and takes
// the clocks' difference from 64 records.
func (w *worker) warmUp() time.Duration { return max(10*time.Second, 100*w.config.Cut) }

// forget returns how long a silent pair is still reported.
func (w *worker) forget() time.Duration { return max(time.Minute, 100*w.config.Cut) }

// run works until the context is done or something is wrong.
func (w *worker) run(ctx context.Context) error {
	w.pairs, w.senders = map[string]*tracked{}, map[string]sender{}
	known, err := w.known(ctx)
	if err != nil {
		return err
	}
	w.connection, w.arrived = w.js.Conn().Stats().Reconnects, time.Now()
	messages, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer messages.Stop()
	for ctx.Err() == nil {
		m, meta, err := w.next(messages)
		if err != nil {
			return err
		}
		if m == nil {
			err = w.rest(ctx, known)
		} else if err = w.check(ctx, meta); err == nil {
			err = w.advance(ctx, meta.Timestamp, known)
			w.take(m, meta)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check checks that the store is whole, if the broker started again to
// deliver: either the broker or the connection to it had gone.
func (w *worker) check(ctx context.Context, meta *jetstream.MsgMetadata) error {
	if meta.Consumer == w.reader {
		return nil
	}
	w.reader = meta.Consumer
	if w.seq == 0 {
		return nil
	}
	return w.inspect(ctx, w.seq, w.stamp)
}

// rest does what there is to do while no record comes.
func (w *worker) rest(ctx context.Context, known map[string]published) error {
	if n := w.js.Conn().Stats().Reconnects; n != w.connection && w.seq > 0 {
		if err := w.inspect(ctx, w.seq, w.stamp); err != nil {
			return err
		}
		w.connection = n
	}
	if w.unsaved {
		if err := w.publish(ctx, known); err != nil {
			return err
		}
		return w.save(ctx)
	}
	silent := time.Since(w.arrived)
	switch now := w.stamp.Add(silent - margin); {
	case silent < margin:
		return nil
	case !w.idle(ctx):
		if silent > patience {
			return errors.New("the broker has records and does not deliver them")
		}
		return nil
	case w.stamp.IsZero() || now.Before(w.tick):
		return nil
	default:
		return w.advance(ctx, now, known)
	}
}

// open begins to read the partition at the saved position.
func (w *worker) open(ctx context.Context) (jetstream.MessagesContext, error) {
	from := jetstream.OrderedConsumerConfig{
		NamePrefix:     fmt.Sprintf("partition-%d-%s", w.partition, rand.Text()[:6]),
		FilterSubjects: []string{fmt.Sprintf("%s%d.>", recordPrefix, w.partition)},
	}
	if e, err := w.positions.Get(ctx, w.key()); err == nil {
		var at position
		if err := json.Unmarshal(e.Value(), &at); err != nil {
			return nil, err
		}
		from.DeliverPolicy, from.OptStartTime = jetstream.DeliverByStartTimePolicy, &at.From
		if err := w.inspect(ctx, at.Through, at.Stamp); err != nil && !errors.Is(err, errDamaged) {
			return nil, err // otherwise it reads what is left
		}
	} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, err
	}
	consumer, err := w.js.OrderedConsumer(ctx, w.records.CachedInfo().Config.Name, from)
	if err != nil {
		return nil, err
	}
	return consumer.Messages(atOnce)
}

// errDamaged means that the broker does not have a record that it had.
var errDamaged = errors.New("the broker's store is damaged")

// inspect checks that the broker still has a record that it had. A broker with
// a damaged store silently gives the free numbers to other records; a reader
// that waits for higher numbers would miss those.
func (w *worker) inspect(ctx context.Context, seq uint64, stamp time.Time) error {
	m, err := w.records.GetMsg(ctx, seq)
	switch {
	case err == nil && m.Time.Equal(stamp):
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	}
	info, err := w.records.Info(ctx)
	if err != nil || m == nil && info.State.FirstSeq > seq && info.State.LastSeq >= seq {
		return err // it was old
	}
	w.counts.cutOff.Add(1 + seq - min(seq, info.State.LastSeq))
	return errDamaged
}

// next returns the next record, or nil after a while.
func (w *worker) next(messages jetstream.MessagesContext) (jetstream.Msg, *jetstream.MsgMetadata, error) {
	wait := 2 * every
	if w.unsaved { // so that it is saved soon, but not more often than without a pause
		wait = max(every-time.Since(w.saved), every/5)
	}
	m, err := messages.Next(jetstream.NextMaxWait(wait))
	if errors.Is(err, nats.ErrTimeout) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	meta, err := m.Metadata()
	return m, meta, err
}

// idle reports whether all records in the broker have been read. Only then
// does time go on without records: if a busy broker is late, others who read
// the same records would make other reports.
func (w *worker) idle(ctx context.Context) bool {
	last, err := w.records.GetLastMsgForSubject(ctx, fmt.Sprintf("%s%d.>", recordPrefix, w.partition))
	return err == nil && last.Sequence <= w.seq || errors.Is(err, jetstream.ErrMsgNotFound)
}

// known returns what was published for each pair.
func (w *worker) known(ctx context.Context) (map[string]published, error) {
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

// take takes a record. It counts and skips one that is not of the fleet's Key
// and Config, so that its sender cannot start a pair.
func (w *worker) take(m jetstream.Msg, meta *jetstream.MsgMetadata) {
	w.stamp, w.arrived, w.seq = meta.Timestamp, time.Now(), meta.Sequence.Stream
	w.unsaved = true
	w.counts.lag(w.partition, meta.NumPending)
	if len(w.marks) == 0 {
		w.marks = append(w.marks, w.stamp)
	}
	w.counts.records.Add(1)
	w.counts.bytes.Add(uint64(len(m.Data())))
	from, ok := w.senders[m.Subject()]
	if !ok {
		from, ok = w.sender(m.Subject())
	}
	if ok {
		from.pair.pair.At(w.stamp)
	}
	if !ok || from.take(m.Data()) != nil {
		w.counts.refused.Add(1)
		return
	}
	from.pair.collect() // now, because many records may have come in no time
	from.pair.latest = w.stamp
	w.pairs[from.pair.name], w.senders[m.Subject()] = from.pair, from
}

// sender returns the sender whose records have a subject, or false if there is
// none.
func (w *worker) sender(subject string) (sender, bool) {
	name := strings.Split(subject, ".")
	if len(name) != 6 || !pairName.MatchString(name[3]) || !pairName.MatchString(name[5]) {
		return sender{}, false
	}
	pair, shard := name[3], name[5]
	t := w.pairs[pair]
	if t == nil {
		p, err := hoplag.NewPair(w.config, pair+".1", pair+".2")
		if err != nil {
			return sender{}, false
		}
		t = &tracked{name: pair, pair: p}
	}
	switch name[4] {
	case "1":
		return sender{t, func(record []byte) error { return t.pair.TakeFirstShard(shard, record) }}, true
	case "2":
		return sender{t, func(record []byte) error { return t.pair.TakeSecondShard(shard, record) }}, true
	}
	return sender{}, false
}

// advance asks all pairs for reports, publishes them and saves the position,
// when it is time by the broker's clock.
func (w *worker) advance(ctx context.Context, now time.Time, known map[string]published) error {
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
			maps.DeleteFunc(w.senders, func(_ string, s sender) bool { return s.pair == t })
		}
	}
	if err := w.publish(ctx, known); err != nil || time.Since(w.saved) < every {
		return err
	}
	return w.save(ctx)
}

// publish publishes what is due and not published, and waits until the broker
// has it.
func (w *worker) publish(ctx context.Context, known map[string]published) error {
	type sent struct {
		t       *tracked
		subject string
		future  jetstream.PubAckFuture
	}
	var all []sent
	for name, t := range w.pairs {
		subject := fmt.Sprintf("%s%d.%s", reportPrefix, w.partition, name)
		k := known[subject]
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
		w.room(ctx)
		future, err := w.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: data}, jetstream.WithExpectLastSequencePerSubject(k.sequence))
		if err != nil {
			return err
		}
		all = append(all, sent{t, subject, future})
	}
	timeout := time.After(5 * time.Second)
	for _, s := range all {
		select {
		case ack := <-s.future.Ok():
			known[s.subject] = published{ack.Sequence, s.t.due[len(s.t.due)-1].Number}
		case err := <-s.future.Err():
			return err
		case <-timeout:
			return errors.New("the broker refuses reports")
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, r := range s.t.due {
			w.out(r)
		}
		w.counts.reports.Add(uint64(len(s.t.due)))
		s.t.due = nil
	}
	return nil
}

// save saves how far the partition is.
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
	data, err := json.Marshal(position{w.marks[0], w.seq, w.stamp})
	if err != nil {
		return err
	}
	w.saved, w.unsaved = time.Now(), false
	_, err = w.positions.Put(ctx, w.key(), data)
	return err
}

// key returns where the partition's position is stored.
func (w *worker) key() string { return fmt.Sprint(w.partition) }
