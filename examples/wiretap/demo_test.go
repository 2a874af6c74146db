//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// newLab returns three namespaces in a row. The one in the middle forwards through a queue (a token bucket):
//
//	sender ── in [router] out, queue ── receiver
func newLab(bandwidth float64) (*programs.Lab, error) {
	return programs.NewLab(3,
		"ip -n {0} link add eth0 address 02:00:00:00:01:01 type veth peer name in netns {1} address 02:00:00:00:01:02",
		"ip -n {2} link add eth0 address 02:00:00:00:02:01 type veth peer name out netns {1} address 02:00:00:00:02:02",
		"ip -n {0} addr add 10.97.1.1/24 dev eth0", "ip -n {1} addr add 10.97.1.2/24 dev in",
		"ip -n {2} addr add 10.97.2.1/24 dev eth0", "ip -n {1} addr add 10.97.2.2/24 dev out",
		"ip -n {0} link set eth0 up", "ip -n {1} link set in up", "ip -n {1} link set out up", "ip -n {2} link set eth0 up",
		"ip -n {0} neigh add 10.97.1.2 lladdr 02:00:00:00:01:02 dev eth0 nud permanent",
		"ip -n {1} neigh add 10.97.2.1 lladdr 02:00:00:00:02:01 dev out nud permanent",
		"ip -n {0} route add default via 10.97.1.2", "ip -n {2} route add default via 10.97.2.2",
		fmt.Sprintf("tc -n {1} qdisc add dev out root tbf rate %.0fkbit burst 20000 limit 80000", bandwidth*1e3),
	)
}

// calm is how long the demo watches before it sends: a point that has just begun does not know yet what is lost.
const calm = 2 * time.Second

// demo measures the lab's queue with the options, while packets of 200 bytes pass at a rate, for two seconds, and a capture
// of them for comparison. It returns the rows, and the totals.
func demo(t *testing.T, o options, rate, bandwidth float64) (rows []row, all totals, truth *truth) {
	t.Helper()
	n, err := newLab(bandwidth)
	if err != nil {
		t.Skipf("no lab: %v", err)
	}
	t.Cleanup(n.Remove)
	o.from = place{namespace: n.Names[1], device: "in"}
	o.to = place{namespace: n.Names[1], device: "out", out: true}
	if o.kernel { // it sees outgoing packets before the queue
		o.to = place{namespace: n.Names[2], device: "eth0"}
	}
	flows := connect(t, n.Names[0], n.Names[2])
	exact := newExact(t, o.from, o.to)
	ctx, finish := context.WithCancel(t.Context())
	defer finish()
	o.ready = func() {
		go func() {
			all.paused = longestPause(ctx, calm)
			sending, stop := context.WithTimeout(ctx, 2*time.Second)
			defer stop()
			go send(sending, flows, rate)
			// The last second is for what is left in the queue.
			all.paused = max(all.paused, longestPause(ctx, 3*time.Second))
			finish()
		}()
	}
	var out bytes.Buffer
	if err := measure(ctx, &o, &output{Rows: programs.Rows{W: &out, JSON: true}, stderr: io.Discard}); err != nil {
		if strings.Contains(err.Error(), "not permitted") || strings.Contains(err.Error(), "not supported") {
			t.Skipf("not here: %v", err)
		}
		t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		var r struct {
			row
			Total *total
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Total != nil {
			all.total = *r.Total
		} else {
			rows = append(rows, r.row)
			t.Log(&r.Report.Forth, r.Names)
		}
	}
	truth = exact.truth(t)
	packets := 0.0
	for _, r := range rows {
		if d := &r.Report.Forth; d.Err == nil {
			n := float64(d.Received)
			packets += n
			all.Mean, all.Low, all.High = all.Mean+n*d.Mean, all.Low+n*d.MeanInterval95.Low, all.High+n*d.MeanInterval95.High
		}
	}
	all.Mean, all.Low, all.High = all.Mean/packets, all.Low/packets, all.High/packets
	t.Logf("sent %d, received %d, missing %d, mean %s; exact: sent %d, received %d, mean %s; paused for %v", all.Sent, all.Received,
		all.Missing, hoplag.Format(all.Mean), truth.Sent, truth.Received, hoplag.Format(truth.Mean), all.paused)
	return rows, all, truth
}

// longestPause sleeps for a given time, and returns the longest time that it got no processor meanwhile.
func longestPause(ctx context.Context, d time.Duration) (longest time.Duration) {
	const nap = 5 * time.Millisecond
	for end := time.Now().Add(d); ctx.Err() == nil && time.Now().Before(end); {
		before := time.Now()
		time.Sleep(nap)
		longest = max(longest, time.Since(before)-nap)
	}
	return longest
}

// totals combine all rows, weighed by packets, and their intervals, of 95 % each,
// as if they were all off in the same direction. A mean of nothing is NaN.
type totals struct {
	total
	Mean, Low, High float64
	paused          time.Duration // the longest
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
func connect(t *testing.T, sender, receiver string) (flows []*net.UDPConn) {
	to := &net.UDPAddr{IP: net.IPv4(10, 97, 2, 1), Port: sinkPort}
	open := func(namespace string, f func() (*net.UDPConn, error)) (c *net.UDPConn) {
		if err := programs.In(namespace, func() (err error) { c, err = f(); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	open(receiver, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", to) })
	for i := range senderFlows {
		from := &net.UDPAddr{Port: firstPort + i}
		flows = append(flows, open(sender, func() (*net.UDPConn, error) { return net.DialUDP("udp4", from, to) }))
	}
	return flows
}

// send sends bursts of 1 to 63 numbered datagrams at exponential intervals; the first flows get the most.
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
