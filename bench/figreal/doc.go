// Package figreal tests LDA on real packets: it compares what examples/twopoint says of the captures that ship
// with it with the exact answer. It runs in the project's root.
package figreal
