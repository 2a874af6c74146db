package main

import (
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
)

//go:embed page.html
var page []byte

// kept is the number of reports on the page: ten minutes.
const kept = 600

// A view keeps the latest reports for the page, and the metrics.
type view struct {
	metrics hoplag.Metrics
	mu      sync.Mutex
	reports []hoplag.Report          // of all
	classes map[string]hoplag.Report // the latest of each class
}

func newView() *view { return &view{classes: map[string]hoplag.Report{}} }

// addClass adds a report of one class.
func (v *view) addClass(r hoplag.Report) {
	v.metrics.Add(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.classes[r.Class] = r
}

func (v *view) add(r hoplag.Report) {
	v.metrics.Add(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reports = append(v.reports, r)
	if len(v.reports) > kept {
		v.reports = append(v.reports[:0], v.reports[1:]...)
	}
}

// serve answers browsers and Prometheus until it is closed.
func (v *view) serve(l net.Listener) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'")
		w.Write(page)
	})
	mux.Handle("GET /metrics", &v.metrics)
	mux.HandleFunc("GET /reports", func(w http.ResponseWriter, r *http.Request) { v.answer(w, &v.reports) })
	mux.HandleFunc("GET /classes", func(w http.ResponseWriter, r *http.Request) { v.answer(w, &v.classes) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return server
}

// answer writes something of the view as JSON.
func (v *view) answer(w http.ResponseWriter, of any) {
	v.mu.Lock()
	data, err := json.Marshal(of)
	v.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}
