package main

import (
	"context"
	crypto "crypto/rand"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// The first byte of every datagram says what the rest is.
const (
	data    = iota // a sequence number, and bytes to fill it
	control        // of lda's Sender or Receiver
)

const (
	dataSize = 64
	mtu      = 1400
	linger   = 500 * time.Millisecond // for what is on its way when the source is done
)

// path is the source, the relay and the sink.
type path struct {
	options
	source, relay, sink socket
	sender              *lda.Sender
	receiver            *lda.Receiver
	epoch               time.Time // of the time stamps
	truth               *exact
	rows                []row
	show                func(*row)
}

type socket struct {
	*net.UDPConn
	addr netip.AddrPort
}

// send sends to another socket. An error is as good as a loss.
func (s *socket) send(b []byte, to *socket) { _, _ = s.WriteToUDPAddrPort(b, to.addr) }

// measure returns a row for every interval, and shows each as soon as it is
// known.
func measure(ctx context.Context, opt options, show func(*row)) ([]row, error) {
	p := path{options: opt, epoch: time.Now(), truth: newExact(opt.intervals), show: show}
	for _, s := range []*socket{&p.source, &p.relay, &p.sink} {
		var err error
		if s.UDPConn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return nil, err
		}
		defer s.Close()
		defer context.AfterFunc(ctx, func() { s.Close() })() // whoever reads returns
		_ = s.SetReadBuffer(1 << 20)                         // or as much as the system grants
		bound := s.LocalAddr().(*net.UDPAddr).AddrPort()
		s.addr = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	}
	// A digest in each cell, because nobody promises that UDP keeps the order.
	tuner := lda.Tuner{Config: lda.Config{
		Identity:   hashing.Fingerprint(opt.seed),
		Banks:      [lda.MaxBanks]lda.Bank{{Rows: 128, Shift: 0}, {Rows: 128, Shift: 3}},
		SumBits:    40,
		DigestBits: 16,
	}}
	var err error
	if p.sender, err = lda.NewSender(tuner, uint64(p.epoch.UnixNano()), mtu-1); err != nil {
		return nil, err
	}
	if p.receiver, err = lda.NewReceiver(tuner); err != nil {
		return nil, err
	}
	// Strangers can send to these ports, too: control packets are tagged. Two
	// processes would have to share the key.
	var key [16]byte
	_, _ = crypto.Read(key[:]) // it never fails
	if err := p.sender.SetKey(key); err != nil {
		return nil, err
	}
	p.receiver.SetKey(key)
	var running sync.WaitGroup
	running.Add(2)
	go func() {
		defer running.Done()
		p.runRelay()
	}()
	go func() {
		defer running.Done()
		p.runSource(ctx)
		_ = p.sink.SetReadDeadline(time.Now().Add(linger))
	}()
	p.runSink()
	p.relay.Close()
	running.Wait()
	return p.rows, ctx.Err()
}

// runSource sends all intervals, on a schedule that the seed alone decides: if
// it is late it does not wait.
func (p *path) runSource(ctx context.Context) {
	rng := rand.New(rand.NewPCG(p.seed, 1))
	datagram, frame := make([]byte, dataSize), []byte{control}
	var number uint64
	const phase = 20 * time.Millisecond // of even load, from half of the rate to one and a half
	var due, change time.Duration       // of the next datagram and the next phase
	var gap float64                     // between datagrams, on average
	for i := range p.intervals {
		p.tune()
		frame, _ = p.sender.Start(frame[:1]) // and never out of turn
		p.source.send(frame, &p.relay)
		end := time.Duration(i+1) * p.interval
		for due < end {
			time.Sleep(time.Until(p.epoch.Add(due)))
			if ctx.Err() != nil {
				return
			}
			binary.BigEndian.PutUint64(datagram[1:], number)
			t := int64(time.Since(p.epoch))
			p.truth.sent(i, number, t)
			p.sender.Update(hashing.Digest(p.seed, datagram), t)
			p.source.send(datagram, &p.relay)
			number++
			for ; due >= change; change += phase {
				gap = float64(time.Second) / p.rate / (0.5 + rng.Float64())
			}
			due += time.Duration(gap * rng.ExpFloat64())
		}
		time.Sleep(time.Until(p.epoch.Add(end)))
		frame, _ = p.sender.End(frame[:1])
		p.source.send(frame, &p.relay)
		for part := range p.sender.Parts() {
			frame = append(frame[:1], part...)
			p.source.send(frame, &p.sink)
		}
	}
}

// tune gives the sender what feedback there is.
func (p *path) tune() {
	_ = p.source.SetReadDeadline(time.Now().Add(time.Millisecond))
	buf := make([]byte, mtu)
	for {
		n, _, err := p.source.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if n > 0 && buf[0] == control {
			_ = p.sender.Feedback(buf[1:n]) // what is wrong with it harms nothing
		}
	}
}

// runRelay passes datagrams on, but not all, through a queue of 10 ms that
// drains at 5/4 of the rate.
func (p *path) runRelay() {
	type departure struct {
		at       time.Time
		datagram []byte
	}
	service := time.Duration(float64(time.Second) / (1.25 * p.rate))
	queue := make(chan departure, max(2, 10*time.Millisecond/service))
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for d := range queue {
			time.Sleep(time.Until(d.at))
			p.relay.send(d.datagram, &p.sink)
		}
	}()
	rng := rand.New(rand.NewPCG(p.seed, 2))
	buf := make([]byte, mtu)
	var last time.Time // departure of the last in the queue
	for {
		n, _, err := p.relay.ReadFromUDPAddrPort(buf)
		if err != nil {
			break
		}
		if rng.Float64() < p.loss {
			continue
		}
		at := time.Now()
		if at.Before(last) {
			at = last
		}
		at = at.Add(service)
		select {
		case queue <- departure{at, append([]byte(nil), buf[:n]...)}:
			last = at
		default: // full
		}
	}
	close(queue)
	<-drained
}

// runSink receives until all intervals are reported on, or nothing more comes.
func (p *path) runSink() {
	buf := make([]byte, mtu)
	var reports []lda.Report
	for len(p.rows) < p.intervals {
		n, _, err := p.sink.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return // interrupted
		} else if err != nil {
			break
		}
		t := int64(time.Since(p.epoch))
		switch {
		case n == dataSize && buf[0] == data:
			p.receiver.Update(hashing.Digest(p.seed, buf[:n]), t)
			p.truth.arrived(binary.BigEndian.Uint64(buf[1:]), t)
		case n > 0 && buf[0] == control:
			reports, _ = p.receiver.Receive(buf[1:n], reports[:0]) // what is wrong is in the report
			p.report(reports)
		}
	}
	p.report(p.receiver.Flush(nil))
	p.report([]lda.Report{{Interval: uint64(p.intervals - 1), Err: errSilence}}) // if there are more
}

// report makes a row of each interval, and sends the feedback.
func (p *path) report(reports []lda.Report) {
	for i := range reports {
		r := &reports[i]
		for len(p.rows) < p.intervals && uint64(len(p.rows)) <= r.Interval {
			p.rows = append(p.rows, p.truth.row(len(p.rows), r))
			p.show(&p.rows[len(p.rows)-1])
		}
		if feedback := p.receiver.AppendFeedback([]byte{control}, r); len(feedback) > 1 {
			p.sink.send(feedback, &p.source)
		}
	}
}
