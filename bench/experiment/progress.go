package experiment

import "iter"

// Each iterates over a list and reports the progress of the run. An Each
// inside another divides the part of the run that the outer one has reached.
// It ends the run if the run is interrupted.
//
//	for _, law := range experiment.Each(run, laws) {
//		for k, loss := range experiment.Each(run, losses) {
func Each[T any](r *Run, list []T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := range r.Times(len(list)) {
			if !yield(i, list[i]) {
				return
			}
		}
	}
}

// Times is Each for the numbers from 0 to n-1.
func (r *Run) Times(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		from, to := r.from, r.to
		defer func() { r.from, r.to = from, to }()
		at := func(i int) float64 { return from + (to-from)*float64(i)/float64(n) }
		for i := range n {
			r.from, r.to = at(i), at(i+1)
			r.Alive()
			if !yield(i) {
				return
			}
			r.tell(at(i + 1))
		}
	}
}

// Part says that what follows is part number k, from 0, of n roughly equal
// parts, for an experiment that does one thing after another.
func (r *Run) Part(k, n int) {
	r.from, r.to = float64(k)/float64(n), float64(k+1)/float64(n)
	r.Alive()
	r.tell(r.from)
}

// Alive ends the run if it is interrupted. Call it now and then in long loops.
func (r *Run) Alive() { Check(r.Context().Err()) }

func (r *Run) tell(done float64) {
	if r.Report != nil {
		r.Report(done)
	}
}
