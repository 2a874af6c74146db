package programs

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// An error in the command line is reported with the value and what it may be.
func TestFlags(t *testing.T) {
	t.Setenv("HOPLAG_KEY", "short")
	parse := func(stderr io.Writer, args ...string) error {
		var pairs int
		var rate float64
		var wait time.Duration
		var role, key string
		f := NewFlags("test", "Test does nothing.", stderr)
		Range(f, &pairs, "pairs", 4, 1, 100, "number of `pairs`")
		Range(f, &rate, "rate", 0, 10, 1e8, "`messages` a second; 0 means as fast as possible")
		Range(f, &wait, "wait", time.Second, time.Millisecond, time.Minute, "`time` to wait")
		f.Choice(&role, "role", "", "`role` to play", "first", "second")
		f.Key(&key)
		f.Required("role")
		return f.Parse(args)
	}
	const key = "-key=a key of sixteen bytes and more"
	for want, args := range map[string][]string{
		"":                               {key, "-rate", "0", "-wait", "1m", "-role", "second"},
		"-role is missing":               {key},
		"-pairs is 0, want 1 to 100":     {key, "-pairs", "0"},
		"-rate is NaN, want 10 to 1e+08": {key, "-rate", "NaN"},
		"-wait is 2m0s, want 1ms to 1m":  {key, "-wait", "2m"},
		`-role is "third", want one of first, second`: {key, "-role", "third"},
		"-key has 5 characters":                       {},
		`argument "more"`:                             {key, "more"},
		"flag provided but not defined: -no":          {"-no"},
		`invalid value "x" for flag -pairs`:           {"-pairs", "x"},
	} {
		var stderr bytes.Buffer
		err := parse(&stderr, args...)
		if want == "" && err == nil {
			continue
		}
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) || exitCode(err) != 2 || stderr.Len() > 0 {
			t.Errorf("%q: %v, prints %q; want %q", args, err, &stderr, want)
		}
	}
	var help bytes.Buffer
	if err := parse(&help, "-h"); !errors.Is(err, flag.ErrHelp) || exitCode(err) != 0 {
		t.Error(err)
	}
	for _, want := range []string{"Test does nothing.\n", "number of pairs, 1 to 100 (default 4)", "first, second", "$HOPLAG_KEY"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help does not say %q:\n%s", want, &help)
		}
	}
	if code := exitCode(io.ErrShortWrite); code != 1 {
		t.Errorf("code %d for any other error", code)
	}
}

func TestFlowName(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[2001:db8::1]:1234")
	for protocol, want := range map[uint8]string{6: "tcp 10.0.0.1:80 [2001:db8::1]:1234", 132: "132 10.0.0.1:80 [2001:db8::1]:1234"} {
		if flow := hashing.MakeTuple(protocol, a, b); FlowName(&flow) != want {
			t.Errorf("%q, want %q", FlowName(&flow), want)
		}
	}
}
