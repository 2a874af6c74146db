package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// A said is what a program says, from any goroutine.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// When the disk is full everybody says so, and when there is room again records
// and reports go on by themselves, and every message is in a report.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	store := t.TempDir()
	if err := syscall.Mount("tmpfs", store, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(store, syscall.MNT_DETACH) })
	log := new(said)
	b := testBroker(t, filepath.Join(store, "jetstream"), log)
	f, o := fleetAt(t, b.url, "-pairs 1 -partitions 1 -duration 4s")
	f.log = log
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	c := newCollector(f)
	working.Go(func() { c.work(ctx, 0) })
	var passing sync.WaitGroup
	defer passing.Wait()
	passing.Go(func() { f.passed(ctx, t, o) })
	time.Sleep(2 * time.Second)
	ballast := filepath.Join(store, "ballast")
	disk := relay.Must(os.Create(ballast))(t)
	for full := error(nil); full == nil; {
		_, full = disk.Write(make([]byte, 1<<16))
	}
	disk.Close()
	waitFor(t, log, func() bool { return strings.Contains(log.String(), "publishing") })
	relay.Check(t, os.Remove(ballast))
	waitFor(t, log, func() bool { return strings.Contains(log.String(), "there is room again") })
	passing.Wait()
	if n := c.restarts.Load(); n > 20 {
		t.Errorf("the work began anew %d times", n)
	}
	for _, want := range []string{"no space left", "publishing", "works again"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("nobody says %q:\n%s", want, log)
		}
	}
}

func waitFor(t *testing.T, log *said, done func() bool) {
	t.Helper()
	for range 1200 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not in a minute: %s", log)
}
