package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test's own program be the two processes.
func TestMain(m *testing.M) {
	if os.Getenv("HOPLAG_FRONT") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Two processes, of which one is killed and started again twice, report every
// interval once.
func TestFront(t *testing.T) {
	if testing.Short() {
		t.Skip("takes nine seconds")
	}
	var out bytes.Buffer
	err := run(context.Background(), []string{"-duration", "9s", "-goroutines", "100", "-rate", "10"}, &out)
	// On a busy machine sessions may begin anew until the end.
	if err != nil && !strings.Contains(out.String(), "reports: 0 with a mean") {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "0 intervals missing, 0 repeated") {
		t.Errorf("%s", &out)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-duration", "1s"}, {"-rate", "0"}, {"-goroutines", "0"}, {"-kills", "-1"}, {"-x"}} {
		if err := run(context.Background(), args, &bytes.Buffer{}); err != errUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
