// Proxy forwards UDP datagrams and TCP connections in two halves with any network between them, and measures
// that network: delay, loss, the clocks of both halves and the slowest flows, in both directions.
//
//	proxy -role egress  -listen :7001 -to server:80 -reports ingress:7002 -page :8080 -key …
//	proxy -role ingress -listen :7000 -to egress:7001 -reports :7002 -key …
//
// Clients connect to the ingress half, and the egress half to the server; it prints a report a second,
// and serves a live page and /metrics. README.md says the rest, and go test -v -run Demo ./examples/proxy shows it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() {
	debug.SetGCPercent(25) // many small connections: rather a little more work than twice the memory
	programs.Main("proxy", run)
}

// options are the options of the command line.
type options struct {
	role, listen, to, reports, page, key string
	json                                 bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := programs.NewFlags("proxy", "Proxy forwards UDP and TCP in two halves and measures the network between them.", stderr)
	f.Choice(&o.role, "role", "", "`half` to run", "ingress", "egress")
	f.StringVar(&o.listen, "listen", "", "`address` to listen on for datagrams and connections")
	f.StringVar(&o.to, "to", "", "`address` to forward them to")
	f.StringVar(&o.reports, "reports", "", "`address` at which the ingress half answers, and the egress half asks")
	f.StringVar(&o.page, "page", "", "egress half: `address` to serve the live page and /metrics on")
	f.Key(&o.key)
	f.BoolVar(&o.json, "json", false, "print reports as JSON objects, one a line")
	f.Required("role", "listen", "to", "reports", "key")
	return o, f.Parse(args)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	h, err := newHalf(o.role, o.key, o.listen, o.to)
	if err != nil {
		return err
	}
	defer h.close()
	h.log = stderr
	h.start()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		h.drain(10 * time.Second)
		stop()
	})
	fmt.Fprintf(stderr, "forwarding %v to %s, reports at %s\n", h.accepts.Addr(), o.to, o.reports)
	if h.ingress {
		l, err := net.Listen("tcp", o.reports)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: h.point, ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(working, func() { server.Close() })
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return h.follow(working, o, &programs.Rows{W: stdout, JSON: o.json})
}

// follow asks the ingress half, prints its reports, and serves the page. If a report cannot be
// printed, as on a full disk, it continues, and returns that error at the end.
func (h *half) follow(ctx context.Context, o options, rows *programs.Rows) (failed error) {
	view := &programs.View{Drops: func() map[string]uint64 {
		return map[string]uint64{"on the way forth": h.drops[forth].Load(), "on the way back, from the server": h.drops[back].Load()}
	}}
	stop, err := view.Serve(o.page, h.say)
	if err != nil {
		return err
	}
	defer stop()
	for r := range h.point.Follow(ctx, hoplag.HTTP(nil, "http://"+o.reports)) {
		if view.Add(r); o.json {
			rows.Object(r)
		} else {
			rows.Printf("%s  %s, dropped here %d and %d\n%s", r.Start.Format(time.TimeOnly),
				strings.ReplaceAll(r.String(), "; ", "\n          "), h.drops[forth].Load(), h.drops[back].Load(), programs.Lost(&r))
		}
		if rows.Err != nil && failed == nil {
			failed = rows.Err
			h.say("reports cannot be printed, forwarding goes on: %v", failed)
		}
		rows.Err = nil
	}
	return failed
}
