package experiment

import "github.com/hoplag/hoplag/bench/plot"

// A Sweep holds the outcome of every method at every place of an axis:
// outcomes O of methods M at places P, such as loss rates.
type Sweep[P, M, O any] struct {
	Places  []P
	Methods []M
	Found   [][]O // by method, then by place
}

// SweepOver measures every method at every place. It calls input for the data
// of a place, the same for all methods, and measure for each method. It
// reports progress after each.
func SweepOver[P, I, M, O any](r *Run, places []P, methods []M, input func(P) I, measure func(I, M) O) *Sweep[P, M, O] {
	s := &Sweep[P, M, O]{Places: places, Methods: methods, Found: make([][]O, len(methods))}
	for _, place := range Each(r, places) {
		shown := input(place)
		for k, m := range Each(r, methods) {
			s.Found[k] = append(s.Found[k], measure(shown, m))
		}
	}
	return s
}

// Lines returns a series for each method. look returns how to draw it, and
// point adds a place's point to it.
func (s *Sweep[P, M, O]) Lines(look func(k int, m M) plot.Series, point func(line *plot.Series, place P, found O)) []plot.Series {
	lines := make([]plot.Series, len(s.Methods))
	for k, m := range s.Methods {
		lines[k] = look(k, m)
		for i, place := range s.Places {
			point(&lines[k], place, s.Found[k][i])
		}
	}
	return lines
}

// Rows adds a row to a table for each place: its name, and a cell for each
// method.
func (s *Sweep[P, M, O]) Rows(t *Table, name func(P) string, cell func(O) string) {
	for i, place := range s.Places {
		row := []string{name(place)}
		for k := range s.Methods {
			row = append(row, cell(s.Found[k][i]))
		}
		t.Add(row...)
	}
}

// Worst returns the greatest value of one method, by its number, at the places
// that count, or 0 if there are none.
func (s *Sweep[P, M, O]) Worst(k int, counts func(P) bool, value func(O) float64) float64 {
	worst := 0.0
	for i, place := range s.Places {
		if counts(place) {
			worst = max(worst, value(s.Found[k][i]))
		}
	}
	return worst
}
