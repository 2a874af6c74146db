// Package trace is where packets come from.
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
// other than 2.4, its variants with longer record headers, and the formats of
// other tools. The time zone of a pcap header is ignored, as other readers do.
//
// The formats are those of the IETF drafts "PCAP Capture File Format"
// (draft-ietf-opsawg-pcap) and "PCAP Next Generation (pcapng) Capture File
// Format" (draft-ietf-opsawg-pcapng).
package trace
