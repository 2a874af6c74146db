package hashing_test

import (
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Frames skips frames that carry no IP and reports the indices of the others.
func TestIdentifierFrames(t *testing.T) {
	arp := unhex(macs + "0806 0001080006040001")
	frames := [][]byte{arp, unhex(macs + "0800 " + tcp4 + tcp + data), arp,
		unhex(macs + "8847 000021ff " + tcp4 + tcp + data), unhex(macs + "86dd " + tcp6 + tcp + data), nil}
	want := []int{1, 3, 4}
	for _, link := range []hashing.LinkType{hashing.LinkEthernet, 65535} {
		if link == 65535 {
			want = nil
		}
		d := hashing.NewIdentifier(9, link, hashing.DefaultTunnels)
		packets, flows, at := make([]hashing.Packet, 6), make([]hashing.Flow, 6), make([]int, 6)
		n := d.Frames(frames, packets, flows, at)
		if !slices.Equal(at[:n], want) {
			t.Fatalf("link %d: frames %v, want %v", link, at[:n], want)
		}
		for i, frame := range at[:n] {
			f := mustParse(t, link, frames[frame])
			if packets[i] != f.Digest(9) || flows[i] != f.Tuple.Flow(9) {
				t.Errorf("frame %d: %#x of %#x, want %#x of %#x", frame, packets[i], flows[i], f.Digest(9), f.Tuple.Flow(9))
			}
		}
		alone := make([]hashing.Packet, 6)
		if m := d.Frames(frames, alone, nil, nil); m != n || !slices.Equal(alone[:m], packets[:n]) {
			t.Errorf("without flows: %#x, want %#x", alone[:m], packets[:n])
		}
	}
}

// Frames and identifiers look into additional ports at any depth.
func TestTunnelPorts(t *testing.T) {
	cilium := hashing.Tunnels{Depth: 1, VXLAN: 8473, Geneve: 9999, GTP: 2153}
	want := mustParse(t, hashing.LinkRaw, unhex(v4))
	for _, header := range []string{
		outerUDP(8473, 22+48) + "08000000 00001200 " + macs + "0800 ",
		outerUDP(9999, 22+48) + "0000 6558 00001200 " + macs + "0800 ",
		outerUDP(2153, 8+48) + "30ff 0030 00000001 ",
	} {
		frame := unhex(macs + "0800 " + header + v4)
		for depth := -1; depth < 7; depth++ {
			tunnels := cilium
			tunnels.Depth = depth
			var f, without hashing.Frame
			if err := f.ParseWith(hashing.LinkEthernet, frame, &tunnels); err != nil || (f.Digest(7) == want.Digest(7)) != (depth > 0) {
				t.Errorf("%s, depth %d: %+v, %v", header, depth, f, err)
			}
			var got [1]hashing.Packet
			n := hashing.NewIdentifier(7, hashing.LinkEthernet, tunnels).Frames([][]byte{frame}, got[:], nil, nil)
			if n != 1 || got[0] != f.Digest(7) {
				t.Errorf("%s, depth %d: identified as %#x, want %#x", header, depth, got, f.Digest(7))
			}
			if without.Parse(hashing.LinkEthernet, frame); without.Tunnels != 0 {
				t.Errorf("%s: looked into without being told to", header)
			}
		}
	}
}

// Points that look into different tunnels have different fingerprints; with the default tunnels it is the
// seed's.
func TestTunnelsIdentity(t *testing.T) {
	seed := hashing.Fingerprint(7)
	if got := hashing.DefaultTunnels.Identity(seed); got != seed {
		t.Errorf("the default has the identity %#x, want the seed's, %#x", got, seed)
	}
	seen := map[uint64]hashing.Tunnels{seed: hashing.DefaultTunnels}
	for _, tunnels := range []hashing.Tunnels{{}, {Depth: 1}, {Depth: 3}, {Depth: 2, VXLAN: 1}, {Depth: 2, Geneve: 1}, {Depth: 2, GTP: 1}} {
		id := tunnels.Identity(seed)
		if other, ok := seen[id]; ok || id == tunnels.Identity(seed+1) {
			t.Errorf("%+v and %+v have one identity", tunnels, other)
		}
		seen[id] = tunnels
	}
}

// Both ways to parse frames, and identifiers, look into VXLAN within VXLAN as deep as asked and no deeper, and
// are not misled by a port that only looks like a tunnel's.
func TestNestedVXLAN(t *testing.T) {
	for _, port := range []int{4789, 4789 + 1024} {
		packet, size := v4, 48
		for levels := range 4 {
			frame := unhex(macs + "0800 " + packet)
			for depth := range 4 {
				for link, frame := range map[hashing.LinkType][]byte{hashing.LinkEthernet: frame, hashing.LinkRaw: frame[14:]} {
					want, err := slowParseDepth(link, frame, depth)
					if err != nil || want.tunnels != min(depth, levels) && port == 4789 {
						t.Fatalf("the reference: %+v, %v", want, err)
					}
					var f hashing.Frame
					var got [1]hashing.Packet
					tunnels := hashing.Tunnels{Depth: depth}
					hashing.NewIdentifier(7, link, tunnels).Frames([][]byte{frame}, got[:], nil, nil)
					err = f.ParseWith(link, frame, &tunnels)
					digest := hashing.Digest(7, want.hashed)
					if err != nil || int(f.Tunnels) != want.tunnels || f.Digest(7) != digest || got[0] != digest {
						t.Errorf("link %d, port %d, %d levels, depth %d: %d tunnels (%v), identified as %#x, want %d and %#x",
							link, port, levels, depth, f.Tunnels, err, got, want.tunnels, digest)
					}
				}
			}
			packet = outerUDP(port, 22+size) + "08000000 00001200 " + macs + "0800 " + packet
			size += 50
		}
	}
}
