package queue

// A ring is a queue of values that grows by doubling and never shrinks.
type ring[T any] struct {
	slots      []T  // their number is a power of two
	head, tail uint // tail-head values, from slots[head&mask]
}

func (r *ring[T]) len() int { return int(r.tail - r.head) }

func (r *ring[T]) front() *T { return &r.slots[r.head&uint(len(r.slots)-1)] }

func (r *ring[T]) back() *T { return &r.slots[(r.tail-1)&uint(len(r.slots)-1)] }

func (r *ring[T]) drop() { r.head++ }

func (r *ring[T]) push(v T) {
	if r.len() == len(r.slots) {
		r.grow()
	}
	r.slots[r.tail&uint(len(r.slots)-1)] = v
	r.tail++
}

func (r *ring[T]) grow() {
	slots := make([]T, max(16, 2*len(r.slots)))
	n := r.len()
	for i := range n {
		slots[i] = r.slots[(r.head+uint(i))&uint(len(r.slots)-1)]
	}
	r.slots, r.head, r.tail = slots, 0, uint(n)
}
