package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/hoplag/hoplag/queue"
)

// An impairment describes how bad the network of the demo is, each way.
type impairment struct {
	rate   int64 // Mbit/s
	delay  time.Duration
	jitter time.Duration // mean of the added random delay
	loss   float64       // fraction of datagrams
}

// A wire is one direction of the demo's network: a queue before a link, in
// real time, and then a delay.
type wire struct {
	impairment
	mu     sync.Mutex
	link   *queue.Link
	random *rand.Rand
	start  time.Time
}

// dialer returns a function that dials over a bad network.
func (i impairment) dialer() (func(network, address string) (net.Conn, error), error) {
	var wires [2]*wire
	for way := range wires {
		link, err := queue.NewLink(queue.LinkConfig{
			Rate: i.rate * 1e6, Queue: queue.QueueConfig{Packets: 200}, Loss: queue.LossConfig{Probability: i.loss}, Seed: uint64(way),
		})
		if err != nil {
			return nil, err
		}
		wires[way] = &wire{impairment: i, link: link, random: rand.New(rand.NewPCG(uint64(way), 1)), start: time.Now()}
	}
	return func(network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		if err != nil {
			return nil, err
		}
		return over(conn, wires[forth], wires[back]), nil
	}, nil
}

// header is the number of bytes that the network adds to those it carries.
const header = 42

// arrival returns when bytes that are sent now arrive, if they do.
func (w *wire) arrival(bytes int) (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	egress, fate := w.link.Send(int64(time.Since(w.start)), bytes+header)
	return w.start.Add(time.Duration(egress) + w.delay + time.Duration(w.random.ExpFloat64()*float64(w.jitter))), fate == queue.Passed
}

// A delivery is something on its way, and when it arrives.
type delivery struct {
	at      time.Time
	deliver func()
}

// A path is one way of a connection over a wire. Datagrams overtake each other;
// of a stream nothing is lost or overtaken.
type path struct {
	wire   *wire
	stream chan delivery // nil for datagrams
}

func newPath(w *wire, stream bool) path {
	if !stream {
		return path{wire: w}
	}
	p := path{w, make(chan delivery, 4096)}
	go func() {
		for d := range p.stream {
			time.Sleep(time.Until(d.at))
			d.deliver()
		}
	}()
	return p
}

// send sends bytes on their way.
func (p path) send(bytes int, deliver func()) {
	switch at, ok := p.wire.arrival(bytes); {
	case p.stream != nil:
		p.stream <- delivery{at, deliver}
	case ok:
		time.AfterFunc(time.Until(at), deliver)
	}
}

// A badConn is a connection over two wires.
type badConn struct {
	net.Conn
	forth path
	come  *io.PipeReader
}

// over makes a connection bad.
func over(c net.Conn, forth, back *wire) net.Conn {
	_, stream := c.(*net.TCPConn)
	come, put := io.Pipe()
	b := &badConn{c, newPath(forth, stream), come}
	go func() {
		buffer := make([]byte, 64<<10)
		for home := newPath(back, stream); ; {
			n, err := c.Read(buffer)
			if err != nil {
				home.send(0, func() { put.CloseWithError(err) })
				return
			}
			got := append([]byte(nil), buffer[:n]...)
			home.send(n, func() { put.Write(got) })
		}
	}()
	return b
}

// Read returns what has arrived: a datagram, or some bytes of a stream.
func (b *badConn) Read(p []byte) (int, error) {
	n, err := b.come.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

// Write sends bytes on their way.
func (b *badConn) Write(p []byte) (int, error) {
	sent := append([]byte(nil), p...)
	b.forth.send(len(p), func() { b.Conn.Write(sent) })
	return len(p), nil
}

// CloseWrite ends a stream once everything written has arrived.
func (b *badConn) CloseWrite() error {
	b.forth.send(0, func() { closeWrite(b.Conn) })
	return nil
}

// Close closes the connection.
func (b *badConn) Close() error {
	b.come.Close()
	return b.Conn.Close()
}
