package embedded

import (
	"context"
	"crypto/rand"

	"github.com/hoplag/hoplag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// idKey is the metadata that carries the id of a call or of a stream.
const idKey = "hoplag-id"

// Calls measures unary calls of gRPC each way, at the client with
// grpc.WithUnaryInterceptor(c.Client) and at the server with
// grpc.UnaryInterceptor(c.Server): the requests there, and the responses of calls
// that succeed back. What is refused before it comes to the server's interceptor
// is lost, and so is a response that comes too late.
type Calls struct{ Point *hoplag.Point }

// Client is a grpc.UnaryClientInterceptor.
func (c Calls) Client(ctx context.Context, method string, q, a any, cc *grpc.ClientConn, next grpc.UnaryInvoker,
	o ...grpc.CallOption) error {
	id := rand.Text()
	c.Point.Passed([]byte(id))
	err := next(metadata.AppendToOutgoingContext(ctx, idKey, id), method, q, a, cc, o...)
	if err == nil {
		c.Point.Back.Passed([]byte(id))
	}
	return err
}

// Server is a grpc.UnaryServerInterceptor.
func (c Calls) Server(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ids := metadata.ValueFromIncomingContext(ctx, idKey)
	if len(ids) != 1 {
		return next(ctx, q) // not from a client that measures
	}
	c.Point.Passed([]byte(ids[0]))
	a, err := next(ctx, q)
	if err == nil {
		c.Point.Back.Passed([]byte(ids[0]))
	}
	return a, err
}
