package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// serverOf runs a TCP server for a test.
func serverOf(t testing.TB, address string, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no server at %s: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

const testKey = "a key of sixteen bytes and more"

// between runs both halves before a server at an address.
func between(t testing.TB, to string, options ...func(*half)) (ingress, egress *half) {
	t.Helper()
	any := "127.0.0.1:0"
	if strings.HasPrefix(to, "[") {
		any = "[::1]:0"
	}
	make := func(role, to string) *half {
		h := relay.Must(newHalf(role, testKey, any, to))(t)
		t.Cleanup(h.close)
		for _, option := range options {
			option(h)
		}
		return h
	}
	egress = make("egress", to)
	ingress = make("ingress", egress.accepts.Addr().String())
	ingress.start()
	egress.start()
	return ingress, egress
}

func dialTo(t testing.TB, network string, h *half) net.Conn {
	t.Helper()
	return dialAt(t, network, h.accepts.Addr().String())
}

func dialAt(t testing.TB, network, address string) net.Conn {
	t.Helper()
	conn := relay.Must(net.Dial(network, address))(t)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// trip sends a text, ends what it sends, and checks what comes back until the other end does.
func trip(t *testing.T, conn net.Conn, text, want string) {
	t.Helper()
	io.WriteString(conn, text)
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != want {
		t.Errorf("%q came back, %v, want %q", got, err, want)
	}
}

// echoes counts how many of some datagrams come back.
func echoes(conn net.Conn, datagrams int) (n int) {
	b := make([]byte, 100)
	for i := range datagrams {
		fmt.Fprintf(conn, "datagram %d", i)
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := conn.Read(b); err == nil {
			n++
		}
	}
	return n
}

// A listener that fails for a while, as when files run out, accepts everybody who connects afterwards.
type failing struct {
	net.Listener
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptGoesOn(t *testing.T) {
	said := new(log)
	ingress, _ := between(t, echo(t), func(h *half) {
		f := &failing{Listener: h.accepts}
		f.left.Store(3)
		h.accepts, h.log = f, said
	})
	trip(t, dialTo(t, "tcp", ingress), "hello", "hello")
	if !said.has("too many open files") {
		t.Error("nothing is said about it")
	}
}

// When the far half restarts, datagrams are forwarded as before.
func TestFarHalfRestarts(t *testing.T) {
	t.Parallel()
	server := echo(t)
	ingress, egress := between(t, server)
	conn := dialTo(t, "udp", ingress)
	if n := echoes(conn, 100); n < 99 {
		t.Fatalf("%d of 100 datagrams come back", n)
	}
	egress.packets.Close()
	egress.accepts.Close()
	echoes(conn, 1) // refused
	again := relay.Must(newHalf("egress", testKey, egress.accepts.Addr().String(), server))(t)
	defer again.close()
	again.start()
	if n := echoes(conn, 200); n < 198 {
		t.Errorf("%d of 200 datagrams come back through a half that was started again", n)
	}
}

// A peer that only listens is not idle.
func TestStreamingServer(t *testing.T) {
	t.Parallel()
	server := relay.ListenPacket(t, "127.0.0.1:0")
	go func() {
		_, from, err := server.ReadFrom(make([]byte, 100))
		for ; err == nil; time.Sleep(20 * time.Millisecond) {
			_, err = server.WriteTo([]byte("news"), from)
		}
	}()
	ingress, egress := between(t, server.LocalAddr().String(), func(h *half) { h.idle = time.Second })
	conn := dialTo(t, "udp", ingress)
	io.WriteString(conn, "subscribe")
	for range 75 {
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			t.Fatalf("cut off: %v", err)
		}
	}
	server.Close()
	for range 500 { // then it is idle
		time.Sleep(20 * time.Millisecond)
		ingress.mu.Lock()
		egress.mu.Lock()
		left := len(ingress.peers) + len(egress.peers)
		egress.mu.Unlock()
		ingress.mu.Unlock()
		if left == 0 {
			return
		}
	}
	t.Error("a silent peer is kept")
}

// Either side may end what it sends, and continue to receive.
func TestHalfClose(t *testing.T) {
	const text = "what was sent before the end"
	to := serverOf(t, "127.0.0.1:0", func(c *net.TCPConn) {
		defer c.Close()
		all, _ := io.ReadAll(c) // ends with the client's half
		c.Write(all)
	})
	ingress, _ := between(t, to)
	trip(t, dialTo(t, "tcp", ingress), text, text)
	heard := make(chan string, 1)
	to = serverOf(t, "127.0.0.1:0", func(c *net.TCPConn) {
		defer c.Close()
		c.CloseWrite()
		all, _ := io.ReadAll(c)
		heard <- string(all)
	})
	ingress, _ = between(t, to)
	conn := dialTo(t, "tcp", ingress)
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("%q, %v, want an end", got, err)
	}
	io.WriteString(conn, text)
	conn.(*net.TCPConn).CloseWrite()
	if got := <-heard; got != text {
		t.Errorf("the server heard %q", got)
	}
}

// A slow reader gets everything, and holds up nobody else.
func TestSlowReader(t *testing.T) {
	data := make([]byte, 16<<20)
	rand.New(rand.NewSource(1)).Read(data)
	to := serverOf(t, "127.0.0.1:0", func(c *net.TCPConn) {
		defer c.Close()
		c.Write(data)
	})
	ingress, _ := between(t, to)
	slow := dialTo(t, "tcp", ingress)
	time.Sleep(200 * time.Millisecond) // everything fills
	for i, conn := range []net.Conn{dialTo(t, "tcp", ingress), slow} {
		if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", []string{"beside a slow reader", "a slow reader"}[i], len(got), err)
		}
	}
}

