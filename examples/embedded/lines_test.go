package embedded

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// TestLines counts what each embedding does at both ends together: every line with a word on it in the
// functions of its file and of points.go. Signatures and structs that the host library dictates do not count.
func TestLines(t *testing.T) {
	points := codeLines(t, "points.go")
	for _, name := range []string{"wireguard.go", "mqtt.go", "grpc.go", "grpc_streams.go", "http.go", "rtp.go"} {
		own := codeLines(t, name)
		t.Logf("%-16s %2d lines", name, own+points)
		if own < 5 || own+points > 30 {
			t.Errorf("%s has %d lines, and points.go %d: want at most 30 together", name, own, points)
		}
	}
}

// function matches a function on one line, or on several with its body.
var function = regexp.MustCompile(`(?m)^func .*\}$|^func (?s:.*?)\{$((?s:.*?))^\}`)

// codeLines counts the lines within functions.
func codeLines(t *testing.T, name string) (n int) {
	for _, f := range function.FindAllStringSubmatch(string(relay.Must(os.ReadFile(name))(t)), -1) {
		for line := range strings.Lines(cmp.Or(f[1], f[0])) {
			line, _, _ = strings.Cut(line, "//")
			if regexp.MustCompile(`\w`).MatchString(line) {
				n++
			}
		}
	}
	return n
}
