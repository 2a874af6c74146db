package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
)

var config = hoplag.Config{Key: hoplag.NewKey("a key of sixteen bytes and more"), Cut: 20 * time.Millisecond}

// Pairs that push are compared: every packet is in a report once, though the
// collector cannot be reached for a while, and strangers begin no pair.
func TestCollector(t *testing.T) {
	c := newCollector(config)
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		c.handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	point := func(c hoplag.Config, path string) *hoplag.Point {
		p, err := hoplag.NewPoint(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		go push(ctx, p, server.URL+path)
		return p
	}
	first, second := point(config, "/records/a/1"), point(config, "/records/a/2")
	other := config
	other.Key = hoplag.NewKey("another key of sixteen bytes")
	point(other, "/records/stranger/1")
	point(config, "/records/nobody/3")
	sent, received := uint64(0), uint64(0)
	collect := func(d time.Duration) (reports int) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			for _, r := range c.reports() {
				received += r.Forth.Received
				reports++
			}
		}
		return reports
	}
	for i := 0; i < 240 && collect(250*time.Millisecond) == 0; i++ { // until the pair has begun
	}
	for i := range 100 {
		for range 10 {
			first.PassedNumber(sent)
			second.PassedNumber(sent)
			sent++
		}
		down.Store(i > 20 && i < 60)
		collect(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
	for i := 0; i < 240 && received < sent; i++ {
		collect(250 * time.Millisecond)
	}
	cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if received != sent || len(c.pairs) != 1 {
		t.Errorf("reports have %d packets of %d, of %d pairs", received, sent, len(c.pairs))
	}
	page := httptest.NewRecorder()
	c.handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if text := page.Body.String(); !strings.Contains(text, `hoplag_packets_received_total{from="a.1",to="a.2"`) {
		t.Error(text)
	}
}
