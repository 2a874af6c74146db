package hoplag

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
)

// A Missing is a message that was lost, by name, or that is so late that it counts as lost (see [Traffic.Missing]).
type Missing struct {
	// ID is the number that the message was reported by, or the hash of its id, as [Direction.Packet] returns it.
	ID     uint64 `json:",string"`
	Number bool

	Sent time.Time // by the clock of the point that sent it

	// Repeated says that other messages with this id arrived. Which of them is missing is not known.
	Repeated bool `json:",omitempty"`
}

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

// tell says what is known of the report of the cuts after one and up to another, and which messages
// it lost. It may be the last that ended.
func (w *way) tell(m *meeting, from, to int64, fresh, last bool) Traffic {
	if w.ending && last { // in vain
		w.finish()
		w.err = fmt.Errorf("%w: what was sent when the report ended is not known", estimate.ErrNoSamples)
	}
	if w.told.idle {
		return Traffic{Delay: Delay{Err: ErrIdle}}
	}
	end := w.ofSender(to, w.told.lag)
	w.name(m)
	d := w.delay(from, to, float64(end+w.told.added-w.told.lag-w.since), fresh)
	if w.flows != nil {
		scatter := 1.0 // of exponential delays, if that of all packets is not known
		if d.Mean != 0 {
			scatter = max(1, sq(d.StdDev/d.Mean))
		}
		d.Flows, d.UnknownFlows = w.flows.report(scatter)
	}
	if d.Lost == 0 {
		return d
	}
	w.forget(end)
	d.Missing, w.missing = slices.DeleteFunc(w.missing, w.namedBefore), nil
	slices.SortFunc(d.Missing, func(x, y Missing) int { return x.Sent.Compare(y.Sent) })
	d.Missing = d.Missing[:min(len(d.Missing), mostMissing)]
	return d
}

// tardy returns how many packets of a pair belong to earlier cuts.
type tardy struct {
	after int64
	n     int
}

// straying returns by how much the mean of a report of some cuts may be off because points counted packets late: those
// of its end in the next one, and those of the end of the one before here. None takes longer than is waited for.
func (w *way) straying(from, to int64, received uint64) float64 {
	n := 0
	for _, t := range w.tardy {
		if t.after >= from && t.after < from+mostGrace || t.after >= to && t.after < to+mostGrace {
			n += t.n
		}
	}
	return float64(n) * w.patience() / float64(max(received, 1))
}

// loses reports whether packets seem to be lost, up to a cut, that may just be late. Where they did, it looks
// again only once in some cuts, for it takes an estimate.
func (w *way) loses(cut, every int64) bool {
	if w.total != nil && w.asked != cut && !(w.losing && cut > w.asked && cut < w.asked+every) {
		r, _ := w.total.Estimate()
		w.asked, w.losing = cut, r.Lost > 0
	}
	return w.total != nil && w.losing
}

// patience returns how long packets are waited for.
func (w *way) patience() float64 { return float64(w.total.Settling()) * float64(w.config.Cut) }

// begins returns for how many cuts after a session's beginning packets come that were on their way then.
func (c *comparison) begins() int64 {
	cuts := int64(1)
	for _, w := range c.ways {
		if w.total != nil {
			cuts = max(cuts, min(settling, int64(w.total.Settling())*w.cuts), min(unsettled, int64(w.total.Before())/int64(c.config.Cut)+1))
		}
	}
	return cuts
}

// begun makes the intervals of a mean hold what a share of the packets may have taken, of which nothing is
// known: they were on their way when the session began. There is none if these were more than can be at the
// rate since, or came later, than if they had taken no longer than packets do since.
func (w *way) begun(d *Traffic, r *lda.Result, length float64) {
	before, cut := w.total.Before(), float64(w.config.Cut) // cuts of two points are apart by up to two
	seen, _ := w.samples.Quantile(1)
	usual := float64(r.Received-r.Extra) * w.patience() / length
	if short := float64(w.end-w.since) < w.patience(); short || before > 0 && (!w.total.Settled() || before > 1.5*seen+2*cut) ||
		float64(r.Extra) > usual+3*math.Sqrt(usual)+1 {
		d.Err = fmt.Errorf("%w: packets came that were sent before the session began, or never, and took unknown times", estimate.ErrNoSamples)
		if w.config.ClocksAgree && d.Mean < 0 && seen < 0 { // not just because packets on their way are missing
			d.Err = fmt.Errorf("%w, though Config.ClocksAgree says so: the mean is about %s", estimate.ErrClocks, Format(d.Mean))
		}
		d.Quantiles, d.MeanInterval95, d.Certain = nil, estimate.Interval{}, estimate.Interval{}
		return
	}
	least := float64(w.told.added)
	d.unsure(r.Extra, least, least+w.patience())
}

