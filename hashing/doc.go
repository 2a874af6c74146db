// Package hashing identifies packets: it turns the bytes of a packet that do not change on its way, and the
// 5-tuple of its flow, into the 64-bit identities that every synopsis takes.
//
//	var frame hashing.Frame
//	if err := frame.Parse(hashing.LinkEthernet, captured); err == nil {
//		aggregator.Update(frame.Digest(seed), time.Now().UnixNano())
//		sketch.Update(frame.Tuple.Flow(seed), frame.Digest(seed), time.Now().UnixNano())
//	}
//
// A data path that needs no tuple is served faster by an [Identifier], in bursts (bench/RATIOS.md). For a
// message that is not a packet, use the [Digest] of any of its bytes.
//
// # Identity
//
// Two points recognise a packet because both compute the same hash of it, perhaps on different machines, years
// and releases apart. Therefore:
//
//   - Both points use the same function with the same seed over the same bytes, which [Frame] picks out of a
//     captured frame. Never use hash/maphash, whose seed is local to one process.
//   - Every function here gives the same value on every machine and in every
//     release; golden values in the tests hold it to that.
//   - Packets with the same bytes have one identity, and 10.0.0.1 is
//     ::ffff:10.0.0.1.
//   - No secret travels: a Config's Identity is the [Fingerprint] of the seed or
//     key, by which two points know that they hash alike.
//
// # Which function
//
// Use [Digest] and [Tuple.Flow], or [SipHash] if somebody may craft packets; it costs six times as much.
// Package families has the hashes that hardware computes.
//
// # Packets crafted against us
//
// Someone who chooses packets may want them all in one cell, or none of them sampled. Only [SipHash] with a
// secret random key of 128 bits keeps different packets apart, however much the attacker sees of its effects.
// No key keeps copies of one packet apart: the same bytes sent ten thousand times fill one cell, or are in no
// sample at all. SECURITY.md says what each synopsis does about that. Whoever knows the seed of Digest and
// Tuple.Flow can write down collisions without a search. A secret seed keeps honest traffic spread and stops
// attackers who cannot observe the outcome; nothing beyond that is proven.
//
// # Concurrency
//
// Functions are pure. An [Identifier] and a [SipHash] are read-only: any number of goroutines may share one.
// Nothing allocates but constructors, and the Append methods where their buffer is too small.
package hashing
