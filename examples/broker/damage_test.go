package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Where the broker's store was damaged it gives the numbers of lost records to
// others and says nothing. A collector that was there, and one that comes later,
// count the damage and collect what comes after it; a broker that only stopped
// is not blamed.
func TestDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, present := range map[string]bool{"present": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t)
			defer d.stop()
			working, leave := context.WithCancel(d.ctx)
			c := d.collect(working)
			d.waitForReports(c)
			d.broker.close()
			d.restart()
			d.waitForReports(c)
			if n := d.count(c); n != 0 {
				t.Errorf("%d records are missing, and nothing was damaged", n)
			}
			d.waitForPosition()
			if !present {
				leave()
			}
			defer leave()
			d.damage()
			if !present {
				c = d.collect(d.ctx)
			}
			d.waitForReports(c)
			for end := time.Now().Add(30 * time.Second); d.count(c) == 0; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("nobody sees that records are missing: %+v", c.status())
				}
			}
		})
	}
}

// A damaged is a broker, with points at work, to be damaged.
type damaged struct {
	*testing.T
	ctx     context.Context
	stop    context.CancelFunc
	address string
	store   string
	broker  *broker
	fleet   *fleet
	options *options
}

func newDamaged(t *testing.T) *damaged {
	d := &damaged{T: t, address: "127.0.0.1:0", store: t.TempDir()}
	d.ctx, d.stop = context.WithCancel(t.Context())
	d.restart()
	d.address = strings.TrimPrefix(d.broker.url, "nats://")
	line := "-role points -json -cut 20ms -pairs 1 -partitions 1 -duration 5m -key xxxxxxxxxxxxxxxx -url " + d.broker.url
	conn, err := connect(d.broker.url)
	if err == nil {
		t.Cleanup(conn.Close)
		d.options, err = parse(strings.Fields(line), io.Discard)
	}
	if err == nil {
		d.fleet, err = openFleet(d.ctx, conn, d.options)
	}
	if err != nil {
		t.Fatal(err)
	}
	go d.fleet.points(d.ctx, d.options, io.Discard)
	return d
}

func (d *damaged) restart() {
	b, err := newBroker(d.address, d.store)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(b.close)
	d.broker = b
}

func (d *damaged) collect(ctx context.Context) *collector {
	c := newCollector(d.fleet, d.options.config())
	go c.work(ctx, 0)
	return c
}

// count is how many records are known to be missing.
func (d *damaged) count(c *collector) uint64 {
	c.inspect(d.ctx)
	return c.status().Damaged
}

// waitForReports waits until there are reports of what happened from now on.
func (d *damaged) waitForReports(c *collector) {
	d.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		reports, err := d.fleet.since(d.ctx, "pair-0", began)
		if n := len(reports); err == nil && n > 0 && reports[n-1].Start.After(began) && reports[n-1].Forth.Err == nil {
			return
		}
		if time.Since(began) > 60*time.Second {
			d.Fatalf("no reports: %v; status %+v", err, c.status())
		}
	}
}

// waitForPosition waits until whoever comes next would know of all records that
// there are now.
func (d *damaged) waitForPosition() {
	last := d.lastRecord()
	for began := time.Now(); time.Since(began) < 60*time.Second; time.Sleep(50 * time.Millisecond) {
		var at position
		if e, err := d.fleet.positions.Get(d.ctx, "0"); err == nil && json.Unmarshal(e.Value(), &at) == nil && at.Through >= last {
			return
		}
	}
	d.Fatal("no position is written")
}

// damage changes a byte of the records that the stopped broker keeps, and
// starts it again, until it has noticed. Without its index, as when the power
// failed, it reads all records when it starts.
func (d *damaged) damage() {
	messages := filepath.Join(d.store, "jetstream/$G/streams/HOPLAG_RECORDS/msgs")
	block := filepath.Join(messages, "1.blk")
	for range 10 {
		before := d.lastRecord()
		d.broker.close()
		time.Sleep(200 * time.Millisecond) // it may still be writing its index
		data, err := os.ReadFile(block)
		if err != nil {
			d.Fatal(err)
		}
		data[len(data)/3] ^= 0xff
		if err := os.WriteFile(block, data, 0o600); err != nil {
			d.Fatal(err)
		}
		os.Remove(filepath.Join(messages, "index.db"))
		d.restart()
		if d.lastRecord() < before {
			return
		}
	}
	d.Skip("the broker does not notice damage")
}

// lastRecord is the number of the broker's latest record.
func (d *damaged) lastRecord() uint64 {
	for range 100 {
		if info, err := d.fleet.records.Info(d.ctx); err == nil {
			return info.State.LastSeq
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.Fatal("the broker does not answer")
	return 0
}
