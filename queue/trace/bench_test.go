package trace

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
)

// benchmarkRead reads a capture in memory again and again. size is that of
// the capture decompressed.
func benchmarkRead(b *testing.B, file []byte, size int) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	packets := 0
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		for {
			_, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			packets++
		}
	}
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds()/1e6, "Mpkt/s")
}

// BenchmarkReader reads 2^18 packets of 96 bytes, a file of some 30 MB. A
// third of their bytes are random, which leaves gzip about as much to do as
// the headers of real packets.
func BenchmarkReader(b *testing.B) {
	const packets = 1 << 18
	o := binary.LittleEndian
	random := rand.New(rand.NewPCG(5, 6))
	frame := bytes.Repeat([]byte("the same bytes. "), 6)
	pcap := pcapFileHead(o, 0xa1b23c4d, 1)
	ng := ngIface(o, ngSection(o, nil), 1, 0)
	for i := range uint32(packets) {
		for j := 32; j < 64; j += 8 {
			o.PutUint64(frame[j:], random.Uint64())
		}
		pcap = pcapRecord(o, pcap, 1_700_000_000, i, 1500, string(frame))
		ng = ngEnhanced(o, ng, 0, uint64(i), 1500, string(frame))
	}
	b.Run("pcap", func(b *testing.B) { benchmarkRead(b, pcap, len(pcap)) })
	b.Run("pcapng", func(b *testing.B) { benchmarkRead(b, ng, len(ng)) })
	b.Run("pcap.gz", func(b *testing.B) { benchmarkRead(b, zip(b, pcap), len(pcap)) })
}
