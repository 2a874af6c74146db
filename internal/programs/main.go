// Package programs is what the programs of examples and bench have in common: how they begin and end, their
// flags, the rows that they print, the live page, and the names of flows.
package programs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a program and exits: with code 0, with 1 after an error, or with 2 if the command line is wrong.
// Ctrl-C and SIGTERM end the context; the second one ends the program at once.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	code := exitCode(err)
	if code != 0 {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(code)
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	}
	return 1
}

// ErrUsage is wrapped by what is wrong with the command line.
var ErrUsage = errors.New("usage")

// Usage returns an error of the command line.
func Usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}
