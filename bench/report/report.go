// Package report writes one page that a person can read from top to bottom:
// what each paper claims, what was measured, the picture, and the verdict.
package report

import "github.com/hoplag/hoplag/bench/experiment"

// Write writes the page for the results in a directory. Experiments without a
// result are named as such.
func Write(file, dir string, all []experiment.Experiment) error { return nil }
