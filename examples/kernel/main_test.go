package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/lda/kernel"
)

func TestArguments(t *testing.T) {
	for _, args := range []string{"-duration 1ms", "-compare 1ms", "-compare 2s", "-rate 1", "-rate NaN", "-bandwidth 0", "more"} {
		if _, err := parse(strings.Fields(args), io.Discard); !errors.Is(err, errUsage) ||
			!strings.Contains(err.Error(), strings.TrimLeft(strings.Fields(args)[0], "-")) {
			t.Errorf("%s: error %v, want one that names it", args, err)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-bandwidth") {
		t.Errorf("-h: error %v, usage %q", err, usage.String())
	}
}

// The program does what it says, where it may: what it says was lost was lost,
// and its mean is near the exact one.
func TestRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	var out bytes.Buffer
	err := run(context.Background(), strings.Fields("-duration 2s -json -rate 5000 -bandwidth 50"), &out, io.Discard)
	if errors.Is(err, kernel.ErrPrivilege) || errors.Is(err, kernel.ErrUnsupported) ||
		err != nil && strings.Contains(err.Error(), "ip") && out.Len() == 0 {
		t.Skipf("not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var last row
	rows, near := 0, 0
	for decoder := json.NewDecoder(&out); decoder.More(); rows++ {
		last = row{}
		if err := decoder.Decode(&last); err != nil {
			t.Fatal(err)
		}
		// The exact times are a program's, which a busy machine makes wait.
		if m, x := last.MeanMicros, last.ExactMicros; m != nil && x != nil && *m > 0.5**x && *m < 2**x {
			near++
		}
	}
	if near == 0 {
		t.Error("no row has a mean near the exact one")
	}
	if rows < 2 || last.ExactLost == nil || *last.ExactLost != last.Lost {
		t.Errorf("%d rows, the last %+v: want as many lost as were", rows, last)
	}
}

// With AS_PROGRAM the test is the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The exit code tells a bad command line from what goes wrong later.
func TestExitCodes(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-rate 0": 2, "-rate x": 2, "-no-such-flag": 2} {
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "AS_PROGRAM=1")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d:\n%s", args, got, want, out)
		}
	}
}

// An output that fails ends the program with its error.
func TestOutputFails(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r, w := io.Pipe()
	r.Close()
	err := run(t.Context(), strings.Fields("-duration 1s"), w, io.Discard)
	if errors.Is(err, kernel.ErrPrivilege) || errors.Is(err, kernel.ErrUnsupported) {
		t.Skipf("not here: %v", err)
	}
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}
