package programs

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Flags are the flags of a program. An error in a flag is reported once, with its value and what it may be.
type Flags struct {
	*flag.FlagSet
	Arguments bool // whether there may be other arguments

	about  string
	stderr io.Writer
	checks []func() error
}

// NewFlags returns a program's flags. Its help begins with a sentence about it, and goes to stderr.
func NewFlags(name, about string, stderr io.Writer) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), about: about, stderr: stderr}
	f.SetOutput(io.Discard) // Main prints the error
	f.Usage = func() {}
	return f
}

// Parse parses and checks the flags. The error is [flag.ErrHelp] once help was given, or wraps [ErrUsage].
func (f *Flags) Parse(args []string) error {
	if err := f.FlagSet.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(f.stderr, "%s\n\n", f.about)
		f.SetOutput(f.stderr)
		f.PrintDefaults()
		return err
	} else if err != nil {
		return Usage("%w; -h explains the flags", err)
	}
	if f.NArg() > 0 && !f.Arguments {
		return Usage("argument %q, want flags only", f.Arg(0))
	}
	for _, check := range f.checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Check adds a check to those of Parse, in order.
func (f *Flags) Check(check func() error) { f.checks = append(f.checks, check) }

// Required checks that flags have a value.
func (f *Flags) Required(names ...string) {
	f.Check(func() error {
		for _, name := range names {
			if f.Lookup(name).Value.String() == "" {
				return Usage("-%s is missing; -h explains it", name)
			}
		}
		return nil
	})
}

// A Number is the value of a flag that has a range.
type Number interface {
	int | float64 | time.Duration
}

// Range defines a flag whose value is from low to high, or the default, which may stand for something else.
func Range[T Number](f *Flags, p *T, name string, value, low, high T, usage string) {
	usage = fmt.Sprintf("%s, %v to %v", usage, low, high)
	switch p := any(p).(type) {
	case *int:
		f.IntVar(p, name, any(value).(int), usage)
	case *float64:
		f.Float64Var(p, name, any(value).(float64), usage)
	case *time.Duration:
		f.DurationVar(p, name, any(value).(time.Duration), usage)
	}
	f.Check(func() error {
		if *p != value && !(*p >= low && *p <= high) {
			return Usage("-%s is %v, want %v to %v", name, *p, low, high)
		}
		return nil
	})
}

// Choice defines a flag whose value is one of a few words.
func (f *Flags) Choice(p *string, name, value, usage string, words ...string) {
	all := strings.Join(words, ", ")
	f.StringVar(p, name, value, usage+": "+all)
	f.Check(func() error {
		if *p != value && !slices.Contains(words, *p) {
			return Usage("-%s is %q, want one of %s", name, *p, all)
		}
		return nil
	})
}

// Key defines the flag of the secret that points share.
func (f *Flags) Key(p *string) {
	f.StringVar(p, "key", "", "`secret` that all points share, at least 16 characters (default: $HOPLAG_KEY)")
	f.Check(func() error {
		if *p == "" {
			*p = os.Getenv("HOPLAG_KEY")
		}
		if *p != "" && len(*p) < 16 {
			return Usage("-key has %d characters, want at least 16: anybody who guesses it can read and forge reports", len(*p))
		}
		return nil
	})
}