// What a reset discards was not lost between the halves: each piece that left one arrived at the other. The
// other end learns that the connection broke.
func TestReset(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"server", "client"} {
		servers := make(chan *net.TCPConn, 1)
		to := serverOf(t, "127.0.0.1:0", func(c *net.TCPConn) {
			servers <- c
			io.Copy(c, io.LimitReader(c, 1<<20)) // reads some, and no more
		})
		truth := newTruth()
		ingress, egress := between(t, to, truth.watch, func(h *half) { h.stall = time.Second })
		client := dialTo(t, "tcp", ingress).(*net.TCPConn)
		failed := make(chan error, 1)
		go func() {
			_, err := io.Copy(client, rand.New(rand.NewSource(1)))
			failed <- err
		}()
		time.Sleep(300 * time.Millisecond) // all queues fill
		reset(map[string]*net.TCPConn{"server": <-servers, "client": client}[name])
		if err := <-failed; err == nil {
			t.Errorf("%s: the client may still write", name)
		}
		if !ingress.drain(10*time.Second) || !egress.drain(10*time.Second) {
			t.Fatalf("%s: a connection does not end", name)
		}
		for way := range truth.under {
			if n := len(truth.under[way]); n > 0 {
				t.Errorf("%s: %d pieces left and did not arrive, way %d", name, n, way)
			}
		}
		if len(truth.received[forth]) == 0 {
			t.Errorf("%s: nothing was measured", name)
		}
	}
}

// A half that dies breaks its connections, which must not look like their end.
func TestHalfDies(t *testing.T) {
	to := serverOf(t, "127.0.0.1:0", func(c *net.TCPConn) { io.WriteString(c, "half of the ans") })
	ingress, egress := between(t, to)
	conn := dialTo(t, "tcp", ingress)
	relay.Must(io.ReadFull(conn, make([]byte, 15)))(t)
	egress.mu.Lock()
	for s := range egress.conns {
		reset(s.inner)
	}
	egress.mu.Unlock()
	if _, err := io.ReadAll(conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v", err)
	}
}

// IPv6 is forwarded like IPv4.
func TestIPv6(t *testing.T) {
	ingress, _ := between(t, echoAt(t, "[::1]:0"))
	if n := echoes(dialTo(t, "udp", ingress), 20); n < 19 {
		t.Errorf("%d of 20 datagrams come back", n)
	}
	trip(t, dialTo(t, "tcp", ingress), "hello", "hello")
}
