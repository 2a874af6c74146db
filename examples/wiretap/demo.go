package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A load is the traffic of the demo, and the queue that it passes.
type load struct {
	rate      float64 // packets a second
	bandwidth float64 // Mbit/s
}

func (l load) check() error {
	switch {
	case !(l.rate >= 100 && l.rate <= 1_000_000):
		return usage("-rate is %v, want 100 to 1000000", l.rate)
	case !(l.bandwidth >= 1 && l.bandwidth <= 10_000):
		return usage("-bandwidth is %v, want 1 to 10000", l.bandwidth)
	}
	return nil
}

// A lab is three namespaces in a row. The one in the middle forwards through a
// queue (a token bucket):
//
//	sender ── in [router] out, queue ── receiver
type lab struct{ sender, router, receiver string }

func newLab(l load) (n *lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("not root: -demo makes network namespaces: run it with sudo")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is missing: install iproute2", tool)
		}
	}
	prefix := fmt.Sprintf("wiretap%d", os.Getpid())
	n = &lab{prefix + "s", prefix + "m", prefix + "r"}
	defer func() {
		if err != nil {
			n.remove()
		}
	}()
	for _, name := range []string{n.sender, n.router, n.receiver} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip netns add: %w: %s", err, strings.TrimSpace(string(out)))
		}
		if err := in(name, settings); err != nil {
			return nil, err
		}
	}
	names := strings.NewReplacer("{S}", n.sender, "{M}", n.router, "{R}", n.receiver)
	for _, line := range []string{
		"ip -n {S} link add eth0 type veth peer name in netns {M}",
		"ip -n {R} link add eth0 type veth peer name out netns {M}",
		"ip -n {S} addr add 10.97.1.1/24 dev eth0", "ip -n {M} addr add 10.97.1.2/24 dev in",
		"ip -n {R} addr add 10.97.2.1/24 dev eth0", "ip -n {M} addr add 10.97.2.2/24 dev out",
		"ip -n {S} link set eth0 up", "ip -n {M} link set in up", "ip -n {M} link set out up", "ip -n {R} link set eth0 up",
		"ip -n {S} route add default via 10.97.1.2", "ip -n {R} route add default via 10.97.2.2",
		fmt.Sprintf("tc -n {M} qdisc add dev out root tbf rate %.0fkbit burst 20000 limit 80000", l.bandwidth*1e3),
	} {
		words := strings.Fields(names.Replace(line))
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return n, nil
}

// settings turns forwarding on, and IPv6 off, because its own messages would
// be counted with the traffic.
func settings() error {
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// remove removes the namespaces with everything in them.
func (n *lab) remove() {
	for _, name := range []string{n.sender, n.router, n.receiver} {
		exec.Command("ip", "netns", "del", name).Run()
	}
}

// calm is how long the demo watches before it sends: a point that has just
// begun does not know yet what is lost.
const calm = 3 * time.Second

// demo measures the lab's queue, with a capture for comparison.
func demo(ctx context.Context, o options, stdout, stderr io.Writer) error {
	n, err := newLab(o.load)
	if err != nil {
		return err
	}
	defer n.remove()
	o.from = place{namespace: n.router, device: "in"}
	o.to = place{namespace: n.router, device: "out", out: true}
	if o.kernel { // it sees outgoing packets before the queue
		o.to = place{namespace: n.receiver, device: "eth0"}
	}
	o.duration = cmp.Or(o.duration, 10*time.Second)
	sender, err := newSender(n)
	if err != nil {
		return err
	}
	defer sender.close()
	exact, err := newExact(o.from, o.to)
	if err != nil {
		return err
	}
	defer exact.close()
	fmt.Fprintf(stderr, "wiretap: %.0f packets a second through a queue of %g Mbit/s, from %v to %v\n",
		o.load.rate, o.load.bandwidth, o.from, o.to)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var sent failures
	length := o.duration
	o.duration += calm + settle // for what is left in the queue
	o.ready = func() {
		go func() {
			pause(sending, calm)
			sending, cancel := context.WithTimeout(sending, length)
			defer cancel()
			sent.add(sender.send(sending, o.load.rate))
		}()
	}
	// When interrupted, it stops sending first.
	measuring, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		pause(measuring, settle)
		end()
	})()
	out := newOutput(stdout, o.json)
	out.truth = exact.truth
	return errors.Join(measure(measuring, &o, out, stderr), sent.take(), exact.failures.take())
}
