package hoplag_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// fast makes examples end soon; a Config of no more than a Key is for use.
var fast = hoplag.Config{Key: hoplag.NewKey("a secret of both points"), Cut: 10 * time.Millisecond, Report: 100 * time.Millisecond}

// Two points measure the messages that pass them. Here they are in one
// process, and so on one clock, and messages take five milliseconds.
func Example() {
	config := fast
	config.ClocksAgree = true
	a, _ := hoplag.NewPoint(config)
	b, _ := hoplag.NewPoint(config)
	defer a.Close()
	defer b.Close()
	server := httptest.NewServer(a) // http.Handle("/hoplag", a), otherwise
	defer server.Close()

	go func() {
		for i := range 20_000 {
			id := []byte("message " + strconv.Itoa(i))
			a.Passed(id)
			time.AfterFunc(5*time.Millisecond, func() { b.Passed(id) })
			time.Sleep(time.Millisecond)
		}
	}()
	for r := range b.Follow(context.Background(), hoplag.HTTP(nil, server.URL)) {
		if i := r.Forth.MeanInterval95; r.Forth.Err != nil || i.High-i.Low > 1e6 {
			continue // nothing has passed yet, or it is not known to a millisecond, as on a busy host
		}
		fmt.Println("as long as that:", r.Forth.Mean >= 5e6)
		break
	}
	// Output: as long as that: true
}

// Two HTTP services that pass trace ids on: how long a request is on its way
// from one to the other, and the response back, however the clocks are set.
func Example_httpServices() {
	caller, _ := hoplag.NewPoint(fast)
	callee, _ := hoplag.NewPoint(fast)
	defer caller.Close()
	defer callee.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		id := []byte(r.Header.Get("Traceparent"))
		callee.Passed(id)
		defer callee.Back.Passed(id)
	})
	service := httptest.NewServer(mux)
	defer service.Close()
	reports := httptest.NewServer(caller)
	defer reports.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			request, _ := http.NewRequest("GET", service.URL+"/work", nil)
			id := []byte("00-" + strconv.Itoa(i) + "-01")
			request.Header.Set("Traceparent", string(id))
			caller.Passed(id)
			if response, err := http.DefaultClient.Do(request); err == nil {
				caller.Back.Passed(id)
				response.Body.Close()
			}
		}
	}()
	for r := range callee.Follow(ctx, hoplag.HTTP(nil, reports.URL)) {
		if r.ClockErr == nil && r.Forth.Err == nil && r.Back.Err == nil { // on a busy host that may take a while
			fmt.Println("requests and responses are measured")
			break
		}
	}
	// Output: requests and responses are measured
}

// A software switch asks for its slowest flows. Frames are identified by the bytes that stay the same on the way, and flows by their
// 5-tuple; what is read from a ring together passes together.
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
			port.Record(frame.Tuple.Flow(ingress.Seed()), time.Now(), frame.Digest(ingress.Seed()))
		}
	}
	go forwardFrames(func(bytes []byte) { pass(ingress.Direction, bytes) }, func(bytes []byte) { pass(egress.Direction, bytes) })

	ask := func(_ context.Context, request []byte) ([]byte, error) { return ingress.Answer(request) }
	for r := range egress.Follow(context.Background(), ask) {
		if len(r.Forth.Flows) == 8 {
			tuple := hashing.MakeTuple(17, netip.MustParseAddrPort("10.0.0.7:1000"), netip.MustParseAddrPort("10.1.0.1:53"))
			fmt.Println("the slow flow is the slowest:", r.Forth.Flows[0].Flow == tuple.Flow(egress.Seed()))
			break
		}
	}
	// Output: the slow flow is the slowest: true
}

// What follows is not about measuring.

// forwardFrames makes UDP frames of eight flows, the last of which is delayed by twenty milliseconds.
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

// Sizes follow from what is expected and what is to be known of it: every package that has sizes has a Demand, and a Plan that answers
// with a Config, of which methods tell what to expect; that of lds, which may choose a table or both, answers with a Forecast.
func Example_sizes() {
	// All packets' mean with a standard error of 0.5 %, at up to 1 % loss.
	all, err := lda.Plan(lda.Demand{Packets: 1e6, Loss: 0.01, MeanError: 0.005, Variation: 1})
	if err != nil {
		panic(err)
	}
	fmt.Println("lda:", all.EncodedSize(), "bytes an interval")

	// Flows of 1,000 packets and more, 95 of 100 of them, at 0.1 % loss.
	flows, err := lds.Plan(lds.Demand{
		Flows: 100_000, Shape: 0.8, Large: 1000, Loss: 0.001, Failure: 0.05, Base: lds.DefaultConfig,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("lds:", flows.EncodedSize, "bytes,", flows.Config.Rows, "rows of", flows.Config.Columns, "cells")

	// 50,000 packets a second, to be kept for months in 3 GB a day.
	months, err := colate.Plan(colate.Demand{Rate: 50_000, BytesADay: 3e9, Delay: 100e6})
	if err != nil {
		panic(err)
	}
	fmt.Printf("colate: %d counters, %.1f bits a packet\n", months.Counters, months.BitsPerPacket(50_000))
	// Output:
	// lda: 28702 bytes an interval
	// lds: 148549 bytes, 4 rows of 2855 cells
	// colate: 226249 counters, 5.6 bits a packet
}
