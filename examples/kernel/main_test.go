package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/lda/kernel"
)

func TestArguments(t *testing.T) {
	for _, args := range []string{"-duration 1ms", "-compare 1ms", "-compare 2s", "-rate 1", "-rate NaN", "-bandwidth 0", "more"} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil ||
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
	rows := 0
	for decoder := json.NewDecoder(&out); decoder.More(); rows++ {
		last = row{}
		if err := decoder.Decode(&last); err != nil {
			t.Fatal(err)
		}
		if last.MeanMicros == nil || last.ExactMicros == nil || *last.MeanMicros < 0.5**last.ExactMicros ||
			*last.MeanMicros > 2**last.ExactMicros {
			t.Errorf("%+v: no mean near the exact one", last)
		}
	}
	if rows < 2 || last.ExactLost == nil || *last.ExactLost != last.Lost {
		t.Errorf("%d rows, the last %+v: want as many lost as were", rows, last)
	}
}
