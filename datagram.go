package hoplag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
)

// A reply over datagrams is cut into pieces, each in a datagram:
//
//	magic 4 · nonce of the request 16 · index of the piece 2 · pieces 2 · bytes
//
// What a stranger slips in spoils the reply's tag and nothing else. If pieces
// are lost, the same request is sent again and answered as before, until all
// pieces have come.
const (
	pieceMagic = "HLPD"
	pieceHead  = 4 + nonceSize + 4
	pieceSize  = 1200 - pieceHead

	// maxPacketReply bounds the records of a reply, in bytes, unless one alone
	// is longer. A socket's buffer holds that much.
	maxPacketReply = 32 << 10

	// retryAfter is how long to wait for the next piece of a reply.
	retryAfter = 100 * time.Millisecond

	// keptReplies is how many replies a point keeps, to send them again.
	keptReplies = 16
)

// ServePacket answers followers that send datagrams, until the connection is
// closed. It drops datagrams that are not signed requests. A reply goes to the
// address that the request seems to come from, and is longer than the request,
// so someone who can read and replay requests can have replies sent elsewhere.
func (p *Point) ServePacket(conn net.PacketConn) error {
	buffer := make([]byte, maxRequest)
	var kept [keptReplies]struct {
		request string
		pieces  [][]byte
	}
	next := 0
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hoplag: %w", err)
		}
		at := 0
		for at < keptReplies && (kept[at].pieces == nil || kept[at].request != string(buffer[:n])) {
			at++
		}
		if at == keptReplies {
			reply, nonce, err := p.answer(buffer[:n], maxPacketReply)
			if err != nil {
				continue
			}
			at, next = next, (next+1)%keptReplies
			kept[at].request, kept[at].pieces = string(buffer[:n]), cutUp(reply, nonce)
		}
		for _, piece := range kept[at].pieces {
			if _, err := conn.WriteTo(piece, from); err != nil {
				break // as if it were lost
			}
		}
	}
}

// cutUp cuts a reply into datagrams.
func cutUp(reply []byte, nonce [nonceSize]byte) (pieces [][]byte) {
	count := (len(reply) + pieceSize - 1) / pieceSize
	for i := range count {
		b := append([]byte(pieceMagic), nonce[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(i))
		b = binary.BigEndian.AppendUint16(b, uint16(count))
		pieces = append(pieces, append(b, reply[i*pieceSize:min(len(reply), (i+1)*pieceSize)]...))
	}
	return pieces
}

// Datagrams exchanges over a connected socket with a point's
// [Point.ServePacket]. It repeats a request without reply until the context is
// done.
func Datagrams(conn net.Conn) Exchange {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		var r assembly
		copy(r.nonce[:], request[min(len(request), requestNonce):])
		for {
			if _, err := conn.Write(request); err != nil && ctx.Err() == nil {
				// A port that was closed a moment ago may be open again.
				time.Sleep(retryAfter / 2)
			}
			err := r.read(conn)
			if err == nil {
				return bytes.Join(r.pieces, nil), nil
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("hoplag: no whole reply: %w", err)
			}
		}
	}
}

// An assembly is the pieces received of the reply to a request.
type assembly struct {
	nonce   [nonceSize]byte
	pieces  [][]byte
	missing int
}

// read reads pieces until all have come, or none has come for a while.
func (r *assembly) read(conn net.Conn) error {
	buffer := make([]byte, pieceHead+pieceSize+1)
	for r.pieces == nil || r.missing > 0 {
		conn.SetReadDeadline(time.Now().Add(retryAfter))
		n, err := conn.Read(buffer)
		if err != nil {
			return err
		}
		b := buffer[:n]
		if n < pieceHead || string(b[:4]) != pieceMagic || string(b[4:4+nonceSize]) != string(r.nonce[:]) {
			continue
		}
		index, count := int(binary.BigEndian.Uint16(b[4+nonceSize:])), int(binary.BigEndian.Uint16(b[6+nonceSize:]))
		if r.pieces == nil {
			r.pieces, r.missing = make([][]byte, count), count
		}
		if count == len(r.pieces) && index < count && r.pieces[index] == nil {
			r.pieces[index] = append([]byte{}, b[pieceHead:]...)
			r.missing--
		}
	}
	return nil
}
