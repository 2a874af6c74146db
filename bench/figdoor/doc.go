// Package figdoor runs the front door in virtual time, in every combination of
// clocks, paths, rates, losses and faults that a draw finds, and holds each report
// to the truth.
package figdoor
