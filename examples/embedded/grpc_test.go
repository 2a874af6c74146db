package embedded

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

// outgoingID and incomingID are what the truth knows a call by.
func outgoingID(ctx context.Context) string {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md.Get(idKey)[0]
}

func incomingID(ctx context.Context) string { return metadata.ValueFromIncomingContext(ctx, idKey)[0] }

// TestCalls runs gRPC's own health service with a limiter before it, which
// refuses calls, and a proxy that loses responses.
func TestCalls(t *testing.T) {
	t.Parallel()
	m, forth, back := newBench(t, testConfig, testConfig), newTruth(), newTruth()
	m.begins(t)
	var calls atomic.Int64
	refuse := func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		n := calls.Add(1)
		if n%10 == 0 {
			return nil, status.Error(codes.ResourceExhausted, "too many calls")
		}
		a, err := next(ctx, q)
		if n%10 == 5 {
			return nil, status.Error(codes.Unavailable, "the response is lost")
		}
		return a, err
	}
	var served grpc.UnaryServerInterceptor = func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		forth.arrived(incomingID(ctx))
		defer func() { back.left(incomingID(ctx)) }()
		return next(ctx, q)
	}
	var called grpc.UnaryClientInterceptor = func(ctx context.Context, method string, q, a any, cc *grpc.ClientConn,
		next grpc.UnaryInvoker, o ...grpc.CallOption) error {
		forth.left(outgoingID(ctx))
		err := next(ctx, method, q, a, cc, o...)
		if err == nil {
			back.arrived(outgoingID(ctx))
		}
		return err
	}
	cc := connection(t, []grpc.ServerOption{grpc.ChainUnaryInterceptor(refuse, Calls{m.second}.Server, served)},
		grpc.WithChainUnaryInterceptor(Calls{m.first}.Client, called))
	client := grpc_health_v1.NewHealthClient(cc)
	var all sync.WaitGroup
	for range 400 {
		all.Go(func() { client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}) })
		time.Sleep(3 * time.Millisecond)
	}
	all.Wait()
	m.agrees(t, "calls", &m.forth, forth)
	m.agrees(t, "back", &m.back, back)
}

// connection connects to a server with gRPC's own services, 20 ms away and 10 ms
// back.
func connection(t *testing.T, server []grpc.ServerOption, client ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l, s := relay.Listen(t), grpc.NewServer(server...)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	wire := relay.NewWire(t, l.Addr().String(), 20*time.Millisecond, 10*time.Millisecond)
	client = append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	cc := relay.Must(grpc.NewClient("passthrough:///"+wire.Addr().String(), client...))(t)
	t.Cleanup(func() { cc.Close() })
	return cc
}
