package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// until runs the demo and hands each line that it prints to enough, until that
// says so.
func until(t *testing.T, enough func(line string) bool, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, w, io.Discard) }()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var all strings.Builder
	for lines.Scan() {
		if all.WriteString(lines.Text() + "\n"); enough(lines.Text()) {
			cancel()
			r.Close()
			<-done
			return
		}
		if ctx.Err() != nil {
			break
		}
	}
	t.Errorf("not in a minute:\n%s", all.String())
}

// The demo measures both ways at once, finds the clocks, and its means are
// those of the impairment.
func TestDemo(t *testing.T) {
	t.Parallel()
	until(t, func(line string) bool {
		var r hoplag.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Forth.Err != nil || r.Back.Err != nil || !r.Clock.Known {
			return false
		}
		for _, d := range []hoplag.Delay{r.Forth, r.Back} {
			if low := 15e6; d.Certain.High < low || d.Mean < low || d.Mean > 10e9 {
				t.Errorf("mean %s of a delay of 20 ms and more: %v", hoplag.Format(d.Mean), r)
			}
		}
		return true
	}, "-demo", "-json", "-loss", "0", "-jitter", "1ms", "-rate", "100")
}

// After some seconds the memory that the demo holds grows no more than its
// history does. Ten minutes of it are in the program's documentation.
func TestShortSoak(t *testing.T) {
	var held [2]uint64
	rows := 0
	until(t, func(string) bool {
		rows++
		if i := rows/2 - 1; rows%2 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			held[i] = m.HeapAlloc
		}
		return rows == 4
	}, "-demo", "-json")
	t.Logf("%d MB held after 2 rows, %d after 4", held[0]>>20, held[1]>>20)
	if held[1] > held[0]+held[0]/4+16<<20 {
		t.Errorf("%d bytes are held after 2 rows, %d after 4", held[0], held[1])
	}
}

// Rows for people have the exact answer beside.
func TestDemoRows(t *testing.T) {
	t.Parallel()
	heading := false
	until(t, func(line string) bool {
		heading = heading || strings.Contains(line, "exact mean")
		return heading && strings.Contains(line, "forth") && strings.Contains(line, " %")
	}, "-demo")
}

// pair runs an echo service and both halves before it.
func pair(t testing.TB, options ...func(*half)) (ingress, egress *half) {
	server, err := echo()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	const key = "a key of sixteen bytes and more"
	if egress, err = newHalf(false, key, "127.0.0.1:0", server.Addr().String(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(egress.close)
	if ingress, err = newHalf(true, key, "127.0.0.1:0", egress.address(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ingress.close)
	for _, option := range options {
		option(ingress)
		option(egress)
	}
	ingress.start()
	egress.start()
	return ingress, egress
}

// What goes in comes back, through both halves: datagrams and streams with
// their ends.
func TestForward(t *testing.T) {
	ingress, _ := pair(t)
	udp, err := net.Dial("udp", ingress.address())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	b := make([]byte, 100)
	for try := range 100 {
		udp.SetDeadline(time.Now().Add(time.Second))
		fmt.Fprintf(udp, "datagram %d", try)
		if n, err := udp.Read(b); err == nil && strings.HasPrefix(string(b[:n]), "datagram ") {
			break
		} else if try == 99 {
			t.Errorf("no datagram came back: %v", err)
		}
	}
	tcp, err := net.Dial("tcp", ingress.address())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	text := strings.Repeat("a stream of bytes ", 10_000)
	go func() {
		io.WriteString(tcp, text)
		tcp.(*net.TCPConn).CloseWrite()
	}()
	if got, err := io.ReadAll(tcp); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d came back, error %v", len(got), len(text), err)
	}
}

// Strangers are ignored, and counted.
func TestStrangers(t *testing.T) {
	ingress, _ := pair(t, func(h *half) { h.only = netip.MustParsePrefix("192.0.2.0/24") })
	udp, err := net.Dial("udp", ingress.address())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	io.WriteString(udp, "let me in")
	tcp, err := net.Dial("tcp", ingress.address())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	if n, err := tcp.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a stranger's connection has an answer: %d bytes", n)
	}
	for range 100 {
		if ingress.strangers.Load() == 2 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d strangers, want 2", ingress.strangers.Load())
}

func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`-role is ""`:              {},
		`-role is "middle"`:        {"-role", "middle"},
		`-listen is "x"`:           {"-role", "egress", "-listen", "x", "-to", "a:1", "-reports", "a:2"},
		"-key has 5 characters":    {"-role", "egress", "-listen", ":1", "-to", "a:1", "-reports", "a:2", "-key", "short"},
		"-key is missing":          {"-role", "egress", "-listen", ":1", "-to", "a:1", "-reports", "a:2"},
		`value "x" for flag -only`: {"-role", "egress", "-listen", ":1", "-to", "a:1", "-reports", "a:2", "-only", "x"},
		"-loss is 2":               {"-demo", "-loss", "2"},
		"-rate is 0":               {"-demo", "-rate", "0"},
		"-delay is 1m0s":           {"-demo", "-delay", "1m"},
		`argument "x"`:             {"-demo", "x"},
		"flag provided but not":    {"-x"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, programs.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: error %v", err)
	}
}

// The reports come over one connection that only the key opens.
func TestReportsAreAuthenticated(t *testing.T) {
	t.Parallel()
	ingress, _ := pair(t)
	stranger, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey("another key of sixteen bytes")})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	page := httptest.NewServer(ingress.points[all])
	defer page.Close()
	failed := false
	for r := range stranger.Follow(t.Context(), page.URL) {
		failed = r.Err != nil
		break
	}
	if !failed {
		t.Error("a stranger is answered")
	}
}
