package embedded

import (
	"context"
	"crypto/rand"
	"io"

	"github.com/hoplag/hoplag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Streams measures every message of gRPC's streams each way, at the client with
// grpc.WithStreamInterceptor(s.Client) and at the server with
// grpc.StreamInterceptor(s.Server). The id of a message is that of its stream,
// and its number.
type Streams struct{ Point *hoplag.Point }

// Client is a grpc.StreamClientInterceptor.
func (s Streams) Client(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
	o ...grpc.CallOption) (grpc.ClientStream, error) {
	id := rand.Text()
	next, err := open(metadata.AppendToOutgoingContext(ctx, idKey, id), d, cc, method, o...)
	return clientStream{client{next}, messages{next, s.Point.Stream(id, 1), s.Point.Back.Stream(id, 1)}}, err
}

// Server is a grpc.StreamServerInterceptor.
func (s Streams) Server(service any, next grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ids := metadata.ValueFromIncomingContext(next.Context(), idKey)
	if len(ids) != 1 {
		return handle(service, next) // not from a client that measures
	}
	return handle(service, serverStream{server{next}, messages{next, s.Point.Back.Stream(ids[0], 1), s.Point.Stream(ids[0], 1)}})
}

// messages tells of the messages of a stream that pass, one by one.
type messages struct {
	next    grpc.Stream
	out, in io.Writer
}

func (m messages) SendMsg(v any) error {
	m.out.Write([]byte{0})
	return m.next.SendMsg(v)
}

func (m messages) RecvMsg(v any) error {
	err := m.next.RecvMsg(v)
	if err == nil {
		m.in.Write([]byte{0})
	}
	return err
}

// The methods of messages hide those of the streams, which are one level deeper.
type (
	client       struct{ grpc.ClientStream }
	server       struct{ grpc.ServerStream }
	clientStream struct {
		client
		messages
	}
	serverStream struct {
		server
		messages
	}
)
