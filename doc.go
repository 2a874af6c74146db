// Package hoplag is the root of a library that tells how long packets take
// between two points, from synopses small enough for a switch: nanoseconds
// per packet, no allocation, and no timestamp carried in any packet.
//
// The root has no code. A measuring device imports one of the synopses
//
//   - [github.com/hoplag/hoplag/lda], the mean, deviation and loss of all
//     packets together;
//   - [github.com/hoplag/hoplag/rli], each flow's delay, from reference
//     packets that the sender injects;
//   - [github.com/hoplag/hoplag/lds], each flow's delay, without a delay model
//     and without state per flow;
//   - [github.com/hoplag/hoplag/colate], each flow's delay, asked months
//     later of shared counters that were kept;
//
// and [github.com/hoplag/hoplag/hashing] to tell which packet is which.
// [github.com/hoplag/hoplag/queue] and its traces are for simulation and
// tests.
package hoplag
