// Package figlda measures what the evaluation of the LDA paper measured: R. R. Kompella, K. Levchenko, A. C.
// Snoeren, G. Varghese, Router Support for Fine-Grained Latency Measurements, IEEE/ACM Transactions on
// Networking 20(3), 2012, section IV.
//
// As there, an interval of one second has 5,000,000 packets, whose delays are independent draws from a Weibull
// or Pareto distribution with a mean of 200 ns. The trace is the same for every loss rate and every run. The
// runs of one point differ in the hash, and so in which packets are sampled where. The truth is the mean and
// the deviation of the delays of the packets that arrived. Packets are sent at even distances; an aggregator
// adds, so it does not matter when they are sent. A quick run has 500,000 packets, and sampling probabilities
// ten times as high, so that where sampling is below 1 the sample is as large as in the full run.
//
// Experiments that begin with ours ask what the paper does not: packets that
// cross the ends of intervals, and which packets were lost.
package figlda
