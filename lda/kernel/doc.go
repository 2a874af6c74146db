// Package kernel counts packets inside the Linux kernel. It sees every packet, stamps it by the kernel's clock,
// and needs no copy and no wake-up. Use it where a Linux host is the switch.
//
//	point, err := kernel.New(kernel.DefaultConfig) // as root
//	err = point.Attach("eth0", kernel.Egress)
//	for range time.Tick(time.Second) {
//		interval, err := point.Rotate()
//		record, err := interval.Aggregator.MarshalBinary() // send it to the other point
//		err = point.Release(interval)
//	}
//
// A Point produces an ordinary [lda.Aggregator], to encode, merge and compare like that of any other point.
//
// # The program
//
// New generates a program for the kernel's virtual machine (eBPF) from the Config, assembles it and loads it,
// using only the standard library: no compiler, no cgo, nothing to install. The program parses frames as
// [hashing.Frame.ParseWith] does with no [hashing.Tunnels]: VLAN tags, MPLS labels, IPv4 with options, IPv6
// with extension headers, fragments. It hashes them as [hashing.Digest] does, and adds the time to one cell of
// the LDA. It counts the frames that it skips, by reason: see [Counters]. It follows up to 8 tags and 8 labels;
// frames with more, or with rarer tags, such as those of PPPoE, MACsec and NSH, count as Deep.
//
// Each processor has its own cells, so that none waits for another, and has two sets of them. Rotate changes
// one word that tells all programs to use the other set, and reads the first one when the last program that saw
// the old word has ended. No packet is lost or counted twice. The cells are mapped into this process, so that
// reading them takes no system call.
//
// # Packet identity
//
// A sending host leaves the transport checksum to the network card, so the checksum is not part of a packet's
// identity. A point elsewhere computes the same identity with [Digest] of this package. The host may also leave
// it to the card to cut large segments (GSO, TSO), and a receiving host may merge segments (GRO). Such a bundle
// counts as the packets that it stands for, each with the sequence number, identification, lengths, flags and
// payload that it has on the wire. All of them get the bundle's timestamp.
//
// This works for bundles of at most 256 segments of TCP or UDP outside tunnels, if their identification rises
// by one, as that of Linux does, or if it is always 0, in segments of TCP that nobody may fragment (RFC 6864).
// Other bundles are not counted, and Rotate reports them with [ErrOffload]; ethtool -K eth0 tso off gso off gro
// off lro off prevents them. Three kinds are mistaken for others. A bundle from Linux that happens to begin
// with identification 0, one in 65,536, counts as if all its packets had that. Packets with any other numbering
// count as if their numbers rose. Bundles of a tunnel in UDP count as cut at the outer header, unless its port
// is one of VXLAN, Geneve, GTP or MPLS: turn tx-udp_tnl-segmentation off where they pass. A segment that the
// card merges before XDP (LRO) looks like a packet: turn LRO off.
//
// # What it costs
//
// Plain packets, IPv4 or IPv6 with TCP or UDP, take a short cut. Measured one by one in a loop (go test -run
// '^$' -bench Stages ./lda/kernel), a packet costs 77 ns, of which reading the kernel's clock takes 38 and
// calling the program 21; live (-bench Live) it costs 144, of which calling the program and counting take 56.
// Remembering a packet in the kernel's hash map costs 284 ns at each end. A bundle costs as much as its
// packets. Rotate waits for a few milliseconds, while counting continues.
//
// # What it cannot do
//
// A point needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or root; Linux 6.6, or 5.18 for XDP alone; and a
// little-endian machine. It stops counting when the process ends.
//
// It does not know flows: package lds and the others that do are for programs outside the kernel. Package [lda]
// names the paper.
package kernel
