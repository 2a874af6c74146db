package programs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
)

//go:embed page.html
var page []byte

// kept is the number of reports that the page can show: an hour.
const kept = 3600

// A View serves reports to people and to Prometheus: a page that draws them as they come, and /metrics.
type View struct {
	// Drops returns what the program itself dropped, by where: what is lost there was not lost on the network.
	// It may be nil.
	Drops func() map[string]uint64

	off     bool // nobody looks
	metrics hoplag.Metrics
	mu      sync.Mutex
	came    time.Time       // when the latest report did
	reports []hoplag.Report // of all reports; flows are those of the latest
	names   []string        // of the latest one's flows
}

// Add adds a report, and the names of its flows forth if they are known.
func (v *View) Add(r hoplag.Report, names ...string) {
	if v.off {
		return
	}
	v.metrics.Add(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.reports); n > 0 {
		v.reports[n-1].Forth.Flows, v.reports[n-1].Back.Flows = nil, nil
	}
	if len(v.reports) >= 2*kept {
		v.reports = slices.Clone(v.reports[kept:])
	}
	v.came, v.reports, v.names = time.Now(), append(v.reports, r), names
}

// news is what the page learns when it asks.
type news struct {
	Reports []hoplag.Report
	Drops   map[string]uint64
	Names   []string // of the latest report's flows
	Age     float64  // seconds since the latest report came, or -1
}

func (v *View) since(after int64) news {
	v.mu.Lock()
	defer v.mu.Unlock()
	from := max(0, len(v.reports)-kept)
	for from < len(v.reports) && v.reports[from].Number <= after {
		from++
	}
	n := news{Reports: slices.Clone(v.reports[from:]), Names: v.names, Age: -1}
	if len(v.reports) > 0 {
		n.Age = time.Since(v.came).Seconds()
	}
	if v.Drops != nil {
		n.Drops = v.Drops()
	}
	return n
}

func (v *View) serveMetrics(w http.ResponseWriter, r *http.Request) {
	v.metrics.ServeHTTP(w, r)
	if v.Drops == nil {
		return
	}
	const name = "hoplag_own_drops_total"
	fmt.Fprintf(w, "# HELP %s Packets that this program dropped, and the network did not.\n# TYPE %s counter\n", name, name)
	drops := v.Drops()
	for _, at := range slices.Sorted(maps.Keys(drops)) {
		fmt.Fprintf(w, "%s{at=%q} %d\n", name, at, drops[at])
	}
}

// serveReports writes what is new after the interval ?after=NUMBER, as JSON.
func (v *View) serveReports(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
	if err != nil {
		after = -1 << 63
	}
	data, err := json.Marshal(v.since(after))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

// Serve serves the page at an address, unless that is empty, until it is stopped, and says where.
func (v *View) Serve(address string, say func(format string, args ...any)) (stop func(), err error) {
	if v.off = address == ""; v.off {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'")
		w.Write(page)
	})
	mux.HandleFunc("GET /metrics", v.serveMetrics)
	mux.HandleFunc("GET /reports", v.serveReports)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	say("the page is at http://%s/, and /metrics there", strings.Replace(l.Addr().String(), "[::]", "localhost", 1))
	return func() { server.Close() }, nil
}
