package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
)

// tell says what is known of the report of the cuts after one and up to another, and which messages
// it lost. It may be the last that ended.
func (w *way) tell(m *meeting, from, to int64, fresh, last bool) Traffic {
	if w.ending && last { // in vain
		w.finish()
		w.err = fmt.Errorf("%w: what was sent when the report ended is not known", estimate.ErrNoSamples)
	}
	if w.told.idle {
		return Traffic{Err: ErrIdle}
	}
	end := w.ofSender(to, w.told.lag)
	w.name(m)
	d := w.delay(from, to, float64(end+w.told.added-w.told.lag-w.since), fresh)
	if w.flows != nil {
		scatter := 1.0 // of exponential delays, if that of all packets is not known
		if d.Mean != 0 {
			scatter = max(1, (d.StdDev/d.Mean)*(d.StdDev/d.Mean))
		}
		d.Flows, d.UnknownFlows = w.flows.Report(scatter, w.patience()-float64(w.config.Cut), w.whole) // as it is rounded up
	}
	if d.Lost == 0 {
		w.missing = w.missing[max(0, len(w.missing)-mostMissing):] // they may never be told
		return d
	}
	maps.DeleteFunc(w.names, func(n [2]int64, _ bool) bool { // no trail goes back to what is so old, by the sender's clock
		return end-n[1] > longestDelay*int64(w.config.Cut)
	})
	d.Missing, w.missing = slices.DeleteFunc(w.missing, func(m lost.Name) bool { // a trail that begins before its report names it again
		name := [2]int64{int64(m.ID), m.Sent}
		before := w.names[name]
		w.names[name] = true
		return before
	}), nil
	slices.SortFunc(d.Missing, func(x, y lost.Name) int { return cmp.Compare(x.Sent, y.Sent) })
	d.Missing = d.Missing[:min(len(d.Missing), mostMissing)]
	return d
}

const (
	// confidence is that of the intervals of reports, sampling that of what samples and counters add to one of a mean,
	// of which clocks take the rest, and certainly that of what they add to Traffic.Certain.
	confidence, sampling, certainly = 0.95, 0.975, 0.999

	// enough is how many packets, in reports, it takes to say that the points see different ones.
	enough, reports = 30, 3
)

// delay says what is known of a report that ended, of the cuts after one and up to another. No message took
// longer than the session has lasted.
func (w *way) delay(from, to int64, longest float64, fresh bool) Traffic {
	r, err := w.total.Estimate()
	if len(w.tardy) > 0 && errors.Is(err, estimate.ErrClocks) {
		err = fmt.Errorf("%w, or packets were recorded long after they passed", err)
	}
	d := Traffic{Received: r.Received, Err: cmp.Or(w.err, err), StdDev: r.StdDev, Outstanding: r.Outstanding}
	due, length := w.given+float64(w.out), float64(max(to-from, 1))*float64(w.config.Cut)
	anew := fresh || from < w.anew+w.joins()
	back := w.account(&d, &r, anew, length)
	w.lacks += r.Lost + r.Extra
	w.whole = w.lacks == 0 && w.total.Settled() && w.total.Before() == 0 &&
		float64(r.Received)*w.patience() < length*float64(w.config.Cells.Banks[0].Rows)
	w.samples = w.total.Samples()
	if d.Err = w.why(&d, &r, due, fresh, from < w.anew); d.Err == nil {
		w.distribute(&d, back)
		d.Mean, d.MeanInterval95 = r.OfReceived(sampling)
		_, d.Certain = r.OfReceived(certainly)
		late := w.straying(from, to, d.Received)
		lacks := float64(back) * w.patience() / float64(d.Received) // of the time before those were given up that came after all
		for _, i := range []*estimate.Interval{&d.MeanInterval95, &d.Certain} {
			i.Low, i.High = min(i.Low-late, longest), min(i.High+late+lacks, longest)
		}
		d.DeviationInterval95 = r.DeviationInterval(confidence)
		if anew {
			w.begun(&d, &r, length)
		}
		if w.ends && !w.total.Settled() { // nobody will know the age of those on their way
			least, most := float64(w.told.least), float64(w.told.added)+w.patience()
			if seen, err := w.samples.Quantile(1); err == nil {
				most = seen + (seen-least)/2
			}
			d.unsure(r.Outstanding+uint64(w.hidden), least, most)
		}
	}
	if w.total.Reset(); errors.Is(d.Err, ErrUnlike) { // nobody knows which were lost
		d, w.missing = Traffic{Sent: r.Sent, Received: r.Received, Err: d.Err}, nil
	}
	if errors.Is(d.Err, ErrUnlike) && w.unlike.some < 2 && (w.unlike.reports <= reports || w.unlike.reports%10 == 0) {
		w.total.Gap() // or what seems to be on its way is looked for in all reports; if often, none that takes long is found again
		w.since, w.anew, w.ledger = w.end, w.through, ledger{}
	}
	w.err, w.asked, w.losing, w.tardy = nil, 0, false, slices.DeleteFunc(w.tardy, func(t tardy) bool { return t.after < to })
	return d
}

