// Package lda is the Lossy Difference Aggregator: the mean and the standard deviation
// of the one-way delay of all packets between two points, and how many were
// lost, from a few kilobytes at each point.
package lda
