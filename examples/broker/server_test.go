package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// A server that is too old is refused by its version.
func TestOldServer(t *testing.T) {
	for version, refused := range map[string]bool{"2.9.10": true, "1.4.1": true, "2.10.0": false, "3.0.0-dev": false, "": true} {
		l := relay.Listen(t)
		go func() { // as much of a server as it takes to connect
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "INFO {\"version\":%q,\"max_payload\":1048576}\r\n", version)
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				if lines.Text() == "PING" {
					io.WriteString(conn, "PONG\r\n")
				}
			}
		}()
		conn, err := connect("nats://" + l.Addr().String())
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "want 2.10 or later") {
			t.Errorf("NATS %q: %v", version, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// A record that is published again is stored once.
func TestRecordsAgain(t *testing.T) {
	b := testBroker(t)
	f, o := fleetAt(t, b.url, "-partitions 1")
	n := 0
	for record := range testPoint(t, o.config()).Records(t.Context()) {
		for range 2 { // as when the acknowledgement was lost
			relay.Check(t, f.send(t.Context(), f.recordSubject("pair", 1, 0), record))
		}
		if n++; n == 3 {
			break
		}
	}
	if info, err := f.records.Info(t.Context()); err != nil || info.State.Msgs != 3 {
		t.Errorf("%d records are stored of 3, %v", info.State.Msgs, err)
	}
}
