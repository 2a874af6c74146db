package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// A log is what programs write for people, from several goroutines.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// free returns an address that nobody uses.
func free(t testing.TB) string {
	t.Helper()
	l := relay.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// halves runs both halves as their users do, until the context is done, and returns where clients connect, and
// how each half ends. Somebody else may have taken an address that was free, or its port for datagrams, before a
// half does: then it begins anew.
func halves(parent context.Context, t *testing.T, to string, stdout io.Writer, stderr io.Writer) (address string, ends [2]chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(parent)
	t.Cleanup(stop)
	in, out, reports := free(t), free(t), free(t)
	for i, args := range [][]string{
		{"-role", "ingress", "-listen", in, "-to", out, "-reports", reports},
		{"-role", "egress", "-listen", out, "-to", to, "-reports", reports},
	} {
		ends[i] = make(chan error, 1)
		args = append(args, "-key", testKey)
		go func() { ends[i] <- run(ctx, args, stdout, stderr) }()
	}
	for range 3000 {
		up := 0
		for _, address := range []string{in, out, reports} {
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				up++
			}
		}
		if len(ends[0])+len(ends[1]) > 0 {
			stop()
			if err := errors.Join(<-ends[0], <-ends[1]); !errors.Is(err, syscall.EADDRINUSE) {
				t.Fatalf("the halves do not start: %v", err)
			}
			return halves(parent, t, to, stdout, stderr)
		}
		if up == 3 {
			return in, ends
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the halves do not start")
	return "", ends
}

// A full disk does not stop the forwarding: it is reported, and is the error at the end.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := new(log)
	address, ends := halves(ctx, t, echo(t), full, said)
	conn := dialAt(t, "udp", address)
	for range 100 {
		if echoes(conn, 1); said.has("reports cannot be printed") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := echoes(conn, 20); n < 19 || !said.has("no space left") {
		t.Errorf("after the disk is full %d of 20 datagrams come back; told: %v", n, said.has("no space left"))
	}
	cancel()
	if in, out := <-ends[0], <-ends[1]; in != nil || out == nil || !strings.Contains(out.Error(), "no space left") {
		t.Errorf("the halves end with %v and %v", in, out)
	}
}

// When asked to end, both halves accept no new connections, let existing ones finish, and then end.
func TestDrain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, ends := halves(ctx, t, echo(t), io.Discard, io.Discard)
	conn := dialAt(t, "tcp", address)
	say := func(text string) {
		t.Helper()
		io.WriteString(conn, text)
		if _, err := io.ReadFull(conn, make([]byte, len(text))); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	say("before")
	cancel()
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(10 * time.Millisecond)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("somebody new is served")
	}
	say("meanwhile")
	select {
	case err := <-ends[0]:
		t.Errorf("a half ends under a connection: %v", err)
	default:
	}
	began := time.Now()
	conn.Close()
	if in, out := <-ends[0], <-ends[1]; in != nil || out != nil || time.Since(began) > 4*time.Second {
		t.Errorf("the halves end with %v and %v after %v", in, out, time.Since(began))
	}
}
