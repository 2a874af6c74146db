package hoplag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

const (
	contentType = "application/vnd.hoplag"

	// maxMessage bounds what is read from a peer, in bytes.
	maxMessage = 64 << 20
	maxRequest = 4 << 10

	// A connection has firstTimeout until its first signed request has come, and
	// nextTimeout for each one after that. maxConns are open at a time.
	firstTimeout, nextTimeout = 10 * time.Second, 10 * time.Minute
	maxConns                  = 1024
)

// ServeHTTP answers followers. The body of a POST is the request, and the body
// of the response is the reply. Only those who have the Key get one.
func (p *Point) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "This is a point of hoplag. Follow it with Point.Follow, from a point of the same Key.", http.StatusMethodNotAllowed)
		return
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(firstTimeout)) // where the server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	var reply []byte
	if err == nil {
		reply, err = p.Answer(body)
	}
	switch {
	case errors.Is(err, ErrForged):
		http.Error(w, err.Error(), http.StatusForbidden)
	case errors.Is(err, ErrClosed):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Write(reply)
	}
}

// HTTP exchanges with the point whose ServeHTTP is at a URL, by a client, or
// [http.DefaultClient] for nil.
func HTTP(client *http.Client, url string) Exchange {
	if client == nil {
		client = http.DefaultClient
	}
	return func(ctx context.Context, request []byte) ([]byte, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		q.Header.Set("Content-Type", contentType)
		a, err := client.Do(q)
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(io.LimitReader(a.Body, maxMessage+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("hoplag: %w", err)
		case a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusOK && a.Header.Get("Content-Type") != contentType:
			return nil, fmt.Errorf("hoplag: no point is at %s: it answers %s; is the path right?", url, a.Status)
		case a.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("hoplag: %s answers %s: %.200s", url, a.Status, bytes.TrimSpace(body))
		case len(body) > maxMessage:
			return nil, fmt.Errorf("hoplag: %s answers with more than %d bytes", url, maxMessage)
		}
		return body, nil
	}
}

// serving is what a point has open, to be closed with it.
type serving struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{}
	closed bool
}

// add reports whether there is room for one more, and closes it if there is none.
func (s *serving) add(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= maxConns {
		c.Close()
		return false
	}
	if s.open == nil {
		s.open = map[io.Closer]struct{}{}
	}
	s.open[c] = struct{}{}
	return true
}

func (s *serving) remove(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *serving) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		c.Close()
	}
}

// serve calls next until the socket or the point is closed. Other errors, such as
// too many open files, may pass: it waits a while.
func (p *Point) serve(socket io.Closer, next func() error) error {
	p.serving.add(socket)
	defer p.serving.remove(socket)
	for wait := time.Duration(0); ; {
		err := next()
		switch {
		case err == nil:
			wait = 0
			continue
		case errors.Is(err, net.ErrClosed), p.isClosed():
			return nil
		case wait > 10*time.Second:
			return fmt.Errorf("hoplag: %w", err)
		}
		wait = max(2*time.Millisecond, 2*wait)
		select {
		case <-p.closing:
			return nil
		case <-time.After(min(wait, time.Second)):
		}
	}
}

// Serve answers the followers that connect, until the listener or the point is
// closed. Of those who do not show within ten seconds that they have the Key, or
// are more than a thousand, it closes the connections.
func (p *Point) Serve(l net.Listener) error {
	return p.serve(l, func() error {
		conn, err := l.Accept()
		if err == nil && p.serving.add(conn) {
			go func() {
				defer conn.Close()
				defer p.serving.remove(conn)
				p.ServeConn(conn)
			}()
		}
		return err
	})
}

