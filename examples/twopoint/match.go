package main

// A match finds what passed a first place and then a second one, by
// remembering everything in between, which a point never does. Of those that
// are alike the first to come is the first to go. The zero value is ready.
type match[K comparable, V any] struct{ between map[K][]V }

// first remembers something with its value.
func (m *match[K, V]) first(key K, value V) {
	if m.between == nil {
		m.between = map[K][]V{}
	}
	m.between[key] = append(m.between[key], value)
}

// second returns the value, whether it was there, and whether it can have been
// no other one.
func (m *match[K, V]) second(key K) (value V, ok, unique bool) {
	all := m.between[key]
	if len(all) == 0 {
		return value, false, false
	}
	if len(all) == 1 {
		delete(m.between, key)
	} else {
		m.between[key] = all[1:]
	}
	return all[0], true, len(all) == 1
}

// knows reports whether something came first and not second yet.
func (m *match[K, V]) knows(key K) bool { return len(m.between[key]) > 0 }
