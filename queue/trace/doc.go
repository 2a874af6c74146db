// Package trace provides packets: from capture files, from pairs of captures
// at two points, and from random traffic.
//
//	reader, err := trace.NewReader(file)
//	for record, err := range reader.All() {
//		fmt.Println(time.Unix(0, record.Time), len(record.Frame))
//	}
//
// # Capture files
//
// A [Reader] streams the packets of a pcap or pcapng file, of either byte
// order and any timestamp resolution, with or without gzip. It detects the
// format by itself. Its memory is one buffer of 512 KiB, whatever the file's
// size and whatever lengths a hostile file claims, and some 40 bytes for each
// network interface that a section of a pcapng file describes, at most 65,536
// of them. Reading a packet allocates nothing; decompressing allocates a
// little every few dozen kilobytes. A [Writer] writes pcap with nanosecond
// timestamps.
//
// Times are nanoseconds since the Unix epoch. Finer resolutions are truncated
// towards the capture's own epoch. Coarser ones do not improve with the unit:
// a capture in microseconds cannot measure a delay of nanoseconds.
//
// # Two points
//
// A [Pair] merges the captures of one traffic stream at two points, before and
// after whatever delays it, into one sequence in time order: the order in
// which measuring devices at the two points would have seen the packets. The
// clocks of the two captures must agree; a Pair cannot tell an offset between
// them from a delay. Nor does it look into frames. Whether the two captures
// are of the same traffic, and the right way round, shows when packets are
// matched, which a Pair does not do.
//
// # What is not read
//
// The Reader skips the following blocks of pcapng: name resolutions,
// statistics, decryption secrets, comments, custom and all other blocks. It
// does not read pcap of a version beyond 2.4, pcap variants with longer record
// headers, and the formats of other tools. It ignores the time zone of a pcap
// header, as other readers do.
//
// The formats are those of the IETF drafts "PCAP Capture File Format"
// (draft-ietf-opsawg-pcap) and "PCAP Next Generation (pcapng) Capture File
// Format" (draft-ietf-opsawg-pcapng).
//
// # Synthetic traffic
//
// [Poisson], [OnOff] and [Flows] are endless sources of packets for the
// switches of package queue, at a chosen utilisation of a chosen link:
// independent arrivals, bursts on all time scales, and flows that send as TCP
// does. [Replay] makes a source of packets in memory, [Merge] of other sources. [Delays] draws independent delays, for
// uses that need no queue. Everything random comes from PCG generators seeded
// by the Config. Traffic streams in bounded memory, and nothing reads a clock.
//
// None of the sources reacts to loss or delay, and packet sizes are
// independent of everything else.
package trace
