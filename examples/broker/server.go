package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// maxPayload is the longest message of the embedded broker: replies of a
// hoplag.Point are up to a megabyte long.
const maxPayload = 8 << 20

// A broker is the embedded one, or just the URL of another.
type broker struct {
	server *server.Server
	url    string
	remove string      // directory
	failed atomic.Bool // a stream could not be written
	closed chan struct{}
}

// newBroker starts a broker that keeps its streams in a directory, or in a
// temporary one if store is "".
func newBroker(listen, store string, log io.Writer) (*broker, error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w", listen, err)
	}
	b := &broker{closed: make(chan struct{})}
	if store == "" {
		if store, err = os.MkdirTemp("", "hoplag-broker"); err != nil {
			return nil, err
		}
		b.remove = store
	}
	o := &server.Options{Host: host, Port: int(port), JetStream: true, StoreDir: store, MaxPayload: maxPayload, NoSigs: true}
	if port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if b.server, err = server.NewServer(o); err == nil {
		b.server.SetLogger(logger{log, &b.failed}, false, false)
		b.server.Start()
		if !b.server.ReadyForConnections(30 * time.Second) {
			err = errors.New("the broker does not start: is the address free, and the store whole?")
		}
	}
	if err != nil {
		b.close()
		return nil, err
	}
	b.url = b.server.ClientURL()
	go b.revive(store, log)
	return b, nil
}

// revive starts the streams again that the server gave up because the disk was
// full, once there is room.
func (b *broker) revive(store string, log io.Writer) {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-b.closed:
			tick.Stop()
			return
		case <-tick.C:
		}
		probe := filepath.Join(store, "probe")
		if !b.failed.Load() || os.WriteFile(probe, make([]byte, 1<<20), 0o600) != nil {
			continue
		}
		os.Remove(probe)
		b.failed.Store(false)
		b.server.DisableJetStream()
		if err := b.server.EnableJetStream(&server.JetStreamConfig{StoreDir: store}); err != nil {
			b.failed.Store(true)
			continue
		}
		fmt.Fprintln(log, "broker: there is room again, and the streams run")
	}
}

// A logger prints what goes wrong in the server, once in a row, and knows when
// streams cannot be written any more.
type logger struct {
	w      io.Writer
	failed *atomic.Bool
}

// Errorf prints what fails for want of room, once in a row.
func (l logger) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	full := strings.Contains(text, "no space left") || strings.Contains(text, "write error") || strings.Contains(text, "DISABLED")
	if !full || !l.failed.Swap(true) {
		fmt.Fprintf(l.w, "broker: %s\n", text)
	}
}

// Warnf is Errorf.
func (l logger) Warnf(format string, args ...any) { l.Errorf(format, args...) }

// Fatalf is Errorf.
func (l logger) Fatalf(format string, args ...any) { l.Errorf(format, args...) }

// Noticef prints nothing.
func (l logger) Noticef(string, ...any) {}

// Debugf prints nothing.
func (l logger) Debugf(string, ...any) {}

// Tracef prints nothing.
func (l logger) Tracef(string, ...any) {}

func (b *broker) close() {
	close(b.closed)
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	if b.remove != "" {
		os.RemoveAll(b.remove)
	}
}

// connect makes a connection that always tries again, whatever happens to the broker.
func connect(url string) (*nats.Conn, error) {
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	var major, minor int
	version := conn.ConnectedServerVersion()
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 10 {
		conn.Close()
		return nil, fmt.Errorf("%s is NATS %q, want 2.10 or later: earlier ones drop what streams say about themselves", url, version)
	}
	return conn, nil
}
