package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
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
	remove string // directory
}

// newBroker starts a broker that keeps its streams in a directory, or in a temporary one if store is "".
func newBroker(listen, store string) (*broker, error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w", listen, err)
	}
	b := new(broker)
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
	return b, nil
}

func (b *broker) close() {
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	if b.remove != "" {
		os.RemoveAll(b.remove)
	}
}

// connect makes a connection that reconnects whatever happens to the broker.
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
