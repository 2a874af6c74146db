// Package figcolate measures what the evaluation of the COLATE paper measured: M. Shahzad, A. X. Liu, Noise Can
// Help: Accurate and Efficient Per-flow Latency Measurement without Packet Probing and Time Stamping,
// SIGMETRICS 2014, sections 3, 5 and 6. Fig. 1 is a diagram.
//
// The paper's traces are from one point each, and a simulated queue provided a second. Here the traces are
// simulated as well (see traffic.go), with as many packets to a flow as in the paper's Table 2: heavy-tailed,
// from senders with windows, through a RED queue before a link of 10 Gb/s. A full run has 4 million packets of
// each, all in one epoch; a quick run has a tenth of the packets with a tenth of the memory. Memory is that of
// the counters at one point, of 60 bits each, so that no sum of nanoseconds overflows: the paper's 19 bits
// would need a unit in which the delays do not show.
//
// The paper's estimators read plain sums of time stamps. Ours read the same sums or, if they are called
// counted, as many bits of which 16 count packets. Both know the number of the flow's packets, as from flow
// records. No packet is lost: what RED drops, neither point records. Only ours-colate-rival has losses, and
// hours of epochs in stores.
package figcolate
