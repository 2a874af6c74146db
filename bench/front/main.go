// Front runs the front door as two processes on one machine would. Each has a
// thousand goroutines, messages go from one to the other over as many
// connections, and the first process is killed and started again twice. It
// prints each report of the second with the exact mean of the same interval.
// It fails if an interval is missing or reported twice, or if more than one
// mean in twenty is outside its 95 % interval.
//
//	go run ./bench/front                 # ten minutes
//	go run ./bench/front -duration 30s
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// options are the same in all processes.
type options struct {
	duration   time.Duration
	goroutines int
	rate       float64 // messages a second of each goroutine
	kills      int

	role    string // "" starts the other two roles
	data    string // where the second process listens for messages
	reports string // where the first one answers
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "front:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("front", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "how long to run")
	flags.IntVar(&o.goroutines, "goroutines", 1000, "in each process")
	flags.Float64Var(&o.rate, "rate", 10, "messages a second of each goroutine")
	flags.IntVar(&o.kills, "kills", 2, "how often to kill the first process and start it again")
	flags.StringVar(&o.role, "role", "", "for its own use: first or second")
	flags.StringVar(&o.data, "data", "127.0.0.1:0", "for its own use: address for messages")
	flags.StringVar(&o.reports, "reports", "127.0.0.1:0", "for its own use: address for reports")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if o.duration < 5*time.Second || o.goroutines < 1 || !(o.rate > 0) || o.kills < 0 {
		fmt.Fprintf(os.Stderr, "front: want -duration of at least 5s, -goroutines of at least 1, -rate above 0 and -kills of at least 0\n")
		return errUsage
	}
	switch o.role {
	case "first":
		return first(ctx, o)
	case "second":
		return second(ctx, o, out)
	}
	return both(ctx, o, out)
}

// both starts the two processes, kills the first now and then, and waits for
// the second.
func both(ctx context.Context, o options, out io.Writer) error {
	var err error
	for _, address := range []*string{&o.data, &o.reports} {
		if *address, err = freeAddress(); err != nil {
			return err
		}
	}
	receiver := o.command(ctx, "second", o.duration)
	receiver.Stdout, receiver.Stderr = out, os.Stderr
	if err := receiver.Start(); err != nil {
		return err
	}
	finished := make(chan error, 1)
	go func() { finished <- receiver.Wait() }()
	life := o.duration / time.Duration(o.kills+1)
	for range o.kills + 1 {
		sender := o.command(ctx, "first", o.duration)
		sender.Stderr = os.Stderr
		if err := sender.Start(); err != nil {
			return err
		}
		select {
		case err = <-finished:
			finished <- err
		case <-time.After(life):
		}
		sender.Process.Kill()
		sender.Wait()
	}
	return <-finished
}

// command returns the command that runs this program in another role.
func (o options) command(ctx context.Context, role string, d time.Duration) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	c := exec.CommandContext(ctx, program, "-role", role, "-duration", d.String(), "-data", o.data, "-reports", o.reports,
		"-goroutines", fmt.Sprint(o.goroutines), "-rate", fmt.Sprint(o.rate), "-kills", fmt.Sprint(o.kills))
	c.Env = append(os.Environ(), "HOPLAG_FRONT=1")
	return c
}
