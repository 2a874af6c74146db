// Colate records real packets at two points, keeps what it recorded in two
// directories, and answers later how long the packets of any one flow took.
//
//	go run ./examples/colate                       # all of it, over the captures that ship
//	go run ./examples/colate record -dir kept      # record, and keep
//	go run ./examples/colate list -dir kept        # the flows there were
//	go run ./examples/colate query -dir kept -flow "tcp 10.0.0.1:80 10.0.0.2:1234"
//	go run ./examples/colate rank -dir kept        # the slowest of them
//
// Run it from the top of the project to find the captures that ship.
//
// The command record reads one traffic stream captured before (-in) and after
// (-out) whatever delays it. The captures are pcap or pcapng, with or without
// gzip, stamped by clocks that agree. Each point has a COLATE recorder: shared
// counters that take one update a packet. Every -period of the clock the
// counters go to the point's store, in DIR/ingress and DIR/egress. Nothing
// else is kept of the packets. DIR/flows.csv stands for what a NetFlow
// collector would know: which flows were present, with how many packets, and
// when.
//
// The captures that ship lose one packet in twenty. A counter that lost one
// says nothing about that epoch, and the flow's other counters stand for it.
// There are only 8,000 packets for 4,096 counters, which is why each packet
// takes so many bits of the stores: a counter is worth its bits if it counts
// ten packets.
//
// The command query reads the epochs of both stores that overlap the flow's
// lifetime, or the window given by -from and -to, and of these only the few
// counters that it needs. The flow's number of packets comes from flows.csv,
// or from -packets. It prints the mean delay with the interval that contains
// it with 95 % probability. For a flow of few packets among big ones the
// counters hold mostly the others' delays, and the interval says so. The
// command rank does the same for all flows of a window in one pass.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() {
	out := &checked{w: os.Stdout}
	err := run(os.Args[1:], out, os.Stderr)
	err = cmp.Or(err, out.err)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "colate:", strings.TrimPrefix(err.Error(), "colate: "))
		if errors.As(err, new(usageError)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// A checked writer remembers that it failed.
type checked struct {
	w   io.Writer
	err error
}

// Write writes b, unless a write failed before.
func (o *checked) Write(b []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.w.Write(b)
	}
	return n, o.err
}

// A usageError is an error of the command line.
type usageError struct{ error }

const usage = `Records packets at two points in shared counters, and answers later how long
the packets of one flow took.

usage: colate [record|list|query|rank] [flags]

  record  read a capture pair into the stores of a directory
  list    print the flows that were recorded, largest first
  query   print the delay of one flow
  rank    print the slowest flows of a window
  (none)  record the captures that ship into a temporary directory, query
          its largest flows, and print the exact delays beside

For the flags of a command: colate record -h, and so on. Times are those of the
captures' clocks. The head of main.go says what is kept, and what an answer is
worth.
`

func run(args []string, stdout, stderr io.Writer) error {
	command := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	switch command {
	case "record":
		opt, err := parseRecord(args, stderr)
		if err != nil {
			return misused(err)
		}
		return record(opt, stdout)
	case "list":
		f := flags("list", "Prints the flows that were recorded, largest first.", stderr)
		dir := f.String("dir", "", "`directory` that record wrote")
		top := f.Int("top", 20, "print so many `flows`, 0: all")
		if err := parseDir(f, args, dir); err != nil {
			return misused(err)
		}
		return list(*dir, *top, stdout)
	case "query":
		var opt queryOptions
		if err := windowFlags(&opt, command, "Prints the delay of one flow.", stderr)(args); err != nil {
			return misused(err)
		}
		return query(opt, stdout)
	case "rank":
		var opt queryOptions
		if err := windowFlags(&opt, command, "Prints the flows of a window, slowest first.", stderr)(args); err != nil {
			return misused(err)
		}
		return rank(opt, stdout)
	case "":
		return demonstrate(args, stdout, stderr)
	}
	if command == "help" {
		fmt.Fprint(stderr, usage)
		return flag.ErrHelp
	}
	return misused(fmt.Errorf("unknown command %q, want record, list, query or rank", command))
}

// misused makes a usageError of an error, unless it is a request for help.
func misused(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{err}
}

// demonstrate runs all commands, one after another.
func demonstrate(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("colate", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(stderr, usage) }
	if err := parseOnly(f, args); err != nil {
		return misused(err)
	}
	dir, err := os.MkdirTemp("", "colate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	opt, err := parseRecord([]string{"-dir", dir}, stderr)
	if err != nil {
		return err
	}
	opt.exact = newExact()
	if err := record(opt, stdout); err != nil {
		return err
	}
	flows, err := programs.ReadFlows(dir)
	if err != nil {
		return err
	}
	for _, flow := range flows[:min(len(flows), 5)] {
		fmt.Fprintln(stdout)
		if err := query(queryOptions{dir: dir, seed: 1, flow: flow.Tuple}, stdout); err != nil {
			return err
		}
		opt.exact.print(flow.Tuple, stdout)
	}
	return nil
}

func flags(command, what string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("colate "+command, flag.ContinueOnError)
	f.Usage = func() {
		f.SetOutput(stderr)
		fmt.Fprintf(stderr, "%s\n\nusage: colate %s [flags]\n\n", what, command)
		f.PrintDefaults()
	}
	return f
}

// parseDir parses a command's flags and requires -dir.
func parseDir(f *flag.FlagSet, args []string, dir *string) error {
	if err := parseOnly(f, args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("-dir is missing: the directory of the stores")
	}
	return nil
}

// parseOnly parses flags and accepts no other arguments. It reports a mistake
// in one line, and prints the flags only on request.
func parseOnly(f *flag.FlagSet, args []string) error {
	usage := f.Usage
	f.Usage = func() {}
	f.SetOutput(io.Discard)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage()
		return err
	case err != nil:
		return fmt.Errorf("%w (%s -h lists the flags)", err, f.Name())
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// points are the names of the two points' stores.
var points = [2]string{"ingress", "egress"}

// openStore opens the store of a point.
func openStore(dir string, point int, options colate.StoreOptions) (*colate.Store, error) {
	return colate.OpenStore(colate.Dir(filepath.Join(dir, points[point])), options)
}
