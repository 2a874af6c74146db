package embedded

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
)

// A messageTruth is the truth beneath a stream.
type messageTruth struct {
	next           grpc.Stream
	id             string
	out, in        *truth
	sent, received int
}

func (s *messageTruth) SendMsg(m any) error {
	s.sent++
	s.out.left(fmt.Sprint(s.id, s.sent))
	return s.next.SendMsg(m)
}

func (s *messageTruth) RecvMsg(m any) error {
	err := s.next.RecvMsg(m)
	if err == nil {
		s.received++
		s.in.arrived(fmt.Sprint(s.id, s.received))
	}
	return err
}

type (
	truthfulClient struct {
		client
		*messageTruth
	}
	truthfulServer struct {
		server
		*messageTruth
	}
)

// TestStreams asks gRPC's reflection service, which answers every question on a
// stream, and cancels a stream with all that is on its way.
func TestStreams(t *testing.T) {
	t.Parallel()
	m, forth, back := newBench(t, testConfig, testConfig), newTruth(), newTruth()
	m.begins(t)
	served := func(service any, next grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		id := incomingID(next.Context())
		return handle(service, truthfulServer{server{next}, &messageTruth{next: next, id: id, out: back, in: forth}})
	}
	called := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		o ...grpc.CallOption) (grpc.ClientStream, error) {
		next, err := open(ctx, d, cc, method, o...)
		return truthfulClient{client{next}, &messageTruth{next: next, id: outgoingID(ctx), out: forth, in: back}}, err
	}
	cc := connection(t, []grpc.ServerOption{grpc.ChainStreamInterceptor(Streams{m.second}.Server, served)},
		grpc.WithChainStreamInterceptor(Streams{m.first}.Client, called))
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		s := relay.Must(reflection.NewServerReflectionClient(cc).ServerReflectionInfo(ctx))(t)
		var answers sync.WaitGroup
		answers.Go(func() {
			for ended := error(nil); ended == nil; {
				_, ended = s.Recv()
			}
		})
		question := &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}
		for range 200 {
			relay.Check(t, s.Send(question))
			time.Sleep(3 * time.Millisecond)
		}
		cancel()
		answers.Wait()
	}
	time.Sleep(100 * time.Millisecond)
	m.agrees(t, "forth", &m.forth, forth)
	m.agrees(t, "back", &m.back, back)
	if back.came == len(back.sent) {
		t.Error("nothing was lost")
	}
}
