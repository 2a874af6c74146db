package embedded

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/rtp"
)

// TestRTP sends a video stream through pion's interceptors, over UDP that loses
// packets.
func TestRTP(t *testing.T) {
	t.Parallel()
	m, exact := newBench(t, testConfig, testConfig), newTruth()
	m.begins(t)
	receiver := relay.ListenPacket(t, "127.0.0.1:0")
	sender := relay.Must(net.Dial("udp", relay.Datagrams(t, receiver.LocalAddr().String(), lossy(20*time.Millisecond, 0)).String()))(t)
	defer sender.Close()

	info := &interceptor.StreamInfo{SSRC: 0xcafe, ClockRate: 90000}
	out := chain(t, &RTP{Out: m.first.Direction, In: m.first.Back}).BindLocalStream(info, interceptor.RTPWriterFunc(
		func(h *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
			exact.left(fmt.Sprint(h.SSRC, h.SequenceNumber))
			b, err := h.Marshal()
			if err != nil {
				return 0, err
			}
			return sender.Write(append(b, payload...))
		}))
	in := chain(t, &RTP{Out: m.second.Back, In: m.second.Direction}).BindRemoteStream(info, interceptor.RTPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			n, _, err := receiver.ReadFrom(b)
			var h rtp.Header
			if _, bad := h.Unmarshal(b[:n]); err == nil && bad == nil {
				exact.arrived(fmt.Sprint(h.SSRC, h.SequenceNumber))
			}
			return n, a, err
		}))
	go func() {
		for b := make([]byte, 1500); ; {
			if _, _, err := in.Read(b, interceptor.Attributes{}); err != nil {
				return
			}
		}
	}()
	sequence := uint16(65000) // it wraps soon
	for frame := range 100 {
		for range 5 {
			h := &rtp.Header{Version: 2, SSRC: info.SSRC, SequenceNumber: sequence, Timestamp: uint32(3000 * frame)}
			relay.Must(out.Write(h, make([]byte, 1100), interceptor.Attributes{}))(t)
			sequence++
		}
		time.Sleep(12 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	m.agrees(t, "media", &m.forth, exact)
}

// chain builds the interceptors of one end: ours first, and pion's own.
func chain(t *testing.T, ours *RTP) interceptor.Interceptor {
	t.Helper()
	var registry interceptor.Registry
	registry.Add(ours)
	registry.Add(relay.Must(report.NewSenderInterceptor())(t))
	registry.Add(relay.Must(report.NewReceiverInterceptor())(t))
	c := relay.Must(registry.Build(""))(t)
	t.Cleanup(func() { c.Close() })
	return c
}
