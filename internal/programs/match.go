package programs

// A Matcher finds what passed a first place and then a second one, by
// remembering everything in between, which a point never does. Of those that
// are alike the first to come is the first to go. The zero value is ready.
type Matcher[K comparable, V any] struct{ between map[K][]V }

// First remembers something with its value.
func (m *Matcher[K, V]) First(key K, value V) {
	if m.between == nil {
		m.between = map[K][]V{}
	}
	m.between[key] = append(m.between[key], value)
}

// Second returns the value, whether it was there, and whether it can have been
// no other one.
func (m *Matcher[K, V]) Second(key K) (value V, ok, unique bool) {
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

// Forget forgets those for which it is too late.
func (m *Matcher[K, V]) Forget(late func(V) bool) {
	for key, all := range m.between {
		for len(all) > 0 && late(all[0]) {
			all = all[1:]
		}
		if m.between[key] = all; len(all) == 0 {
			delete(m.between, key)
		}
	}
}

// Len returns how many keys came first and not second yet.
func (m *Matcher[K, V]) Len() int { return len(m.between) }

// Knows reports whether something came first and not second yet.
func (m *Matcher[K, V]) Knows(key K) bool { return len(m.between[key]) > 0 }
