// Package figrli measures what the evaluation of RLI measured: M. Lee, N. Duffield, R. R. Kompella, Not All
// Microseconds are Equal: Fine-Grained Per-Flow Measurements with Reference Latency Interpolation, SIGCOMM
// 2010, extended version, sections II and V.
//
// The paper sends packets of backbone traces, which are not available here, through a simulated queue. Here
// random traffic goes through that queue, RED with the paper's settings before a link of 10 Gb/s. References
// follow directly behind a packet, in the same queue. The truth is the simulated delay of the packets that
// arrived.
package figrli