// ServeConn answers the follower at the other end of a connection, until the
// follower closes it. Anything that carries bytes both ways will do. A request
// that is not signed ends it with [ErrForged].
func (p *Point) ServeConn(conn io.ReadWriter) error {
	timed, _ := conn.(interface{ SetDeadline(time.Time) error })
	for timeout := firstTimeout; ; timeout = nextTimeout {
		if timed != nil {
			timed.SetDeadline(time.Now().Add(timeout))
		}
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
		end, _ := ctx.Deadline()
		conn.SetDeadline(end)
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
// first needed, and again after an error: at once if the connection is old.
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
		for old := conn != nil; ; old = false {
			if conn == nil {
				var d net.Dialer
				if conn, err = d.DialContext(ctx, network, address); err != nil {
					conn = nil
					return nil, fmt.Errorf("hoplag: %w", err)
				}
				ask = over(conn)
			}
			if reply, err = ask(ctx, request); err == nil {
				return reply, nil
			}
			conn.Close()
			conn = nil
			if !old || ctx.Err() != nil {
				return nil, err
			}
		}
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
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("hoplag: %w", io.ErrUnexpectedEOF)
	} else if err != nil {
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	return b.Bytes(), nil
}

// Over datagrams, each one asks for one piece of the reply, and is answered by one
// that is at most three times as long, so that nobody can have a point flood
// someone else:
//
//	question:  magic 4 · index of the piece 2 · length of the request 2 · request · zeros
//	piece:     magic 4 · nonce of the request 16 · index 2 · pieces 2 · bytes
//
// What a stranger slips in spoils the reply's tag and nothing else. The point keeps
// a reply until all its pieces are asked for, or others take its place.
const (
	questionMagic = "HLPP"
	pieceMagic    = "HLPD"
	questionHead  = 4 + 2 + 2
	questionSize  = 400 // at least

	longestQuestion = 1200
	pieceHead       = 4 + nonceSize + 4
	pieceSize       = 3*questionSize - pieceHead

	// requestNonce is where the nonce is in an encoded request.
	requestNonce = 5 + 8

	// retryAfter is how long to wait for pieces before they are asked for again, and
	// ahead how many are asked for at a time.
	retryAfter, ahead = 100 * time.Millisecond, 16

	// keptReplies is how many replies a point keeps, of how many bytes of records.
	keptReplies, maxPacketReply = 16, 32 << 10
)

// ServePacket answers followers that send datagrams, until the connection or the
// point is closed. It drops datagrams that are not signed requests. An answer is at
// most three times as long as what it answers, whoever seems to have sent that.
func (p *Point) ServePacket(conn net.PacketConn) error {
	buffer := make([]byte, maxRequest)
	var kept [keptReplies]struct{ request, reply string }
	next := 0
	return p.serve(conn, func() error {
		n, from, err := conn.ReadFrom(buffer)
		if b := buffer[:n]; err == nil && n >= questionSize && string(b[:4]) == questionMagic {
			index, size := int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:]))
			if size > n-questionHead || size < requestNonce+nonceSize {
				return nil
			}
			request := b[questionHead : questionHead+size]
			at := 0
			for at < keptReplies && kept[at].request != string(request) {
				at++
			}
			if at == keptReplies {
				reply, err := p.answer(request, maxPacketReply)
				if err != nil {
					return nil
				}
				at, next = next, (next+1)%keptReplies
				kept[at].request, kept[at].reply = string(request), string(reply)
			}
			if piece := pieceOf(kept[at].reply, request, index); piece != nil {
				conn.WriteTo(piece, from) // an error is as if it were lost
			}
		}
		return err
	})
}

// pieceOf returns a piece of the reply to a request, or nil.
func pieceOf(reply string, request []byte, index int) []byte {
	count := (len(reply) + pieceSize - 1) / pieceSize
	if index >= count || count > 1<<16-1 {
		return nil
	}
	b := append([]byte(pieceMagic), request[requestNonce:requestNonce+nonceSize]...)
	b = binary.BigEndian.AppendUint16(b, uint16(index))
	b = binary.BigEndian.AppendUint16(b, uint16(count))
	return append(b, reply[index*pieceSize:min(len(reply), (index+1)*pieceSize)]...)
}

// Datagrams exchanges over a connected socket with a point's
// [Point.ServePacket]. It asks again for what does not come until the context is
// done.
func Datagrams(conn net.Conn) Exchange {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		if len(request) < requestNonce+nonceSize || len(request) > longestQuestion-questionHead {
			return nil, fmt.Errorf("hoplag: %w: a request of %d bytes", estimate.ErrEncoding, len(request))
		}
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		r := assembly{nonce: request[requestNonce : requestNonce+nonceSize], pieces: make([][]byte, 1), missing: 1}
		for r.missing > 0 {
			asked := 0
			for i := 0; i < len(r.pieces) && asked < ahead; i++ {
				if r.pieces[i] == nil {
					asked++
					conn.Write(question(request, i)) // an error is as if it were lost
				}
			}
			err := r.read(conn, asked)
			if ctx.Err() != nil && r.missing > 0 {
				return nil, fmt.Errorf("hoplag: no whole reply: %w", errors.Join(ctx.Err(), err))
			}
			if late, ok := err.(net.Error); err != nil && !(ok && late.Timeout()) {
				time.Sleep(retryAfter / 2) // a port that was closed a moment ago may be open again
			}
		}
		return bytes.Join(r.pieces, nil), nil
	}
}

// question returns the datagram that asks for a piece.
func question(request []byte, index int) []byte {
	b := binary.BigEndian.AppendUint16([]byte(questionMagic), uint16(index))
	b = binary.BigEndian.AppendUint16(b, uint16(len(request)))
	b = append(b, request...)
	return append(b, make([]byte, max(0, questionSize-len(b)))...)
}

// An assembly is the pieces received of the reply to a request.
type assembly struct {
	nonce   []byte
	pieces  [][]byte
	missing int
}

// read reads as many pieces as were asked for, unless none comes for a while.
func (r *assembly) read(conn net.Conn, asked int) error {
	buffer := make([]byte, pieceHead+pieceSize+1)
	for asked > 0 && r.missing > 0 {
		conn.SetReadDeadline(time.Now().Add(retryAfter))
		n, err := conn.Read(buffer)
		if err != nil {
			return err
		}
		b := buffer[:n]
		if n < pieceHead || string(b[:4]) != pieceMagic || !bytes.Equal(b[4:4+nonceSize], r.nonce) {
			continue
		}
		index, count := int(binary.BigEndian.Uint16(b[4+nonceSize:])), int(binary.BigEndian.Uint16(b[6+nonceSize:]))
		if len(r.pieces) == 1 && r.pieces[0] == nil && count > 1 {
			r.pieces, r.missing = make([][]byte, count), count
		}
		if count == len(r.pieces) && index < count && r.pieces[index] == nil {
			r.pieces[index] = bytes.Clone(b[pieceHead:])
			r.missing--
			asked--
		}
	}
	return nil
}
