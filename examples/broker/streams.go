package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A fleet is what points and collectors share in the broker:
//
//	hoplag.record.PARTITION.PAIR.END.SHARD   records of a shard of one end, 1 or 2, of a pair
//	hoplag.report.PARTITION.PAIR             JSON arrays of reports
//
// and two buckets: which collectors are alive, and how far each partition is.
type fleet struct {
	js                 jetstream.JetStream
	records, reports   jetstream.Stream
	members, positions jetstream.KeyValue
	partitions         int
	log                io.Writer
}

const (
	recordPrefix = "hoplag.record."
	reportPrefix = "hoplag.report."

	// mostPending is how many messages may be on their way to the broker at once:
	// publishing more fails.
	mostPending = 4096

	// memberLife is how long a collector counts as alive after its latest
	// message.
	memberLife = 3 * time.Second
)

// openFleet finds the streams, or makes them.
func openFleet(ctx context.Context, conn *nats.Conn, o *options) (*fleet, error) {
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(mostPending), jetstream.WithPublishAsyncTimeout(5*time.Second))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	f := &fleet{js: js, partitions: o.partitions, log: io.Discard}
	for _, s := range []struct {
		stream *jetstream.Stream
		name   string
		config jetstream.StreamConfig
	}{
		{&f.records, "HOPLAG_RECORDS", jetstream.StreamConfig{Subjects: []string{recordPrefix + ">"}, MaxAge: o.keep}},
		{&f.reports, "HOPLAG_REPORTS", jetstream.StreamConfig{Subjects: []string{reportPrefix + ">"}, MaxAge: 24 * time.Hour}},
	} {
		s.config.Name = s.name
		s.config.Metadata = map[string]string{"partitions": strconv.Itoa(o.partitions)}
		*s.stream, err = js.Stream(ctx, s.name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			*s.stream, err = js.CreateOrUpdateStream(ctx, s.config)
		}
		if err != nil {
			return nil, err
		}
		if had := (*s.stream).CachedInfo().Config.Metadata["partitions"]; had != strconv.Itoa(o.partitions) {
			return nil, fmt.Errorf("-partitions is %d, and %s of stream %s: all that share it need the same", o.partitions, had, s.name)
		}
	}
	if f.members, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "HOPLAG_MEMBERS", TTL: memberLife}); err != nil {
		return nil, err
	}
	f.positions, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "HOPLAG_POSITIONS"})
	return f, err
}

// pairName matches the names that pairs may have: they are parts of subjects.
var pairName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// partition returns where a pair belongs, for good.
func (f *fleet) partition(pair string) int {
	h := fnv.New32a()
	h.Write([]byte(pair))
	return int(h.Sum32() % uint32(f.partitions))
}

func (f *fleet) recordSubject(pair string, end, shard int) string {
	return fmt.Sprintf("%s%d.%s.%d.%d", recordPrefix, f.partition(pair), pair, end, shard)
}

// publish publishes the records of a point, a shard of one end of a pair,
// until the context is done or the point is closed. It sends again what the
// broker did not acknowledge; meanwhile the point keeps Config.History of what
// follows.
func (f *fleet) publish(ctx context.Context, p *hoplag.Point, pair string, end, shard int) {
	subject := f.recordSubject(pair, end, shard)
	failed := ""
	for record := range p.Records(ctx) {
		for ctx.Err() == nil {
			err := f.send(ctx, subject, record)
			if failed = f.tell("publishing "+subject, failed, err); err == nil {
				break
			}
			sleep(ctx, 100*time.Millisecond)
		}
	}
}

// send publishes a record. The broker stores it once, even if it is sent again.
func (f *fleet) send(ctx context.Context, subject string, record []byte) error {
	id := sha256.Sum256(record)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := f.js.Publish(ctx, subject, record, jetstream.WithMsgID(hex.EncodeToString(id[:16])))
	return err
}

// tell says why something fails, once for each reason, and that it works again.
// It returns what was said.
func (f *fleet) tell(what, before string, err error) string {
	switch {
	case err == nil && before != "":
		fmt.Fprintf(f.log, "%s works again\n", what)
	case err != nil && err.Error() != before && !errors.Is(err, context.Canceled):
		fmt.Fprintf(f.log, "%s fails, and is tried again: %v\n", what, err)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// room waits until some messages are no longer on their way.
func (f *fleet) room(ctx context.Context) {
	for f.js.PublishAsyncPending() >= mostPending/2 && ctx.Err() == nil {
		sleep(ctx, time.Millisecond)
	}
}
