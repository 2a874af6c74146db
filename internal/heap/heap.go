// Package heap is a binary heap of values with the first value at hand. Unlike container/heap it boxes no
// value, and so allocates only to grow.
package heap

// A Value knows whether it comes before another. Of two equal values either may be first: give values an order
// of their own if that matters.
type Value[T any] interface{ Before(T) bool }

// A Heap holds values. The first one, if there is any, is h[0]. The zero value is empty.
type Heap[T Value[T]] []T

// Push adds a value.
func (h *Heap[T]) Push(v T) {
	*h = append(*h, v)
	s := *h
	i := len(s) - 1
	for ; i > 0 && v.Before(s[(i-1)/2]); i = (i - 1) / 2 {
		s[i] = s[(i-1)/2]
	}
	s[i] = v
}

// Pop removes the first value and returns it. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	s := *h
	first, last := s[0], len(s)-1
	v := s[last]
	clear(s[last:]) // so that what it points to can be freed
	*h = s[:last]
	if last > 0 {
		h.Replace(v)
	}
	return first
}

// Replace replaces the first value by another, in less time than a Pop and a Push. The heap must not be empty.
func (h *Heap[T]) Replace(v T) {
	s, i := *h, 0
	for child := 1; child < len(s); child = 2*i + 1 {
		if child+1 < len(s) && s[child+1].Before(s[child]) {
			child++
		}
		if !s[child].Before(v) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = v
}
