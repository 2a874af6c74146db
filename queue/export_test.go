package queue

// Backlog returns how many packets have arrived and not yet completely left at
// time t.
func (l *Link) Backlog(t int64) (packets int) {
	l.settle(max(t, l.now))
	return l.leaving.len()
}
