package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
)

// Records of another key or another cut, under bad names, and bytes that are no records are counted and
// followed by nobody, while those of the fleet are collected.
func TestForeignSenders(t *testing.T) {
	t.Parallel()
	b := testBroker(t)
	f, o := fleetAt(t, b.url, "-pairs 1 -partitions 1 -duration 3s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	strangers := 0
	send := func(subject string, data []byte) {
		relay.Must(f.js.Publish(ctx, recordPrefix+subject, data))(t)
		strangers++
	}
	for _, c := range []hoplag.Config{
		{Key: hoplag.NewKey("another key of sixteen")}, {Key: hoplag.NewKey(o.key), Cut: 50 * time.Millisecond},
	} {
		for record := range testPoint(t, c).Records(ctx) {
			send("0.pair-0.1.0", record)
			send("0.pair-0.2.0", record)
			send("0.nobody.1.0", record)
			break
		}
	}
	send("0.pair-0.1.0", nil)
	send("0.pair-0.1.0", []byte("no record"))
	send("0.pair-0.3.0", []byte("no end"))
	send("0.pair-0", []byte("no name"))
	w := &worker{collector: newCollector(f), out: func(hoplag.Report) {}}
	done := make(chan error)
	go func() { done <- w.run(ctx) }()
	f.passed(ctx, t, o)
	cancel()
	<-done
	if n := w.refused.Load(); n != uint64(strangers) || len(w.pairs) != 1 {
		t.Errorf("%d records refused, want %d; %d pairs followed, want 1", n, strangers, len(w.pairs))
	}
}

// A program that fails says why, once for each reason, and when it works again.
func TestTell(t *testing.T) {
	var log strings.Builder
	f, said := &fleet{log: &log}, ""
	for _, err := range []error{nil, io.EOF, io.EOF, io.ErrShortWrite, context.Canceled, nil, nil} {
		said = f.tell("it", said, err)
	}
	const want = "it fails, and is tried again: EOF\nit fails, and is tried again: short write\nit works again\n"
	if log.String() != want {
		t.Errorf("said %q, want %q", log.String(), want)
	}
}
