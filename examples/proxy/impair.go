package main

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/hoplag/hoplag/internal/heap"
	"github.com/hoplag/hoplag/queue"
)

// An impairment describes how bad the network of the demo is, each way.
type impairment struct {
	rate   int64 // Mbit/s
	delay  time.Duration
	jitter time.Duration // mean of the added random delay
	loss   float64       // fraction of datagrams
}

func (i impairment) check() error {
	switch {
	case i.rate < 1 || i.rate > 10_000:
		return usage("-rate is %d, want 1 to 10000", i.rate)
	case i.delay < 0 || i.delay > 10*time.Second:
		return usage("-delay is %v, want 0 to 10s", i.delay)
	case i.jitter < 0 || i.jitter > 10*time.Second:
		return usage("-jitter is %v, want 0 to 10s", i.jitter)
	case !(i.loss >= 0 && i.loss <= 1):
		return usage("-loss is %v, want 0 to 1", i.loss)
	}
	return nil
}

// A wire is one direction of the demo's network: a queue before a link, in
// real time, and then a delay.
type wire struct {
	impairment
	mu     sync.Mutex
	link   *queue.Link
	random *rand.Rand
	start  time.Time
	due    heap.Heap[delivery]
	count  uint64
	wake   chan struct{}
}

// A delivery is something on its way, and when it arrives.
type delivery struct {
	at      time.Duration
	seq     uint64
	deliver func()
}

// Before orders deliveries by time.
func (d delivery) Before(e delivery) bool { return d.at < e.at || d.at == e.at && d.seq < e.seq }

// newWire returns a wire that delivers until the channel is closed.
func newWire(i impairment, seed uint64, done <-chan struct{}) (*wire, error) {
	link, err := queue.NewLink(queue.LinkConfig{
		Rate:  i.rate * 1e6,
		Queue: queue.QueueConfig{Packets: 200},
		Loss:  queue.LossConfig{Probability: i.loss},
		Seed:  seed,
	})
	if err != nil {
		return nil, err
	}
	w := &wire{impairment: i, link: link, random: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), wake: make(chan struct{}, 1)}
	go w.run(done)
	return w, nil
}

// send puts bytes on the wire. Nothing of a stream is lost or overtaken: it
// arrives no sooner than after, and send returns when it does.
func (w *wire) send(bytes int, stream bool, after time.Duration, deliver func()) (at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.start)
	egress, fate := w.link.Send(int64(now), bytes)
	if fate != queue.Passed && !stream {
		return 0
	}
	at = time.Duration(egress) + w.delay + time.Duration(w.random.ExpFloat64()*float64(w.jitter))
	if stream {
		at = max(at, after)
	}
	w.count++
	w.due.Push(delivery{at, w.count, deliver})
	if w.due[0].seq == w.count {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return at
}

// run delivers what is due.
func (w *wire) run(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		w.mu.Lock()
		wait := time.Hour
		var now []delivery
		for len(w.due) > 0 {
			if wait = w.due[0].at - time.Since(w.start); wait > 0 {
				break
			}
			now = append(now, w.due.Pop())
		}
		w.mu.Unlock()
		for _, d := range now {
			d.deliver()
		}
		if len(now) > 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.wake:
		case <-done:
			return
		}
	}
}

// A badConn is a connection over two wires.
type badConn struct {
	net.Conn
	stream   bool
	forth    *wire
	last     time.Duration // when the latest bytes written arrive
	received chan []byte
	rest     []byte // of a stream, received and not read yet
	closed   chan struct{}
	once     sync.Once
}

// over makes a connection bad.
func over(c net.Conn, forth, back *wire) net.Conn {
	_, stream := c.(*net.TCPConn)
	b := &badConn{Conn: c, stream: stream, forth: forth, received: make(chan []byte, 4096), closed: make(chan struct{})}
	go b.receive(back)
	return b
}

// Write sends bytes on their way.
func (b *badConn) Write(p []byte) (int, error) {
	sent := append([]byte(nil), p...)
	b.last = b.forth.send(len(p)+header, b.stream, b.last, func() { b.Conn.Write(sent) })
	return len(p), nil
}

// header is the number of bytes that the network adds to those it carries.
const header = 42

// CloseWrite ends a stream once everything written has arrived.
func (b *badConn) CloseWrite() error {
	b.last = b.forth.send(header, true, b.last, func() { b.Conn.(*net.TCPConn).CloseWrite() })
	return nil
}

// receive sends what the other end writes on its way to Read.
func (b *badConn) receive(back *wire) {
	buffer := make([]byte, 64<<10)
	var last time.Duration
	for {
		n, err := b.Conn.Read(buffer)
		got := append([]byte(nil), buffer[:n]...)
		if err != nil {
			back.send(header, true, last, func() { close(b.received) })
			return
		}
		last = max(last, back.send(n+header, b.stream, last, func() {
			select {
			case b.received <- got:
			case <-b.closed:
			}
		}))
	}
}

// Read returns what has arrived: a datagram, or some bytes of a stream.
func (b *badConn) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		select {
		case got, ok := <-b.received:
			if !ok {
				return 0, io.EOF
			}
			b.rest = got
		case <-b.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; !b.stream {
		b.rest = nil
	}
	return n, nil
}

// Close closes the connection.
func (b *badConn) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}
