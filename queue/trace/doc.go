// Package trace is where packets come from: capture files, pairs of them at two
// points, and traffic that is drawn at random.
//
//	reader, err := trace.NewReader(file)
//	for record, err := range reader.All() {
//		fmt.Println(time.Unix(0, record.Time), len(record.Frame))
//	}
//
// # Capture files
//
// A [Reader] streams the packets of a pcap or pcapng file, of either byte
// order and any timestamp resolution, compressed by gzip or not; it finds out
// which by itself. Its memory is one buffer of 512 KiB, whatever the file's
// size and whatever lengths a hostile file claims, and some 40 bytes for each
// network interface that a section of a pcapng file describes, at most 65,536
// of them. Reading a packet allocates nothing; decompressing allocates a
// little every few dozen kilobytes. A [Writer] writes pcap with nanosecond
// timestamps.
//
// Times are nanoseconds since the Unix epoch. Finer resolutions are truncated
// towards the capture's own epoch; coarser ones are not made any better by
// their unit: a capture in microseconds cannot measure a delay of nanoseconds.
//
// # Two points
//
// A [Pair] merges the captures of one traffic stream at two points, the
// ingress and the egress of whatever delays it, into one sequence in time
// order, in which measuring devices at the two points would have seen them. It
// needs two captures whose clocks agree; it cannot tell an offset between them
// from a delay. Nor does it look into frames: whether the two captures are of
// the same traffic, and the right way round, shows when packets are matched,
// which is not its work.
//
// # What is not read
//
// Of pcapng: name resolutions, statistics, decryption secrets, comments,
// custom and all other blocks, which are passed over; nor pcap of a version
// beyond 2.4, its variants with longer record headers, and the formats of
// other tools. The time zone of a pcap header is ignored, as other readers do.
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
// does. [Recorded] makes a source of a capture, [Replay] of packets in memory,
// [Merge] and [Scale] of other sources. [Delays] draws independent delays, for
// what does not need a queue. All that is random is drawn from PCG generators
// seeded by the Config; traffic streams in bounded memory, and nothing reads a
// clock.
//
// What they are not: none reacts to loss or delay, and packet sizes are
// independent of everything else.
package trace
