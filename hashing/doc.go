// Package hashing identifies packets: it turns the bytes of a packet that do
// not change on its way, and the 5-tuple of its flow, into the 64-bit
// identities that every synopsis takes.
//
//	var frame hashing.Frame
//	if err := frame.Parse(hashing.LinkEthernet, captured); err == nil {
//		aggregator.Update(frame.Digest(seed), time.Now().UnixNano())
//		sketch.Update(frame.Tuple.Flow(seed), frame.Digest(seed), time.Now().UnixNano())
//	}
//
// For a message that is not a packet, use the [Digest] of any of its bytes.
//
// # Identity
//
// Two points recognise a packet by computing the same hash of it, perhaps on
// different machines, years and releases apart. Therefore:
//
//   - Both points use the same function with the same seed over the same
//     bytes. [Frame] picks those bytes out of a captured frame.
//   - Every function here gives the same value on every machine and in every
//     release; golden values in the tests hold it to that.
//   - Never hash/maphash: its seed is local to one process, so that two points
//     would agree on nothing. Nor Go's map order, pointers or addresses.
//   - 10.0.0.1 and ::ffff:10.0.0.1 are one address, and an IPv6 zone is not
//     part of the packet: see [MakeTuple].
//   - Packets with the same bytes have one identity. A synopsis counts them in
//     one cell, at both points.
//   - No secret travels: what is written down carries the [Fingerprint] of the
//     seed or key, a Config's Identity, by which two points know that they hash
//     alike.
//
// # Which function
//
// Use [Digest] and [Tuple.Flow] unless you have a reason not to. The others
// compute what hardware computes, or give a guarantee that a proof asks for.
// Each has the methods Bytes, for bytes, and Word, for one 64-bit word.
//
//	            guarantee over the seed    bits  key, bits   time  choose it when
//	Digest      none proven; see tests       64         64      1  nobody crafts packets
//	SipHash     keyed PRF (computational)    64        128      6  somebody may
//	H3          3-universal                  64  64 a bit       5  the switch hashes so
//	Toeplitz    universal                    32   1 a bit       5  the adapter hashes so
//	Rabin       n bits collide: n/2^d         d          d     23  the switch has a CRC engine
//	Polynomial  4-universal                  61        305      6  the analysis asks for it
//	Tabulation  3-universal, Chernoff        64  16384 a byte   5  loads must be bounded
//
// The time is for 40 bytes, in multiples of Digest's (2 to 3 ns), on an AMD
// EPYC with Go 1.26; "go test -bench Hash ./bench" in the module's root
// measures it anywhere, beside CRC-32C (2), FNV-1a (8) and hash/maphash (1.2,
// on the processor's AES instructions).
//
// Pass a hash of fewer than 64 bits, and Rabin's of any degree, through [Word]
// before you derive a row, a bank or a sampling decision from it. Word is a
// fixed function, so independent hashes stay independent.
//
// # Packets crafted against us
//
// Someone who chooses packets may want them all in one cell, or none of them
// sampled. Only [SipHash] with a secret random key of 128 bits keeps different
// packets apart, whatever the attacker sees of its effects. No key keeps copies
// of one packet apart: the same bytes sent ten thousand times fill one cell, or
// are in no sample at all. SECURITY.md says what each synopsis does about that.
//
//   - Digest and Tuple.Flow: someone who knows the seed can write collisions
//     down without a search. A secret seed keeps honest traffic spread and stops
//     attackers who cannot observe the outcome; nothing beyond that is proven.
//   - H3, Toeplitz, Rabin, and any CRC: linear. Some hashes, or which packets
//     share a cell, give the key away, and collisions follow by elimination.
//   - Tabulation and Polynomial: their guarantees hold for packets chosen
//     without looking. Four hashes give the polynomial away, and the tables
//     follow from one hash for each of their entries.
//
// # Concurrency
//
// Functions are pure. The families are read-only after construction; any number
// of goroutines may share one. Nothing allocates but the constructors, and
// [Tuple.Append] where its buffer is too small.
package hashing
