// Proxy forwards UDP datagrams and TCP connections in two halves with any
// network between them, and measures that network: delay, loss, the clocks of
// both halves and the slowest flows, in both directions.
//
//	go run ./examples/proxy -demo                    # everything on this machine, beside the exact answer
//
//	proxy -role egress  -listen :7001 -to server:80 -reports ingress:7002 -page :8080 -key …
//	proxy -role ingress -listen :7000 -to egress:7001 -reports :7002 -key …
//
// Clients connect to the ingress half, which forwards to the egress half,
// which forwards to the server. The egress half asks the ingress half for its
// counters over one authenticated connection, prints a row a second, and serves
// a live page and /metrics for Prometheus. README.md says what counts as a
// packet, what happens when something fails, and what it costs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() {
	debug.SetGCPercent(50) // many small connections: rather a little more work than twice the memory
	programs.Main("proxy", run)
}

// options are the options of the command line.
type options struct {
	role, listen, to, reports, page, key string
	demo, json, classes                  bool
	duration, drain                      time.Duration
	only                                 netip.Prefix
	impair                               impairment
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := programs.NewFlags("proxy", "Proxy forwards UDP and TCP in two halves and measures the network between them.", stderr)
	f.StringVar(&o.role, "role", "", "`half` to run: ingress or egress")
	f.StringVar(&o.listen, "listen", "", "`address` to listen on for datagrams and connections")
	f.StringVar(&o.to, "to", "", "`address` to forward them to")
	f.StringVar(&o.reports, "reports", "", "`address` at which the ingress half answers, and the egress half asks")
	f.StringVar(&o.page, "page", "", "`address` to serve the live page and /metrics on")
	f.Key(&o.key)
	f.TextVar(&o.only, "only", netip.Prefix{}, "serve only these `addresses`, as in 10.0.0.0/8: others are ignored and counted")
	f.BoolVar(&o.demo, "demo", false, "run both halves, a bad network between them, and traffic")
	f.BoolVar(&o.classes, "classes", false, "measure UDP and TCP apart as well; both halves need it (demo: always)")
	f.BoolVar(&o.json, "json", false, "print a report as a JSON object a second")
	programs.Range(f, &o.duration, "duration", 0, time.Millisecond, 1e6*time.Hour, "end after this `time`; 0 means never")
	programs.Range(f, &o.drain, "drain", 10*time.Second, 0, time.Hour, "at the end, `time` for connections to end by themselves")
	programs.Range(f, &o.impair.rate, "rate", 20, 1, 10_000, "demo: bandwidth in `Mbit/s`")
	programs.Range(f, &o.impair.delay, "delay", 20*time.Millisecond, 0, 10*time.Second, "demo: smallest delay, each way")
	programs.Range(f, &o.impair.jitter, "jitter", 3*time.Millisecond, 0, 10*time.Second,
		"demo: mean of a further random delay; datagrams overtake each other")
	programs.Range(f, &o.impair.loss, "loss", 0.01, 0, 1, "demo: `fraction` of datagrams lost")
	f.Check(o.check)
	return o, f.Parse(args)
}

// check reports what is missing.
func (o *options) check() error {
	if o.demo {
		if o.role != "" {
			return programs.Usage("-role is %q, want none with -demo", o.role)
		}
		return nil
	}
	if o.role != "ingress" && o.role != "egress" {
		return programs.Usage("-role is %q, want ingress or egress, or -demo", o.role)
	}
	for _, needed := range []struct{ name, value string }{{"-listen", o.listen}, {"-to", o.to}, {"-reports", o.reports}} {
		if _, _, err := net.SplitHostPort(needed.value); err != nil {
			return programs.Usage("%s is %q, want host:port", needed.name, needed.value)
		}
	}
	if o.key == "" {
		return programs.Usage("-key is missing: both halves need the same")
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	rows := &rows{Rows: programs.Rows{W: stdout, JSON: o.json}, stderr: stderr}
	if o.demo {
		return demo(ctx, o, rows)
	}
	h, err := newHalf(o.role == "ingress", o.key, o.listen, o.to, o.classes)
	if err != nil {
		return err
	}
	defer h.close()
	h.only, h.log = o.only, stderr
	h.start()
	defer func() {
		if n := h.strangers.Load(); n > 0 {
			fmt.Fprintf(stderr, "ignored %d datagrams and connections that are not from %v\n", n, o.only)
		}
	}()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		h.drain(o.drain)
		stop()
	})
	fmt.Fprintf(stderr, "forwarding %s to %s, reports at %s\n", h.address(), o.to, o.reports)
	if h.ingress {
		return h.answer(working, o, stderr)
	}
	return h.follow(working, o, ask(o.reports), rows)
}

// answer answers the other half's requests until the context is done: those
// for all packets at /, and those for a class at its name.
func (h *half) answer(ctx context.Context, o options, stderr io.Writer) error {
	view := &programs.View{Drops: h.dropped}
	if err := show(ctx, view, o.page, stderr); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", h.points[all])
	for class, p := range h.points[1:] {
		if p != nil {
			mux.Handle("/"+classNames[1+class], p)
		}
	}
	l, err := net.Listen("tcp", o.reports)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ask returns functions that ask the other half, all over one connection in
// turns.
func ask(reports string) func(path string) hoplag.Exchange {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	return func(path string) hoplag.Exchange { return hoplag.HTTP(client, "http://"+reports+"/"+path) }
}

// show serves the page, if there is to be one, until the context is done.
func show(ctx context.Context, v *programs.View, address string, stderr io.Writer) error {
	if address == "" {
		return nil
	}
	server, url, err := v.Serve(address)
	if err == nil {
		fmt.Fprintf(stderr, "live page at %s, metrics at %smetrics\n", url, url)
		context.AfterFunc(ctx, func() { server.Close() })
	}
	return err
}

// follow prints what the egress half finds, a row a second, and serves the
// page. If rows cannot be printed, it goes on and ends with that error; only the
// demo ends at once.
func (h *half) follow(ctx context.Context, o options, ask func(path string) hoplag.Exchange, rows *rows) error {
	view := &programs.View{Drops: rows.drops}
	if view.Drops == nil {
		view.Drops, rows.drops = h.dropped, h.dropped
	}
	if err := show(ctx, view, o.page, rows.stderr); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for class, p := range h.points[1:] {
		if p != nil {
			all.Go(func() {
				for r := range p.FollowOver(ctx, ask(classNames[1+class])) {
					view.Add(r)
				}
			})
		}
	}
	for r := range h.points[0].FollowOver(ctx, ask("")) {
		view.Add(r)
		if rows.add(r); rows.Err != nil && o.demo {
			break
		}
		rows.recover()
	}
	return errors.Join(rows.failed, rows.Err)
}
