// Package programs is what the programs of examples and bench have in common:
// how they begin and end, their flags, the rows that they print, the live page,
// and the names of flows.
package programs
