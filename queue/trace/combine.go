package trace

import "github.com/hoplag/hoplag/queue"

// Replay returns a source of the given packets, which must be in order of
// Time. It sets each packet's Sent to its Time.
func Replay(packets []queue.Packet) queue.Source {
	return &replay{left: packets}
}

type replay struct{ left []queue.Packet }

func (r *replay) Next(p *queue.Packet) bool {
	if len(r.left) == 0 {
		return false
	}
	*p, r.left = r.left[0], r.left[1:]
	p.Sent = p.Time
	return true
}

// Merge returns a source of all packets of the given sources, in order of
// Time. At equal times those of an earlier argument go first. It ends when all
// sources have ended.
func Merge(sources ...queue.Source) queue.Source {
	m := &merge{sources: sources, heads: make([]queue.Packet, len(sources)), live: make([]bool, len(sources))}
	for i, s := range sources {
		m.live[i] = s.Next(&m.heads[i])
	}
	return m
}

type merge struct {
	sources []queue.Source
	heads   []queue.Packet // the next packet of each
	live    []bool
}

func (m *merge) Next(p *queue.Packet) bool {
	first := -1
	for i, live := range m.live {
		if live && (first < 0 || m.heads[i].Time < m.heads[first].Time) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	*p = m.heads[first]
	m.live[first] = m.sources[first].Next(&m.heads[first])
	return true
}
