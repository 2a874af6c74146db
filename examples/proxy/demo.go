package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"time"
)

// demo runs an echo service, both halves, a bad network between them, and
// clients, all on this machine, and prints what the egress half finds.
func demo(ctx context.Context, o options, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := echo()
	if err != nil {
		return err
	}
	defer server.close()
	forth, err := newWire(o.impair, 1, ctx.Done())
	if err != nil {
		return err
	}
	back, err := newWire(o.impair, 2, ctx.Done())
	if err != nil {
		return err
	}
	const any = "127.0.0.1:0"
	key := rand.Text()
	egress, err := newHalf(false, key, any, server.address())
	if err != nil {
		return err
	}
	defer egress.close()
	ingress, err := newHalf(true, key, any, egress.address())
	if err != nil {
		return err
	}
	defer ingress.close()
	ingress.dial = func(network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		if err != nil {
			return nil, err
		}
		return over(conn, forth, back), nil
	}
	for _, h := range []*half{ingress, egress} {
		if err := h.measureClasses(key); err != nil {
			return err
		}
	}
	truth := newExact()
	ingress.exact, egress.exact = truth, truth
	ingress.start()
	egress.start()
	l, err := net.Listen("tcp", any)
	if err != nil {
		return err
	}
	defer l.Close()
	go ingress.answer(l)
	fmt.Fprintf(stderr, "demo: clients → ingress %s → %d Mbit/s, %v + %v, %g %% loss → egress %s → echo service\n",
		ingress.address(), o.impair.rate, o.impair.delay, o.impair.jitter, 100*o.impair.loss, egress.address())
	for client := range datagramClients {
		go datagrams(ctx, ingress.address(), client)
	}
	for range streamClients {
		go stream(ctx, ingress.address())
	}
	return egress.report(ctx, ask(l.Addr().String()), o, truth, stdout, stderr)
}

// The demo's clients: some send datagrams, each client more than the one
// before, and one sends a stream.
const (
	datagramClients = 8
	streamClients   = 1
)

// datagrams sends numbered datagrams and reads the echoes.
func datagrams(ctx context.Context, address string, client int) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	go io.Copy(io.Discard, conn)
	datagram := make([]byte, 200)
	for n := uint64(0); ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(datagram, uint64(client)<<48|n)
		conn.Write(datagram)
		time.Sleep(time.Duration(float64(20*time.Millisecond) / float64(1+client) * mathrand.ExpFloat64()))
	}
}

// stream sends bytes over a connection and reads the echoes.
func stream(ctx context.Context, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	go io.Copy(io.Discard, conn)
	for ctx.Err() == nil {
		conn.Write(make([]byte, 1000))
		time.Sleep(5 * time.Millisecond)
	}
}

// A service echoes datagrams and streams.
type service struct {
	packets net.PacketConn
	streams net.Listener
}

func echo() (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		l.Close()
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			p.WriteTo(b[:n], from)
		}
	}()
	return &service{p, l}, nil
}

func (s *service) address() string { return s.streams.Addr().String() }

func (s *service) close() {
	s.packets.Close()
	s.streams.Close()
}
