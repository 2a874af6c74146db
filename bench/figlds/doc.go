// Package figlds measures what the evaluation of the LDS paper measured: J. Sanjuàs-Cuxart, P. Barlet-Ros, N.
// Duffield and R. Kompella, Sketching the Delay: Tracking Temporally Uncorrelated Flow-Level Latencies, IMC
// 2011, section 5; and what the sketch can do beyond it.
//
// The paper's trace, of a university's access link, was not published. Package flowsim makes one of the same
// size: 146,000 flows and 7.76 million packets, Pareto sizes, delays of two modes. The mean delays of its flows
// are far apart, some 200 to 800 µs, and the delays of neighbours in time are independent. So errors are larger
// here than in the paper, for all methods, and only results of one run can be compared. A quick run has a tenth
// of the flows and of the columns, so that the load of the sketch is the same.
//
// Errors are relative errors of a flow's mean delay. Those of several intervals, which differ in everything
// random, are combined. A flow for which a method has no answer counts as an error of 100 %.
package figlds
