// Package kernel counts packets inside the Linux kernel: no copy, no wake-up,
// every packet, stamped by the kernel's clock. It is the place for a point
// where a Linux host is the switch.
//
//	point, err := kernel.New(kernel.DefaultConfig) // as root
//	err = point.Attach("eth0", kernel.Egress)
//	for range time.Tick(time.Second) {
//		interval, err := point.Rotate()
//		record, err := interval.Aggregator.MarshalBinary() // send it to the other point
//		err = point.Release(interval)
//	}
//
// What comes out is an ordinary [lda.Aggregator], and an [lds.Sketch] where
// delays per flow are asked for: encode, merge and compare them like those of
// any other point.
//
// # The program
//
// New generates a program for the kernel's virtual machine (eBPF) from the
// Config, assembles it and loads it with the standard library alone: no
// compiler, no cgo, nothing installed. It parses frames as [hashing.Frame] does
// without looking into tunnels, that is, by [hashing.Frame.ParseDepth] with
// depth 0 (tags, labels, PPPoE, IPv4 with options, IPv6 with extension headers,
// fragments), hashes them as [hashing.Digest] does, and adds the time to one
// cell of the LDA and one of each row of the sketch. Frames that it passes over
// are counted, by reason: see [Counters]. It follows up to 8 tags and 8 labels;
// deeper frames are counted as such.
//
// Each processor has cells of its own, so that none waits for another, and has
// them twice: Rotate tells all programs by one word to use the other ones, and
// reads the first ones when the last program that saw the old word has ended.
// No packet is lost or counted twice. The cells are mapped into this process,
// and are read without a system call.
//
// # Who a packet is
//
// A sending host leaves the transport checksum to the network card, and may
// leave it the cutting of large segments (GSO, TSO); a receiving one may merge
// segments (GRO). So, unless Config.Checksums says otherwise, the checksum is not
// part of a packet's identity: a point elsewhere computes the same one by
// [Digest] of this package. And a bundle is counted as the packets that it
// stands for, each by the sequence number, identification, lengths, flags and
// payload that it has on the wire. All of them are stamped with the bundle's
// time.
//
// That needs TCP or UDP of at most 256 segments, whose identification rises by
// one (Linux's own always does) and which no tunnel carries. Other bundles are
// not counted, and Rotate says so by [ErrOffload]; ethtool -K eth0 tso off gso
// off gro off lro off makes an end of them. Bundles of encapsulated traffic in
// UDP, whose inside the program does not see, count as cut at the outer header:
// turn tx-udp_tnl-segmentation off where they pass. A segment that the card merges
// before XDP (LRO) cannot be told from a packet: turn that off.
//
// # What it costs
//
// A packet costs what the kernel's clock costs, and about as much again: on one
// machine 50 ns, 27 of them the clock (23 in all with the [Coarse] one), 59 with a
// sketch of four rows, where remembering the packet in the kernel's hash map takes
// 250 at each end (go test -run '^$' -bench Stages ./lda/kernel). Rotate takes
// some milliseconds, in which it waits and packets are counted on; reading takes
// 35 µs for two processors (-bench Read). A bundle costs as much as its packets.
//
// # What it does not do
//
// A point needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or root; Linux 5.8, for
// XDP 5.18; and a little-endian machine. Links end with the process (from Linux
// 6.6 on, and XDP always).
//
// RLI's injector is not here. A program can neither make a packet nor wait, so a
// reference packet would be a clone of a passing one, written over: the cost of a
// copy, a length and addresses that depend on what passes, and checksums to be
// redone. Processors would have to agree on its number by atomic operations, and
// its receiver keeps state by flow. A program in user space sends one packet in a
// hundred as well, and the point stamps it. The papers of the cells are named in [lda] and [lds].
package kernel
