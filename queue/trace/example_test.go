package trace_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// capture is a file of packets that pass a point at the given times.
func capture(times ...int64) io.Reader {
	return bytes.NewReader(trace.CaptureFile(hashing.LinkRaw, times...))
}

func ExampleReader_All() {
	r, err := trace.NewReader(capture(1_000_000_000, 1_000_000_250))
	if err != nil {
		panic(err)
	}
	for rec, err := range r.All() {
		if err != nil {
			panic(err)
		}
		fmt.Println(rec.Time, rec.Length, rec.Frame)
	}
	// Output:
	// 1000000000 1 [0]
	// 1000000250 1 [1]
}

func ExamplePair() {
	in, err := trace.NewReader(capture(100, 200, 300))
	if err != nil {
		panic(err)
	}
	out, err := trace.NewReader(capture(150, 300, 350))
	if err != nil {
		panic(err)
	}
	pair := trace.NewPair(in, out)
	for {
		side, rec, err := pair.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(rec.Time, side, rec.Frame)
	}
	// Output:
	// 100 ingress [0]
	// 150 egress [0]
	// 200 ingress [1]
	// 300 ingress [2]
	// 300 egress [1]
	// 350 egress [2]
}

// Traffic like TCP's at 70 % of a link's rate, and how long it waits there.
func ExampleNewFlows() {
	config := trace.DefaultFlows
	config.Load.Utilisation = 0.7
	config.Seed = 1
	source, err := trace.NewFlows(config)
	if err != nil {
		panic(err)
	}
	link, err := queue.NewLink(queue.LinkConfig{Rate: config.Load.Rate})
	if err != nil {
		panic(err)
	}
	var p queue.Packet
	var n, delay float64
	for source.Next(&p); p.Time < 100e6; source.Next(&p) { // 100 ms
		egress, _ := link.Send(p.Time, int(p.Bytes))
		delay += float64(egress - p.Time)
		n++
	}
	fmt.Printf("%.0f packets took %.0f µs on average\n", n, delay/n/1e3)
	// Output: 251598 packets took 8 µs on average
}