// unsure makes the intervals of a mean hold that so many packets may have taken the least, or the most.
func (d *Traffic) unsure(packets uint64, least, most float64) {
	share := min(1, float64(packets)/float64(d.Received))
	for _, i := range []*estimate.Interval{&d.MeanInterval95, &d.Certain} {
		i.Low -= share * max(0, i.Low-least)
		i.High += share * max(0, most-i.High)
	}
}

// account fills in how many packets were lost, and how many are extra: those that cells show, and if more
// have come than were on their way, those that were taken for lost, before cells show it. When a session begins
// neither is known; what seemed lost then is not extra if it comes. Extra packets may have been received in the
// report before, and are left for one that has room for them, so that counts add up. Cells that always have packets on
// their way show those of before the session late: as many as the rate and the mean tell are not extra.
func (w *way) account(d *Traffic, r *lda.Result, fresh bool, length float64) (came int) {
	seen := int64(r.Extra)
	more := int64(r.Lost+r.Received+r.Outstanding) - int64(r.Sent) - w.out - seen
	more = max(min(more, int64(math.Ceil(w.given))), -min(w.early, seen))
	w.early, w.out = w.early+more, int64(r.Outstanding)
	late := float64(seen + more)
	if came = int(math.Ceil(min(late, w.given))); r.Received > 0 && late == 0 { // or nothing shows that those of before will not come
		w.given *= 0.99
	}
	w.given = max(0, w.given+float64(r.Lost)-late)
	if fresh {
		w.joined += r.Extra
		// A report of which nothing is known has seen no losses.
		if d.LossUnknown = !w.toldBegun(r) || r.Lost == 0 && d.Err != nil; !d.LossUnknown {
			d.Lost = r.Lost
		}
		begun := r.Mean*float64(r.Received)/length - float64(w.joined)
		if w.joined == 0 && w.total.Before() == 0 && r.Received*uint64(w.config.Cut) < uint64(length)*uint64(w.config.Cells.Banks[0].Rows) {
			begun = 0 // cells to which nothing was sent would have shown some
		}
		w.hidden = max(0, w.hidden+float64(r.Lost-d.Lost)-late, begun)
	} else {
		untold := math.Floor(min(w.hidden, late))
		w.hidden = 0.99 * (w.hidden - untold)
		w.extra += uint64(late - untold)
		d.Lost = r.Lost
	}
	d.Extra = min(w.extra, d.Received)
	w.extra -= d.Extra
	d.Sent = d.Received + d.Lost - d.Extra
	return came
}

// toldBegun reports whether the losses of a report are known in which a session begins: none seems lost that is on its
// way, that came before the receiver's cuts began, or was counted late, and hardly a packet on its way then came to a
// cell that lost one.
func (w *way) toldBegun(r *lda.Result) bool {
	if !w.total.Settled() || !w.config.ClocksAgree && !(w.fastest.known && w.fastest.key >= 0) || len(w.tardy) > 0 {
		return false
	}
	return float64(w.joined)*float64(max(r.Lost, 1)) < float64(w.config.Cells.Banks[0].Rows)
}

// distribute fills in the quantiles, but for those among the slowest where so many came that had been given up: samples
// lack them.
func (w *way) distribute(d *Traffic, back int) {
	w.samples = w.total.Samples()
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if q, err := w.total.Quantile(p, confidence); err == nil && float64(2*back) <= (1-p)*float64(d.Received) {
			d.Quantiles = append(d.Quantiles, q)
		}
	}
	if most, err := w.samples.Quantile(1); err == nil {
		above := estimate.Interval{Low: most, High: math.Inf(1), Confidence: 1}
		d.Quantiles = append(d.Quantiles, lda.Quantile{P: 1, Delay: most, Interval: above})
	}
}

// A namedMessage is one that a report named, and when it was sent. A trail that begins before its
// report names it again.
type namedMessage struct {
	id   uint64
	sent int64
}

// namedBefore reports whether a message was named before, and remembers that it is now.
func (w *way) namedBefore(m Missing) (before bool) {
	name := namedMessage{m.ID, m.Sent.UnixNano()}
	before, w.names[name] = w.names[name], true
	return before
}

// forget forgets names so old, by the sender's clock, that no trail goes back to them when a report ends.
func (w *way) forget(now int64) {
	maps.DeleteFunc(w.names, func(n namedMessage, _ bool) bool { return now-n.sent > longestDelay*int64(w.config.Cut) })
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
	for _, n := range names.Names {
		w.missing = append(w.missing, Missing{n.ID, n.ID != uint64(n.Packet), time.Unix(0, n.Sent).UTC(), n.Repeated})
	}
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
