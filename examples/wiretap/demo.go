//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/hoplag/hoplag/internal/programs"
)

// newLab returns three namespaces in a row. The one in the middle forwards
// through a queue (a token bucket):
//
//	sender ── in [router] out, queue ── receiver
func newLab(bandwidth float64) (*programs.Lab, error) {
	return programs.NewLab(3,
		"ip -n {0} link add eth0 type veth peer name in netns {1}",
		"ip -n {2} link add eth0 type veth peer name out netns {1}",
		"ip -n {0} addr add 10.97.1.1/24 dev eth0", "ip -n {1} addr add 10.97.1.2/24 dev in",
		"ip -n {2} addr add 10.97.2.1/24 dev eth0", "ip -n {1} addr add 10.97.2.2/24 dev out",
		"ip -n {0} link set eth0 up", "ip -n {1} link set in up", "ip -n {1} link set out up", "ip -n {2} link set eth0 up",
		"ip -n {0} route add default via 10.97.1.2", "ip -n {2} route add default via 10.97.2.2",
		fmt.Sprintf("tc -n {1} qdisc add dev out root tbf rate %.0fkbit burst 20000 limit 80000", bandwidth*1e3),
	)
}

// calm is how long the demo watches before it sends: a point that has just
// begun does not know yet what is lost.
const calm = 2 * time.Second

// demo measures the lab's queue, with a capture for comparison.
func demo(ctx context.Context, o options, out *output) error {
	n, err := newLab(o.bandwidth)
	if err != nil {
		return err
	}
	defer n.Remove()
	o.from = place{namespace: n.Names[1], device: "in"}
	o.to = place{namespace: n.Names[1], device: "out", out: true}
	if o.kernel { // it sees outgoing packets before the queue
		o.to = place{namespace: n.Names[2], device: "eth0"}
	}
	o.duration = cmp.Or(o.duration, 10*time.Second)
	flows, sink, err := connect(n.Names[0], n.Names[2])
	if err != nil {
		return err
	}
	defer sink.Close()
	exact, err := newExact(o.from, o.to)
	if err != nil {
		return err
	}
	defer exact.close()
	out.truth = exact.truth
	out.say("%.0f packets a second through a queue of %g Mbit/s, from %v to %v", o.rate, o.bandwidth, o.from, o.to)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	length := o.duration
	o.duration += calm + settle // for what is left in the queue
	o.ready = func() {
		go func() {
			pause(sending, calm)
			sending, cancel := context.WithTimeout(sending, length)
			defer cancel()
			send(sending, flows, o.rate)
		}()
	}
	// When interrupted, it stops sending first.
	measuring, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		pause(measuring, settle)
		end()
	})()
	return measure(measuring, &o, out)
}

const (
	senderFlows = 8
	sinkPort    = 7000
	firstPort   = 7001 // of the flows
	maxBurst    = 63
	payload     = 200 - 20 - 8
)

// connect opens a socket for each flow, and one for all to end at. Nobody reads
// from that, so it does not matter that the datagrams are dropped there.
func connect(sender, receiver string) (flows []*net.UDPConn, sink *net.UDPConn, err error) {
	to := &net.UDPAddr{IP: net.IPv4(10, 97, 2, 1), Port: sinkPort}
	if err := programs.In(receiver, func() (err error) { sink, err = net.ListenUDP("udp4", to); return err }); err != nil {
		return nil, nil, err
	}
	err = programs.In(sender, func() error {
		for i := range senderFlows {
			c, err := net.DialUDP("udp4", &net.UDPAddr{Port: firstPort + i}, to)
			if err != nil {
				return err
			}
			flows = append(flows, c)
		}
		// The first one makes the neighbours known to each other, before anybody
		// watches.
		_, err := flows[0].Write(make([]byte, payload))
		time.Sleep(200 * time.Millisecond)
		return err
	})
	return flows, sink, err
}

// send sends bursts of 1 to 63 numbered datagrams at exponential distances; the
// first flows get the most.
func send(ctx context.Context, flows []*net.UDPConn, rate float64) {
	const behind = 100 * time.Millisecond // do not make up for what a busy machine delayed by more than this
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	datagram, number := make([]byte, payload), uint64(0)
	for next := time.Now(); ctx.Err() == nil; {
		time.Sleep(time.Until(next))
		n := 1 + random.IntN(maxBurst)
		for range n {
			number++
			binary.BigEndian.PutUint64(datagram, number)
			flows[min(random.IntN(senderFlows), random.IntN(senderFlows))].Write(datagram)
		}
		next = next.Add(time.Duration(float64(n) / rate * random.ExpFloat64() * float64(time.Second)))
		if least := time.Now().Add(-behind); next.Before(least) {
			next = least
		}
	}
}

// A truth is what a capture says about all packets, or about a flow.
type truth struct {
	Flow           string `json:",omitempty"`
	Sent, Received int
	Dropped        uint64   // by the capture's own rings
	Mean           *float64 // of the delays
	Flows          []truth  `json:",omitempty"`

	sum     float64
	matched int
}

func (t *truth) match(delay float64, n int) {
	t.sum += delay
	if t.matched += n; t.matched > 0 {
		t.Mean = programs.Finite(t.sum / float64(t.matched))
	}
}
