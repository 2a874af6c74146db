package embedded

import (
	"github.com/hoplag/hoplag"
	"golang.zx2c4.com/wireguard/conn"
)

// A Bind is a [conn.Bind] of WireGuard that measures the way between two peers:
// give it to device.NewDevice in place of the Bind within it. An encrypted
// datagram is the same at both ends and like no other, so it is its own id. Both
// directions are measured, so the clocks need not agree.
type Bind struct {
	conn.Bind

	// Peer returns what leaves for a peer and what comes from it: the two
	// directions of a point that this peer alone has, or nil for strangers.
	Peer func(conn.Endpoint) (out, in *hoplag.Direction)
}

// Send tells what leaves.
func (b Bind) Send(datagrams [][]byte, to conn.Endpoint) error {
	if out, _ := b.Peer(to); out != nil {
		for _, d := range datagrams {
			out.Passed(d)
		}
	}
	return b.Bind.Send(datagrams, to)
}

// Open returns functions that tell what they receive.
func (b Bind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	receivers, port, err := b.Bind.Open(port)
	for i, receive := range receivers {
		receivers[i] = func(buffers [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
			n, err := receive(buffers, sizes, from)
			for i := range n {
				if _, in := b.Peer(from[i]); in != nil && sizes[i] > 0 {
					in.Passed(buffers[i][:sizes[i]])
				}
			}
			return n, err
		}
	}
	return receivers, port, err
}

// go test -run TestWireGuard -v prints, beside the exact delays:
//
//	first → second  22.94 ms (17.57 ms to 28.32 ms), sent 42, lost 3 (7.14 %); back 23.10 ms (17.35 ms to 28.85
//	    ms), sent 34, lost 2 (5.88 %); round trip 46.04 ms (35.26 ms to 56.82 ms); clocks: offset 2220 s ± 173.8 µs,
//	    drift -39.8 ppm
//	first → second  20.99 ms (17.67 ms to 24.31 ms), sent 59, lost 6 (10.17 %); back 20.63 ms (17.61 ms to 23.66
//	    ms), sent 54, lost 6 (11.11 %); round trip 41.63 ms (35.64 ms to 47.62 ms); clocks: offset 2220 s ± 179.1 µs,
//	    drift -39.8 ppm
//	first → second  20.38 ms (17.29 ms to 23.48 ms), sent 61, lost 6 (9.84 %); back 20.97 ms (17.47 ms to 24.48
//	    ms), sent 53, lost 5 (9.43 %); round trip 41.36 ms (35.13 ms to 47.59 ms); clocks: offset 2220 s ± 184.5 µs,
//	    drift -39.8 ppm
//	first → second  20.64 ms (17.70 ms to 23.57 ms), sent 59, lost 6 (10.17 %); back 20.33 ms (16.85 ms to 23.80
//	    ms), sent 55, lost 6 (10.91 %); round trip 40.96 ms (34.94 ms to 46.98 ms); clocks: offset 2220 s ± 194.5 µs,
//	    drift -22.8 ppm
//	first → second  21.84 ms (17.79 ms to 25.89 ms), sent 51, lost 5 (9.80 %); back 21.84 ms (17.98 ms to 25.70
//	    ms), sent 45, lost 4 (8.89 %); round trip 43.68 ms (36.20 ms to 51.16 ms); clocks: offset 2220 s ± 218.1 µs,
//	    drift 28.8 ppm
//	first → second  20.83 ms (17.41 ms to 24.25 ms), sent 59, lost 6 (10.17 %); back 20.49 ms (17.42 ms to 23.57
//	    ms), sent 54, lost 5 (9.26 %); round trip 41.32 ms (35.32 ms to 47.32 ms); clocks: offset 2220 s ± 249.8 µs,
//	    drift 28.8 ppm
//	first → second  20.80 ms (17.46 ms to 24.15 ms), sent 55, lost 6 (10.91 %); back 21.20 ms (17.73 ms to 24.68
//	    ms), sent 48, lost 5 (10.42 %); round trip 42.01 ms (35.56 ms to 48.46 ms); clocks: offset 2220 s ± 189.1 µs,
//	    drift 28.8 ppm
//	first → second  16.57 ms (4.549 ms to 28.60 ms), sent 15, lost 1 (6.67 %); back 18.09 ms (7.964 ms to 28.22
//	    ms), sent 19, lost 2 (10.53 %); round trip 34.67 ms (12.68 ms to 56.65 ms); clocks: offset 2220 s ± 88.55 µs,
//	    drift 28.8 ppm
//	forth exactly:  20.96 ms, sent 401, lost 39
//	forth measured: 20.91 ms, sent 401, lost 39
//	back  exactly:  20.93 ms, sent 362, lost 35
//	back  measured: 20.92 ms, sent 362, lost 35
