// Package figlda measures what the evaluation of the LDA paper measured:
// R. R. Kompella, K. Levchenko, A. C. Snoeren, G. Varghese, Router Support for
// Fine-Grained Latency Measurements, IEEE/ACM Transactions on Networking 20(3),
// 2012, section IV.
package figlda

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments are those of the LDA paper.
func Experiments() []experiment.Experiment { return nil }
