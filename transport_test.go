package hoplag

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// quick is a Config for tests in real time.
var quick = Config{Key: "k", Cut: 10 * time.Millisecond, Report: 50 * time.Millisecond}

func newTestPoint(t *testing.T, c Config, name string) *Point {
	t.Helper()
	c.Name = name
	p, err := NewPoint(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// measure sends messages and follows a from b until a report has a mean.
func measure(t *testing.T, a, b *Point, ask Exchange) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var latest Report
	n := uint64(0)
	for latest = range b.FollowOver(ctx, ask) {
		for range 100 {
			a.PassedNumber(n)
			b.PassedNumber(n)
			n++
		}
		if latest.Forth.Err == nil && latest.From == "a" && latest.Forth.Lost == 0 {
			return
		}
	}
	t.Fatal("no report has a mean, and the last is", latest)
}

func TestServeHTTP(t *testing.T) {
	a := newTestPoint(t, quick, "a")
	server := httptest.NewServer(a)
	defer server.Close()
	measure(t, a, newTestPoint(t, quick, "b"), HTTP(nil, server.URL))

	other := quick
	other.Key = "another"
	stranger := newTestPoint(t, other, "s")
	for r := range stranger.Follow(context.Background(), server.URL) {
		if r.Err == nil {
			t.Errorf("a stranger gets %v", r)
		}
		break
	}
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET gives %s", response.Status)
	}
}

func TestServeConnections(t *testing.T) {
	a := newTestPoint(t, quick, "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- a.Serve(l) }()
	measure(t, a, newTestPoint(t, quick, "b"), Dial("tcp", l.Addr().String()))
	l.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A stranger's connection is closed.
func TestServeConnRefuses(t *testing.T) {
	a := newTestPoint(t, quick, "a")
	for name, message := range map[string][]byte{
		"nothing that is signed": []byte("GET / HTTP/1.1\r\n\r\n........................................................"),
		"too long a message":     {0xff, 0xff, 0xff, 0xff},
		"half a message":         {0, 0, 0, 9, 1},
		"half a length":          {0, 0},
	} {
		client, server := net.Pipe()
		go func() {
			client.Write(message)
			client.Close()
		}()
		if err := a.ServeConn(server); err == nil {
			t.Errorf("%s: no error", name)
		}
		server.Close()
	}
}

// lossy is a socket that loses every third datagram.
type lossy struct {
	net.PacketConn
	random *rand.Rand
}

func (l lossy) WriteTo(b []byte, to net.Addr) (int, error) {
	if l.random.IntN(3) == 0 {
		return len(b), nil
	}
	return l.PacketConn.WriteTo(b, to)
}

func TestServePacket(t *testing.T) {
	a := newTestPoint(t, quick, "a")
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- a.ServePacket(lossy{conn, rand.New(rand.NewPCG(1, 2))}) }()
	ask := Dial("udp", conn.LocalAddr().String())
	measure(t, a, newTestPoint(t, quick, "b"), ask)
	conn.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}

	// Nobody is there.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, newSealerRequest(a)); err == nil || ctx.Err() == nil {
		t.Errorf("error %v", err)
	}
}

func newSealerRequest(p *Point) []byte { return p.seal.request(newRequest(position{})) }

func TestDialReportsNobody(t *testing.T) {
	_, err := Dial("tcp", "127.0.0.1:1")(context.Background(), nil)
	var op *net.OpError
	if !errors.As(err, &op) {
		t.Errorf("error %v", err)
	}
}
