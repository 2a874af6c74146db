package hoplag

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Serve answers the followers that connect, until the listener is closed.
func (p *Point) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("hoplag: %w", err)
		}
		go func() {
			defer conn.Close()
			p.ServeConn(conn)
		}()
	}
}

// ServeConn answers the follower at the other end of a connection, until the
// follower closes it. Anything that carries bytes both ways will do. A request
// that is not signed ends it with [ErrForged].
func (p *Point) ServeConn(conn io.ReadWriter) error {
	for {
		request, err := readMessage(conn, maxRequest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := p.Answer(request)
		if err != nil {
			return err
		}
		if err := writeMessage(conn, reply); err != nil {
			return err
		}
	}
}

// Conn exchanges over a connection to a point's [Point.ServeConn], one request
// at a time. After an error it is useless.
func Conn(conn net.Conn) Exchange {
	var mu sync.Mutex
	return func(ctx context.Context, request []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if end, ok := ctx.Deadline(); ok {
			conn.SetDeadline(end)
		}
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if err := writeMessage(conn, request); err != nil {
			return nil, err
		}
		return readMessage(conn, maxMessage)
	}
}

// Dial exchanges with the point at an address, given as for [net.Dial]: over
// datagrams to its [Point.ServePacket] if the network begins with "udp" or
// "unixgram", otherwise over connections to its [Point.Serve]. It connects when
// first needed, and again after an error.
func Dial(network, address string) Exchange {
	over := Conn
	if strings.HasPrefix(network, "udp") || network == "unixgram" {
		over = Datagrams
	}
	var conn net.Conn
	var ask Exchange
	var mu sync.Mutex
	return func(ctx context.Context, request []byte) (reply []byte, err error) {
		mu.Lock()
		defer mu.Unlock()
		if conn == nil {
			var d net.Dialer
			if conn, err = d.DialContext(ctx, network, address); err != nil {
				conn = nil
				return nil, fmt.Errorf("hoplag: %w", err)
			}
			ask = over(conn)
		}
		if reply, err = ask(ctx, request); err != nil {
			conn.Close()
			conn = nil
		}
		return reply, err
	}
}

// On a connection, each message follows its length in 4 bytes.

func writeMessage(w io.Writer, message []byte) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	if _, err := w.Write(append(b, message...)); err != nil {
		return fmt.Errorf("hoplag: %w", err)
	}
	return nil
}

// readMessage reads a message of at most limit bytes.
func readMessage(r io.Reader, limit uint32) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > limit {
		return nil, fmt.Errorf("hoplag: a message of %d bytes, at most %d: is there a point at the other end?", n, limit)
	}
	// The length is only the peer's word: memory grows with what really comes.
	var b strings.Builder
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	return []byte(b.String()), nil
}
