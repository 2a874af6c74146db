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
// and two buckets: which collectors are alive, and how far each partition has got.
type fleet struct {
	js                 jetstream.JetStream
	records, reports   jetstream.Stream
	members, positions jetstream.KeyValue
	partitions         int
	config             hoplag.Config // of the points
	log                io.Writer
}

const (
	recordPrefix = "hoplag.record."
	reportPrefix = "hoplag.report."

	// mostPending is how many messages may be on their way to the broker at once; publishing more fails.
	mostPending = 4096

	// memberLife is how long a collector counts as alive after its latest message.
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
	f := &fleet{js: js, partitions: o.partitions, config: o.config(), log: io.Discard}
	open := func(name, prefix string, keep time.Duration) (jetstream.Stream, error) {
		stream, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
				Name: name, Subjects: []string{prefix + ">"}, MaxAge: keep,
				Metadata: map[string]string{"partitions": strconv.Itoa(o.partitions)},
			})
		}
		if err != nil {
			return nil, err
		}
		if had := stream.CachedInfo().Config.Metadata["partitions"]; had != strconv.Itoa(o.partitions) {
			return nil, fmt.Errorf("-partitions is %d, and %s of stream %s: all that share it need the same", o.partitions, had, name)
		}
		return stream, nil
	}
	if f.records, err = open("HOPLAG_RECORDS", recordPrefix, o.keep); err != nil {
		return nil, err
	}
	if f.reports, err = open("HOPLAG_REPORTS", reportPrefix, 24*time.Hour); err != nil {
		return nil, err
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

// publish publishes the records of a point, a shard of one end of a pair, until the context is done
// or the point is closed. It resends what the broker did not acknowledge; in the meantime the point
// keeps the next records, up to Config.History.
func (f *fleet) publish(ctx context.Context, p *hoplag.Point, pair string, end, shard int) {
	subject, failed := f.recordSubject(pair, end, shard), ""
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

// tell logs why something fails, once for each reason, and when it works again.
// It returns the reason, for the next call.
func (f *fleet) tell(what, before string, err error) string {
	if err == nil {
		if before != "" {
			fmt.Fprintf(f.log, "%s works again\n", what)
		}
		return ""
	}
	if err.Error() != before && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(f.log, "%s fails, and is tried again: %v\n", what, err)
	}
	return err.Error()
}

// sleep waits for a time, or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
