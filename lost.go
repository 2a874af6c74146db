package hoplag

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda/lost"
)

// A point remembers what it sent once it is known to send: the first point when
// it is first asked, the second one, which sends back, when it follows.
const (
	mostRemembered  = 1 << 18 // messages: 4 MiB
	rememberReports = 4       // as many intervals at most: a report waits for three, and is asked about then

	// mostMissing is how many messages a report names.
	mostMissing = 4096
)

// remember makes the direction remember what passes from now on.
func (d *Direction) remember() {
	if d.memory.Load() == nil {
		d.memory.CompareAndSwap(nil, lost.NewMemory(mostRemembered, rememberReports*int64(d.config.Report)))
	}
}

// memorize remembers what passed, if anybody may ask.
func (d *Direction) memorize(entries []entry) {
	m := d.memory.Load()
	if m == nil {
		return
	}
	m.Lock()
	defer m.Unlock()
	for i := range entries {
		if e := &entries[i]; e.not != 0 {
			m.Update(^e.not, true, e.time)
		} else {
			m.Update(uint64(e.packet), false, e.time)
		}
	}
}

// find finds among what a direction remembers what was lost in trails.
func (d *Direction) find(trails []areas.Trail) (lost.Names, error) {
	f, err := lost.NewFinder(d.config.Cells, trails)
	m := d.memory.Load()
	if err != nil || m == nil {
		return lost.Names{}, err
	}
	m.Offer(f, d.hash.number)
	return f.Names(lost.Budget), nil
}

// crypt encrypts names, or decrypts them, with AES-256 in counter mode, by a key of their own, so that nobody
// else learns an id (SPEC.md, section 4.10).
func (s *sealer) crypt(data, counter []byte) {
	cipher.NewCTR(must(aes.NewCipher(s.config.derive("names"))), counter).XORKeyStream(data, data)
}

// which returns the names, encrypted, of what is missing of the messages that the point sent.
func (p *Point) which(question []byte) ([]byte, error) {
	trails, err := lost.DecodeTrails(question, int64(p.config.Cut))
	if err != nil {
		return nil, err
	}
	names, err := p.Direction.find(trails)
	if err != nil {
		return nil, err
	}
	data := make([]byte, aes.BlockSize)
	rand.Read(data) // never fails
	data = names.Append(data, trails)
	p.seal.crypt(data[aes.BlockSize:], data[:aes.BlockSize])
	return data, nil
}

// names decrypts what which returned.
func (s *sealer) names(data []byte, trails []areas.Trail, d *Direction) (lost.Names, error) {
	if len(data) < aes.BlockSize {
		return lost.Names{}, fmt.Errorf("hoplag: %w: %d bytes of names", estimate.ErrEncoding, len(data))
	}
	names := slices.Clone(data[aes.BlockSize:])
	s.crypt(names, data[:aes.BlockSize])
	return lost.DecodeNames(names, trails, d.hash.number)
}

// name finds out which messages were lost, some perhaps after the report, and takes them out of the areas.
func (w *way) name(m *meeting) {
	if m.asks == nil {
		return
	}
	var trails []areas.Trail
	w.total.Trails(func(t areas.Trail) { trails = append(trails, t) })
	if len(trails) == 0 {
		return
	}
	trails, names := m.asks.which(w.direction, trails)
	w.missing = append(w.missing, names.Names...)
	w.total.TakeOut(names.Lost(w.config.Cells, trails))
}

// which asks the first point what is missing in trails, or this one for messages that went back, and returns of
// which of them it learned that: a question that is too long has fewer.
func (f *follower) which(direction int, trails []areas.Trail) (_ []areas.Trail, names lost.Names) {
	p := f.point
	if direction == back {
		names, _ = p.Back.find(trails) // or none
		return trails, names
	}
	if p.number(p.clock.now()) > max(f.compare.due(), f.compare.since+learning)+f.compare.cuts {
		return nil, names // exchanges are so slow that reports are late
	}
	unit := int64(p.config.Cut)
	for len(lost.AppendTrails(nil, trails, unit)) > maxRequest-100 {
		trails = trails[:len(trails)*3/4]
	}
	ctx, cancel := context.WithTimeout(f.ctx, max(p.config.Report, time.Second)/2)
	defer cancel()
	q := newRequest(f.name, position{}, lost.AppendTrails(nil, trails, unit))
	if data, err := f.ask(ctx, p.seal.request(q)); err == nil {
		if r, err := p.seal.answered(q, data); err == nil {
			names, _ = p.seal.names(r.names, trails, p.Direction) // or none
		}
	}
	return trails, names
}

// namedBefore reports whether a message was named before, and remembers that it is now. A trail that begins before its
// report names it again.
func (w *way) namedBefore(m lost.Name) (before bool) {
	name := [2]int64{int64(m.ID), m.Sent}
	before, w.names[name] = w.names[name], true
	return before
}

// forget forgets names so old, by the sender's clock, that no trail goes back to them when a report ends.
func (w *way) forget(now int64) {
	maps.DeleteFunc(w.names, func(n [2]int64, _ bool) bool { return now-n[1] > longestDelay*int64(w.config.Cut) })
}
