// Package trace provides packets: from capture files, from pairs of captures
// at two points, and from random traffic.
//
//	reader, err := trace.NewReader(file)
//	for record, err := range reader.All() {
//		fmt.Println(time.Unix(0, record.Time), len(record.Frame))
//	}
//
// # Captures
//
// A [Reader] streams the packets of a pcap or pcapng file, of either byte
// order and any timestamp resolution, with or without gzip. Its memory is one
// buffer of 512 KiB, whatever lengths a hostile file claims, and some 40 bytes
// for each network interface that a section of a pcapng file describes, at most
// 65,536 of them.
//
// Times are nanoseconds since the Unix epoch. Finer resolutions are truncated
// towards the capture's own epoch. Coarser ones do not improve with the unit:
// a capture in microseconds cannot measure a delay of nanoseconds. The Reader
// ignores the time zone of a pcap header, and skips blocks of pcapng that are no
// packets. It does not read pcap with longer record headers, or of a version
// beyond 2.4. The formats are those of the IETF drafts draft-ietf-opsawg-pcap
// and draft-ietf-opsawg-pcapng.
//
// A [Pair] merges the captures of one traffic stream at two points, before and
// after whatever delays it, into the order in which measuring devices at the
// two points would have seen the packets. It cannot tell an offset between the
// clocks from a delay, and does not look into frames: whether both are of the
// same traffic, and the right way round, shows when packets are matched.
//
// # Synthetic traffic
//
// [Poisson], [OnOff] and [Flows] are endless sources of packets for the
// switches of package queue, at a chosen utilisation of a chosen link:
// independent arrivals, bursts on all time scales, and flows that send as TCP
// does. None reacts to loss or delay, and packet sizes are independent of
// everything else. Everything random comes from PCG generators seeded by the
// Config.
package trace
