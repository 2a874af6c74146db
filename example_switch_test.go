package hoplag_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
)

// A software switch asks for its slowest flows. Frames are identified by the
// bytes that stay the same on the way, and flows by their 5-tuple; what is read
// from a ring together passes together.
func Example_softwareSwitch() {
	config := fast
	config.Flows = 1000
	ingress, _ := hoplag.NewPoint(config)
	egress, _ := hoplag.NewPoint(config)
	defer ingress.Close()
	defer egress.Close()

	pass := func(port *hoplag.Direction, bytes []byte) {
		var frame hashing.Frame
		if frame.Parse(hashing.LinkEthernet, bytes) == nil {
			port.RecordIn(frame.Tuple.Flow(ingress.Seed()), time.Now(), frame.Digest(ingress.Seed()))
		}
	}
	go forwardFrames(func(bytes []byte) { pass(ingress.Direction, bytes) }, func(bytes []byte) { pass(egress.Direction, bytes) })

	ask := func(_ context.Context, request []byte) ([]byte, error) { return ingress.Answer(request) }
	for r := range egress.FollowOver(context.Background(), ask) {
		if len(r.Forth.Flows) == 8 {
			tuple := hashing.MakeTuple(17, netip.MustParseAddrPort("10.0.0.7:1000"), netip.MustParseAddrPort("10.1.0.1:53"))
			fmt.Println("the slow flow is the slowest:", r.Forth.Flows[0].Flow == tuple.Flow(egress.Seed()))
			break
		}
	}
	// Output: the slow flow is the slowest: true
}

// What follows is not about measuring.

// forwardFrames makes UDP frames of eight flows, of which the last is delayed
// by twenty milliseconds.
func forwardFrames(in, out func([]byte)) {
	for i := range 4000 {
		b := make([]byte, 14+20+8+8)
		b[12], b[13] = 8, 0
		ip := b[14:]
		ip[0], ip[3], ip[8], ip[9] = 0x45, 36, 64, 17
		ip[4], ip[5] = byte(i>>8), byte(i)
		copy(ip[12:], []byte{10, 0, 0, byte(i % 8), 10, 1, 0, 1})
		copy(ip[20:], []byte{1000 >> 8, 1000 & 0xff, 0, 53, 0, 16, 0, 0, byte(i >> 8), byte(i)})
		in(b)
		if i%8 == 7 {
			time.AfterFunc(20*time.Millisecond, func() { out(b) })
		} else {
			out(b)
		}
		time.Sleep(500 * time.Microsecond)
	}
}
