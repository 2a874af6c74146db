package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// program runs this program to its end.
func program(stdout io.Writer, args ...string) (exit int, stderr string) {
	var text bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), "BROKER_CHILD=1", "HOPLAG_KEY="+testKey)
	c.Stdout, c.Stderr = stdout, &text
	c.Run()
	return c.ProcessState.ExitCode(), text.String()
}

// What is wrong with the command line is told with the value and what it may
// be, and ends the program with 2.
func TestBadFlags(t *testing.T) {
	for line, says := range map[string]string{
		"":                        `-role is missing`,
		"-role nobody":            `-role is "nobody"`,
		"-role broker -key short": "-key has 5 characters, want at least 16",
		"-role broker more":       `argument "more", want flags only`,
		"-role points":            "-url is needed in -role points",
		"-role collector -cut 2m": "-cut is 2m0s, want 1ms to 1m0s",
		"-role points -shards 0":  "-shards is 0, want 1 to 64",
		"-role broker -url x":     `-url is "x", want none`,
		"-role broker -keep 1s":   "-keep is 1s, want 1m0s to 24h0m0s",
		"-nothing":                "-nothing",
	} {
		if exit, text := program(io.Discard, strings.Fields(line)...); exit != 2 || !strings.Contains(text, says) {
			t.Errorf("%q: exit %d, %q; want 2 and %q", line, exit, text, says)
		}
	}
}

// A full disk, or a reader that is gone, ends the program with 1.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	if exit, text := program(full, "-role", "broker"); exit != 1 || !strings.Contains(text, "no space left") {
		t.Errorf("exit %d, %q; want 1", exit, text)
	}
}

// Records of another key, of another cut, under names that are none, and what
// are none, are counted; nobody is followed for them, and those of the fleet
// are collected beside them.
func TestForeignSenders(t *testing.T) {
	t.Parallel()
	b, err := newBroker("127.0.0.1:0", t.TempDir(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	f, o := fleetAt(t, b.url, "-pairs 1 -partitions 1 -duration 3s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	strangers := 0
	send := func(subject string, data []byte) {
		if _, err := f.js.Publish(ctx, recordPrefix+subject, data); err != nil {
			t.Fatal(err)
		}
		strangers++
	}
	for _, c := range []hoplag.Config{
		{Key: hoplag.NewKey("another key of sixteen")}, {Key: hoplag.NewKey(o.key), Cut: 50 * time.Millisecond},
	} {
		p, err := hoplag.NewPoint(c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for record := range p.Records(ctx) {
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
	var totals bytes.Buffer
	if err := f.points(ctx, o, &programs.Rows{W: &totals}); err != nil {
		t.Fatal(err)
	}
	checkAll(t, f, totals.String())
	cancel()
	<-done
	if n := w.refused.Load(); n != uint64(strangers) || len(w.pairs) != 1 {
		t.Errorf("%d records refused, want %d; %d pairs followed, want 1", n, strangers, len(w.pairs))
	}
}
