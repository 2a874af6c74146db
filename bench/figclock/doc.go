// Package figclock measures how well package estimate/clock finds the offset and the drift of two clocks. It
// compares it with half the difference of the mean delays, the filter of NTP, and two-way probes of as many
// bytes.
//
// Two points send each other packets through a queue each way. Packets arrive one by one or in bursts of Pareto
// sizes, service times are exponential, and two more hops add a few microseconds. An LDA of the default Config
// measures each direction, second by second. The truth is known by construction: the far clock is 5 ms ahead
// and gains 30 millionths. Probes see the same queues at the time they are sent, and add nothing to them.
package figclock
