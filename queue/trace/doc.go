// Package trace provides packets: from capture files, from pairs of captures at two points, and from random
// traffic.
//
//	reader, err := trace.NewReader(file)
//	for record, err := range reader.All() {
//		fmt.Println(time.Unix(0, record.Time), len(record.Frame))
//	}
//
// # Captures
//
// A [Reader] streams the packets of a pcap or pcapng file, of either byte order and any timestamp resolution,
// with or without gzip. Its memory is one buffer of 512 KiB, whatever lengths a hostile file claims, and some
// 40 bytes for each network interface that a section of a pcapng file describes, at most 65,536 of them.
//
// Times are nanoseconds since the Unix epoch. Finer times are truncated towards the capture's own epoch. Coarser
// times stay coarse: a capture in microseconds cannot measure a delay of nanoseconds. The Reader ignores the
// time zone of a pcap header, and skips blocks of pcapng that are not packets. It does not read pcap with longer
// record headers, or versions beyond 2.4. The formats are those of draft-ietf-opsawg-pcap and
// draft-ietf-opsawg-pcapng.
//
// A [Pair] merges two captures of one stream of traffic, from before and after whatever delays it, into the
// order in which devices at the two points would have seen the packets. It cannot tell an offset between the
// clocks from a delay, and does not look into frames: only matching the packets shows whether both captures are
// of the same traffic, and the right way round.
//
// # Synthetic traffic
//
// [NewPoisson], [NewOnOff] and [NewFlows] return endless sources of packets for package queue's links, at a
// chosen utilisation: independent arrivals, bursts on all time scales, and flows that send as TCP does. None
// reacts to loss or delay, and packet sizes are independent of everything else. All randomness comes from PCG
// generators that the Config seeds.
package trace
