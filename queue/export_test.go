package queue

// What tests of queue_test look at.

func (l *Link) Backlog(t int64) (packets int, bytes int64) { return l.backlog(t) }

// Average is RED's.
func (l *Link) Average() float64 { return l.gate.average }
