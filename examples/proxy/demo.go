package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"time"
)

// demo runs an echo service, both halves, a bad network between them, and
// clients, all on this machine, and prints what the egress half finds.
func demo(ctx context.Context, o options, rows *rows) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := echo()
	if err != nil {
		return err
	}
	defer server.Close()
	const any = "127.0.0.1:0"
	key := rand.Text()
	egress, err := newHalf(false, key, any, server.Addr().String(), true)
	if err != nil {
		return err
	}
	defer egress.close()
	ingress, err := newHalf(true, key, any, egress.address(), true)
	if err != nil {
		return err
	}
	defer ingress.close()
	if ingress.dial, err = o.impair.dialer(); err != nil {
		return err
	}
	rows.exact = newExact()
	rows.drops = func() map[string]uint64 {
		all := ingress.dropped()
		for name, n := range egress.dropped() {
			all[name] = n
		}
		return all
	}
	ingress.exact, egress.exact = rows.exact, rows.exact
	ingress.start()
	egress.start()
	l, err := net.Listen("tcp", any)
	if err != nil {
		return err
	}
	l.Close()
	answering := o
	answering.page, answering.reports = "", l.Addr().String()
	go ingress.answer(ctx, answering, rows.stderr)
	fmt.Fprintf(rows.stderr, "demo: clients → ingress %s → %d Mbit/s, %v + %v, %g %% loss → egress %s → echo service\n",
		ingress.address(), o.impair.rate, o.impair.delay, o.impair.jitter, 100*o.impair.loss, egress.address())
	for client := range datagramClients {
		go datagrams(ctx, ingress.address(), client)
	}
	go chatter(ctx, ingress.address())
	return egress.follow(ctx, o, ask(answering.reports), rows)
}

// datagramClients is how many of the demo's clients send datagrams, each more
// than the one before; one more sends a stream.
const datagramClients = 8

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

// chatter sends bytes over a connection and reads the echoes.
func chatter(ctx context.Context, address string) {
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

// echo echoes datagrams and streams until its listener is closed.
func echo() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go func() {
		defer p.Close()
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
			if errors.Is(err, net.ErrClosed) {
				return
			}
			p.WriteTo(b[:n], from)
		}
	}()
	return l, nil
}