// why returns why a report has no mean, or nil, given how many packets were due that no point sends now, and
// whether the points saw different packets until it had begun.
func (w *way) why(d *Traffic, r *lda.Result, due float64, fresh, until bool) error {
	u := &w.unlike
	u.strange = [2]uint64{u.strange[0] + r.Sent, u.strange[1] + r.Received}
	alone, clocks := w.samples.N() > 0, errors.Is(d.Err, estimate.ErrClocks)
	u.met = u.met || alone
	if alone || 2*r.N > r.Received && !(u.met && u.reports >= reports) || clocks && !u.met {
		u.strange, u.reports = [2]uint64{}, 0
	} else if r.Received > 0 {
		u.reports++
	}
	// Where they are one for every eighth cell and two cuts, an eighth hide behind each other.
	few, cells := min(r.Lost, r.Extra), uint64(w.config.Cells.Banks[0].Rows)*uint64(w.config.Report/w.config.Cut)
	if u.some++; 10*few <= r.Sent && 16*few <= cells {
		u.some = 0
	}
	// None is known to have been sent. Copies leave no packet alone, either, where cells are few.
	none := !fresh && min(u.strange[0], u.strange[1]) > enough && (!u.met || 4*u.strange[1] < 5*u.strange[0])
	came := float64(r.Received) - due
	u.lately = [2]float64{0.9*u.lately[0] + float64(r.Sent), 0.9*u.lately[1] + max(0, came)}
	switch {
	case w.err == nil && r.Sent+d.Received+d.Lost == 0:
		return ErrIdle
	case !fresh && r.Received > enough && 2*u.lately[1] > 3*u.lately[0] && 4*came > 5*float64(r.Sent): // and it is not over
		*u = unlike{met: u.met, lately: u.lately} // copies, of what was sent
		return fmt.Errorf("%w: %d arrive and %d are sent: does a message go to several receivers, or come from a third point?",
			ErrUnlike, r.Received, r.Sent)
	case 1000*r.Repeats > r.Received+r.Sent:
		return fmt.Errorf("%w: %d of %d packets repeat an id", estimate.ErrNoSamples, r.Repeats, r.Sent)
	case none && u.reports >= reports:
		u.some = 0
		return fmt.Errorf("%w: none of %d that arrive was sent, or they take more than 60 cuts: do both points pass the same bytes?",
			ErrUnlike, u.strange[1])
	case !fresh && r.Received > enough && u.some > 1:
		return fmt.Errorf("%w: at least %d of %d that arrive were not sent, or came twice, and %d are lost: do both points pass the same bytes?",
			ErrUnlike, r.Extra, r.Received, r.Lost)
	case none && u.met:
		return fmt.Errorf("%w: none of %d that arrive is known to have been sent", cmp.Or(d.Err, estimate.ErrNoSamples), r.Received)
	case until && r.Received > 0:
		return fmt.Errorf("%w: the points did not see the same packets when the report began", estimate.ErrNoSamples)
	case d.Err == nil && max(d.Extra, r.Extra) >= d.Received: // and each may have taken longer than any
		return fmt.Errorf("%w: %d packets came that had counted as lost, or came twice", estimate.ErrNoSamples, max(d.Extra, r.Extra))
	}
	return d.Err
}

