package main

import (
	"encoding/binary"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// BenchmarkForward forwards datagrams, 64 that wait at a time, to a socket that
// drops them, measured and bare by turns, and says what measuring leaves of the
// rate, with its standard error. It compares medians of some turns, which bear
// other work on the machine.
func BenchmarkForward(b *testing.B) {
	b.Run("all", func(b *testing.B) { benchmarkForward(b, false) })
	b.Run("classes", func(b *testing.B) { benchmarkForward(b, true) })
}

func benchmarkForward(b *testing.B, apart bool) {
	sink, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	h, err := newHalf(true, "a key of sixteen bytes and more", "127.0.0.1:0", sink.LocalAddr().String(), apart)
	if err != nil {
		b.Fatal(err)
	}
	defer h.close()
	client, err := net.Dial("udp", h.address())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	const waiting, turns = 64, 100
	datagram, buffer, points := make([]byte, 200), new(buffer), h.points
	var spent [2][]float64 // of some turns: bare, measured; ns a datagram
	var shares estimate.Moments
	var bare, measured float64
	for number := 0; b.Loop(); number++ {
		for i := range waiting {
			binary.BigEndian.PutUint64(datagram, uint64(number*waiting+i))
			client.Write(datagram)
		}
		way := (number + number/2) % 2 // 0 1 1 0
		if h.points = points; way == 0 {
			h.points = [classes]*hoplag.Point{} // bare
		}
		began := time.Now()
		for range waiting {
			if err := h.relayOne(buffer, new(uint32)); err != nil {
				b.Fatal(err)
			}
		}
		spent[way] = append(spent[way], float64(time.Since(began))/waiting)
		if len(spent[0]) >= turns && len(spent[1]) >= turns {
			bare, measured = median(spent[0]), median(spent[1])
			shares.Add(100 * bare / measured)
			spent[0], spent[1] = spent[0][:0], spent[1][:0]
		}
	}
	if n := float64(shares.N()); n > 1 {
		b.ReportMetric(bare, "bare-ns/packet")
		b.ReportMetric(measured, "measured-ns/packet")
		b.ReportMetric(shares.Mean(), "%-of-bare")
		b.ReportMetric(shares.StdDev()/math.Sqrt(n), "%-error")
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
