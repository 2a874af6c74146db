package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/internal/programs"
)

// The demonstration's network takes this long each way, on average this much longer, and loses this share of
// the datagrams.
const networkDelay, networkJitter, networkLoss = 20 * time.Millisecond, 3 * time.Millisecond, 0.01

// TestDemo runs both halves as their users do, with a bad network between them and clients, and prints reports.
// The exact means of what the network did are in the reports' certain intervals; at most one is outside, loss is
// at most a fifth, and at least half of the lost are named.
func TestDemo(t *testing.T) {
	t.Parallel()
	truth := newTruth()
	ingress, egress := between(t, echo(t), truth.watch, func(h *half) {
		if h.ingress {
			h.to = relay.Datagrams(t, h.to, fate).String()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for client := range 8 {
		go chat(ctx, ingress.accepts.Addr().String(), client)
	}
	reports := relay.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go http.Serve(reports, ingress.point)
	known, outside, lost, named := 0, 0, uint64(0), 0
	out := &lines{test: t, each: func(line string) {
		var r hoplag.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Error(err)
		}
		for way, d := range []hoplag.Traffic{r.Forth, r.Back} {
			exact := truth.mean(way, r.Start, r.Length)
			t.Logf("%s %v; exactly %s; lost: %s", []string{"forth", "back "}[way], d, hoplag.Format(exact), programs.Missing(&d))
			lost, named = lost+d.Lost, named+len(d.Missing)
			if r.Begins || r.Err != nil || d.Err != nil {
				continue
			}
			if known++; exact < d.Certain.Low || exact > d.Certain.High {
				outside++
			}
			if 5*d.Lost > d.Sent {
				t.Errorf("%d of %d are said to be lost", d.Lost, d.Sent)
			}
		}
		if known >= 6 {
			cancel()
		}
	}}
	if err := egress.follow(ctx, options{reports: reports.Addr().String(), json: true}, &programs.Rows{W: out, JSON: true}); err != nil {
		t.Error(err)
	}
	if 2*named < int(lost) { // a machine that is busy with others asks for no names where reports are late
		t.Errorf("%d of %d lost are named", named, lost)
	}
	if known < 6 || outside > 1 {
		t.Errorf("of %d means %d are not where they must be", known, outside)
	}
}

// lines passes on what is written, line by line.
type lines struct {
	test *testing.T
	each func(line string)
}

func (l *lines) Write(b []byte) (int, error) {
	l.each(strings.TrimSpace(string(b)))
	return len(b), nil
}

// chat sends numbered datagrams, a client with a higher number more often, and reads the echoes.
func chat(ctx context.Context, to string, client int) {
	conn, err := net.Dial("udp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	go io.Copy(io.Discard, conn)
	datagram := make([]byte, 200)
	for n := uint64(0); ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(datagram, uint64(client)<<48|n)
		conn.Write(datagram)
		time.Sleep(time.Duration(float64(20*time.Millisecond) / float64(1+client) * rand.ExpFloat64()))
	}
}

// fate returns the fate of a datagram of the demonstration. They overtake each other.
func fate(bool) (delay time.Duration, comes bool) {
	return networkDelay + time.Duration(rand.ExpFloat64()*float64(networkJitter)), rand.Float64() >= networkLoss
}

// A truth remembers every packet from one half to the other, which a point never does.
type truth struct {
	mu       sync.Mutex
	under    [2]map[string]time.Time // sent, by id
	received [2][]received
}

type received struct {
	at   time.Time
	took time.Duration
}

func newTruth() *truth { return &truth{under: [2]map[string]time.Time{{}, {}}} }

// watch watches a half.
func (e *truth) watch(h *half) {
	h.watch = func(way int, at time.Time, id []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if h.leaves(way) {
			e.under[way][string(id)] = at
		} else if sent, ok := e.under[way][string(id)]; ok {
			delete(e.under[way], string(id))
			e.received[way] = append(e.received[way], received{at, at.Sub(sent)})
		}
	}
}

// mean returns the exact mean of what was received in some time.
func (e *truth) mean(way int, from time.Time, d time.Duration) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var m estimate.Moments
	for _, r := range e.received[way] {
		if after := r.at.Sub(from); after >= 0 && after < d {
			m.Add(float64(r.took))
		}
	}
	return m.Mean()
}

// echo echoes datagrams and streams.
func echo(t testing.TB) (address string) { return echoAt(t, "127.0.0.1:0") }

func echoAt(t testing.TB, address string) string {
	address = serverOf(t, address, func(c *net.TCPConn) {
		defer c.Close()
		io.Copy(c, c)
	})
	p := relay.ListenPacket(t, address)
	go func() {
		for b := make([]byte, 64<<10); ; {
			n, from, err := p.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
				return
			}
			p.WriteTo(b[:n], from)
		}
	}()
	return address
}
