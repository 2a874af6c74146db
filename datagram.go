package hoplag

import (
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
// What a stranger slips in spoils the reply's tag and no more; a reply of which
// a piece is lost is asked for again.
const (
	pieceMagic = "HLPD"
	pieceHead  = 4 + nonceSize + 4
	pieceSize  = 1200 - pieceHead

	// maxPacketReply bounds the records of a reply, in bytes, unless one alone
	// is longer: what a socket's buffer holds.
	maxPacketReply = 32 << 10

	// retryAfter is how long the next piece of a reply is waited for.
	retryAfter = 200 * time.Millisecond
)

// ServePacket answers the followers that send datagrams, until the connection
// is closed. Datagrams that are not signed requests are dropped. A reply goes
// to whoever a request seems to come from, and is longer than it: who can read
// and replay requests can have replies sent elsewhere.
func (p *Point) ServePacket(conn net.PacketConn) error {
	buffer := make([]byte, maxRequest)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hoplag: %w", err)
		}
		reply, nonce, err := p.answer(buffer[:n], maxPacketReply)
		if err != nil {
			continue
		}
		pieces := (len(reply) + pieceSize - 1) / pieceSize
		for i := range pieces {
			b := append([]byte(pieceMagic), nonce[:]...)
			b = binary.BigEndian.AppendUint16(b, uint16(i))
			b = binary.BigEndian.AppendUint16(b, uint16(pieces))
			b = append(b, reply[i*pieceSize:min(len(reply), (i+1)*pieceSize)]...)
			if _, err := conn.WriteTo(b, from); err != nil {
				break // as if it were lost
			}
		}
	}
}

// Datagrams exchanges over a connected socket with a point's
// [Point.ServePacket]. It asks again where nothing comes, until the context is
// done.
func Datagrams(conn net.Conn) Exchange {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		for {
			if _, err := conn.Write(request); err != nil && ctx.Err() == nil {
				// A port that was closed a moment ago may be open again.
				time.Sleep(retryAfter / 4)
			}
			reply, err := readPieces(ctx, conn, request)
			if err == nil || ctx.Err() != nil {
				return reply, err
			}
		}
	}
}

// readPieces puts the pieces of the reply to a request together.
func readPieces(ctx context.Context, conn net.Conn, request []byte) ([]byte, error) {
	nonce := request[requestNonce : requestNonce+nonceSize]
	var pieces [][]byte
	missing := -1
	buffer := make([]byte, pieceHead+pieceSize+1)
	for missing != 0 {
		conn.SetReadDeadline(time.Now().Add(retryAfter))
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("hoplag: no whole reply: %w", err)
		}
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		b := buffer[:n]
		if n < pieceHead || string(b[:4]) != pieceMagic || string(b[4:4+nonceSize]) != string(nonce) {
			continue
		}
		index, count := int(binary.BigEndian.Uint16(b[4+nonceSize:])), int(binary.BigEndian.Uint16(b[6+nonceSize:]))
		if missing < 0 {
			pieces, missing = make([][]byte, count), count
		}
		if count == len(pieces) && index < count && pieces[index] == nil {
			pieces[index] = append([]byte{}, b[pieceHead:]...)
			missing--
		}
	}
	var reply []byte
	for _, piece := range pieces {
		reply = append(reply, piece...)
	}
	return reply, nil
}