// account fills in how many packets were lost, and how many are extra: those that cells show, and, before cells show it, those that
// were taken for lost if more have come than were on their way. Where the sender just recorded them late, as many more count as lost
// when it has. When a session begins neither is known; what seemed lost then is not extra if it comes. Extra packets may belong to an
// earlier report, and wait for one that has room, so that counts add up. Cells that always have packets on their way show late what was
// sent before the session: as many as the rate and the mean suggest are not extra.
func (w *way) account(d *Traffic, r *lda.Result, fresh bool, length float64) (came int) {
	seen := int64(r.Extra)
	more := int64(r.Lost+r.Received+r.Outstanding) - int64(r.Sent) - w.out - seen
	more = max(min(more, int64(math.Ceil(w.given))), -w.early)
	w.early, w.out = w.early+more, int64(r.Outstanding)
	late := float64(seen + more)
	if came = int(math.Ceil(max(0, min(late, w.given)))); r.Received > 0 && late == 0 { // or nothing shows that earlier ones will not come
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
		untold := math.Floor(max(0, min(w.hidden, late)))
		w.hidden = 0.99 * (w.hidden - untold)
		w.extra += int64(late - untold)
		d.Lost = r.Lost + uint64(max(0, -w.extra))
	}
	w.extra = max(0, w.extra)
	d.Extra = min(uint64(w.extra), d.Received)
	w.extra -= int64(d.Extra)
	d.Sent = d.Received + d.Lost - d.Extra
	return came
}

// toldBegun reports whether the losses of a report are known in which a session begins: none seems lost that is on its way, that came
// before the receiver's cuts began, or was counted late, and hardly a packet on its way then came to a cell that lost one.
func (w *way) toldBegun(r *lda.Result) bool {
	inTime := len(w.tardy) == 0 && (w.config.ClocksAgree || w.fastest.known && w.fastest.key >= 0)
	return inTime && w.total.Settled() && float64(w.joined)*float64(max(r.Lost, 1)) < float64(w.config.Cells.Banks[0].Rows)
}

// distribute fills in the quantiles, except for those so high that packets given up, which came after all, may be
// among them: samples lack these.
func (w *way) distribute(d *Traffic, back int) {
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if q, err := w.total.Quantile(p, confidence); err == nil && float64(2*back) <= (1-p)*float64(d.Received) {
			d.Quantiles = append(d.Quantiles, q)
		}
	}
	if top, err := w.samples.Quantile(1); err == nil {
		d.Quantiles = append(d.Quantiles, lda.Quantile{P: 1, Delay: top, Interval: estimate.Interval{Low: top, High: math.Inf(1), Confidence: 1}})
	}
}

// straying returns by how much the mean of a report of some cuts may be off because points counted packets
// late: its own in the next report, and the last one's in it. None takes longer than packets are waited for.
func (w *way) straying(from, to int64, received uint64) float64 {
	n := 0
	for _, t := range w.tardy {
		if t.after >= from && t.after < from+mostGrace || t.after >= to && t.after < to+mostGrace {
			n += t.n
		}
	}
	return float64(n) * w.patience() / float64(max(received, 1))
}

// begun makes the intervals of a mean allow for what a share of the packets may have taken that were on their
// way when the session began, as nothing is known of them. There is no mean if they are more than the rate
// since allows, or came later than if they had taken no longer than packets do since.
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
	d.unsure(r.Extra, float64(w.told.added), float64(w.told.added)+w.patience())
}

// unsure makes the intervals of a mean hold that so many packets may have taken the least, or the most.
func (d *Traffic) unsure(packets uint64, least, most float64) {
	share := min(1, float64(packets)/float64(d.Received))
	for _, i := range []*estimate.Interval{&d.MeanInterval95, &d.Certain} {
		i.Low -= share * max(0, i.Low-least)
		i.High += share * max(0, most-i.High)
	}
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
	trails, names := m.asks(w.direction, trails)
	w.missing = append(w.missing, names.Names...)
	w.total.TakeOut(names.Lost(w.config.Cells, trails))
}
