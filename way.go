package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/flows"
	"github.com/hoplag/hoplag/lda/lost"
)

// A way compares the counters of one direction. It holds nothing until something passes.
type way struct {
	config    *Config
	direction int
	total     *lda.Accumulator // nil while nothing passed
	flows     *flows.Meter     // nil without Config.Flows
	since     int64            // when the session began, by the sender's clock, or when packets were alike again,
	anew      int64            // and the cut then
	through   int64            // the latest cut
	end       int64            // of the latest pair compared
	cuts      int64            // in that pair
	came      int64            // the latest cut in which anything was received
	asked     int64            // the cut at which losing was found, or 0
	losing    bool             // packets of the oldest report seemed to be lost
	idle      int              // pairs since anything passed
	begins    bool             // the next one is the first of a session
	err       error            // why one of them was left out of the report

	placing         // of the current report
	told    placing // of the latest report that was told
	fastest least   // delay, if lag is added to it
	waits   bool    // receptions wait for a cut
	late    *tally  // those that do
	placed  bool    // these are valid
	ending  bool    // the latest report ends after the next pair, for which receptions wait
	ends    bool    // a session ends with the report that is told
	tardy   []tardy // packets that points counted late, since the oldest report began

	missing []lost.Name        // that no report named yet
	names   map[[2]int64]bool  // of messages that were lost lately, which reports told: the id, and when it was sent
	samples estimate.Empirical // of the latest report, as measured
	unlike  unlike
	ledger
	lacks uint64 // packets lost or extra since flows were first told apart,
	whole bool   // or none, nor any on its way before: at the latest rate, each would have been alone in its cell by now

	// Packets that were alone in a cell: the latest sent one of each cell.
	sent  []single   // nil if clocks agree
	hasty []received // in the latest pair, of which nobody knows yet who sent them
}

// A ledger is what account keeps from report to report of a session.
type ledger struct {
	given  float64 // packets that were taken for lost and may come yet,
	hidden float64 // those of them that no report told, or those on their way when the session began that no cell showed
	out    int64   // packets outstanding when the latest report ended,
	early  int64   // and those that were told to be extra before cells showed it
	extra  int64   // packets found to be extra, of which earlier reports told no reception
	joined uint64  // packets that were on their way when the session began
}

// An unlike is what tells whether the points see the same packets in a session.
type unlike struct {
	strange [2]uint64  // packets sent and received since one was known by itself, or most by their cells,
	reports int        // and in how many reports
	some    int        // reports in a row in which some were lost, and as many came that were not sent
	met     bool       // one was known by itself
	lately  [2]float64 // packets sent, and received though not due, in this report, and less and less of earlier ones
}

// open makes room for what passes.
func (w *way) open(begins bool) {
	w.placed = true
	if w.total = must(lda.NewAccumulator(w.config.Cells)); begins {
		w.total.Gap()
	}
	if w.config.ClocksAgree {
		return // nobody asks for packets that were alone
	}
	cells := 0
	for _, b := range w.config.Cells.Banks {
		cells += b.Rows
	}
	w.sent = make([]single, cells)
}

// begin records that what was on its way is unknown. The delays of before and after, perhaps by different clocks, do not mix.
func (w *way) begin() {
	w.begins, w.fastest, w.anew = true, least{}, math.MinInt64
	if w.total == nil {
		return
	}
	w.total.Gap()
	w.total.Reset()
	clear(w.sent)
	w.ledger, w.unlike = ledger{}, unlike{}
	w.late.giveBack()
	w.tardy, w.late, w.flows, w.hasty = w.tardy[:0], nil, nil, nil
}

// A placing is how delays of a report were measured.
type placing struct {
	idle  bool  // nothing had passed ever
	lag   int64 // by how much the sender's cuts are ahead of the receiver's of the same numbers, ns
	added int64 // to delays, ns
	least int64 // delay, with what was added, when it ended
}

// place decides, when a report begins, whether receptions wait. What one point has received by a cut, the other has sent by its cut of
// that number, unless that ends earlier by more than packets take. Then receptions count in the next cut, as if they had taken that
// much longer. The least delay tells, by stamps that are numbered like the cuts; until one is known, the clocks do.
func (w *way) place(p *pair) {
	lag, sooner := p.lag, p.apart-p.lag
	if w.direction == forth {
		lag, sooner = -lag, -sooner
	}
	w.fastest.key += lag - w.lag
	if w.lag = lag; w.placed && !p.begins {
		return
	}
	early := max(-w.fastest.key, 0) // by so much packets seem to come before they are sent
	w.waits = early > aligned
	if !w.fastest.known {
		early = p.doubt + max(sooner, 0)
		w.waits = sooner > max(aligned, p.doubt)
	}
	if w.waits {
		early = int64(w.config.Cut)
	} else if w.fastest.known && !w.config.ClocksAgree { // delays stay above 0 while clocks drift, or one would seem to be set
		early = max(early, int64(mostDrift*float64(w.config.Report))-w.fastest.key)
	}
	w.added, w.placed = lag+early, w.total != nil
}

// aligned is how much too soon cuts may end, in ns: few packets come in between.
const aligned = 5e5

// ofSender returns when a cut of the second point's numbers ends at the sender, by its clock.
func (w *way) ofSender(cut, lag int64) int64 {
	if w.direction == back {
		lag = 0
	}
	return (cut+1)*int64(w.config.Cut) + lag
}

// compare takes what both points counted between two moments, nil if nothing, and gives it back. It calls sample for
// packets that were alone in a cell at both points. Moments are those of the sender's cuts, by its clock.
func (w *way) compare(up, down *tally, p *pair, sample func(sent, received uint64)) {
	if w.idle++; up != nil || down != nil {
		w.idle = 0
	}
	if down != nil {
		w.came = p.through
	}
	if w.idle > 0 && (w.total == nil || w.idle > longestDelay && !w.ending) {
		return
	}
	begins := w.begins
	if w.begins = false; w.total == nil {
		w.open(begins)
	}
	if n := p.late[w.direction]; n > 0 {
		w.tardy = append(w.tardy, tardy{p.after, n})
	}
	if w.sent != nil {
		w.match(up, down, p.through, sample)
	}
	down.shift(w.added)
	start, end := w.ofSender(p.after, w.lag), w.ofSender(p.through, w.lag)
	if begins || w.end == 0 {
		w.since, w.end = start, start // nothing passed before
	}
	if w.config.Flows > 0 && w.flows == nil {
		w.flows, w.lacks = flows.New(w.config.Flows, w.config.Cut, w.end, begins), 0
	}
	before := w.late
	w.late, w.cuts, w.through = nil, p.through-p.after, p.through
	if w.waits && w.cuts == 1 { // that of an idle point is too long
		w.late, down = down, nil
	}
	if before != nil {
		w.add(up, before, end)
		up = nil
	}
	if w.ending {
		w.finish()
	}
	if before == nil || down != nil {
		w.add(up, down, end)
	}
}

// add takes what was sent and what was received up to a time by the sender's clock, nil if nothing, and gives it back.
func (w *way) add(up, down *tally, end int64) {
	defer borrowInto(&up, w.config).giveBack()
	defer borrowInto(&down, w.config).giveBack()
	if err := w.total.Add(w.end, end, &up.all.Aggregator, &down.all.Aggregator); err != nil {
		w.err = err
	}
	if w.flows != nil {
		w.flows.Add(up.flows, down.flows, end)
	}
	w.end = end
}

// endReport ends a report with the pair compared last.
func (w *way) endReport() placing {
	ended := w.placing
	ended.idle, ended.least, w.placed = w.total == nil, w.fastest.key-w.lag+w.added, false
	if w.ending = w.late != nil; !w.ending {
		w.finish()
	}
	return ended
}

// finish ends a report once all its receptions have been compared.
func (w *way) finish() {
	if w.ending = false; w.total == nil {
		return
	}
	if w.total.End(); w.total.Settling() >= unsettled {
		w.total.Estimate() // tells it how long packets take
	}
	if w.flows != nil {
		w.flows.End()
	}
}

// incomplete reports whether receptions of the oldest report, which may be the last, wait for a pair, or some may be on their way.
func (w *way) incomplete(last bool) bool {
	return w.ending && last || w.total != nil && w.total.Settling() < unsettled && !w.total.Settled()
}

// loses reports whether packets seem to be lost, up to a cut, that may just be late. Each look walks all cells. So if some
// seemed lost, it looks at the same report again no sooner than so many cuts later, and only if something came since.
func (w *way) loses(cut, every int64) bool {
	if w.total != nil && w.asked != cut && !(w.losing && cut > w.asked && (w.came <= w.asked || cut < w.asked+every)) {
		r, _ := w.total.Estimate()
		w.asked, w.losing = cut, r.Lost > 0
	}
	return w.losing
}

// joins returns for how many cuts after the latest beginning packets come that were on their way then.
func (w *way) joins() int64 {
	if w.total == nil {
		return 1
	}
	return max(1, min(settling, int64(w.total.Settling())*w.cuts), min(unsettled, int64(w.total.Before())/int64(w.config.Cut)+1))
}

// patience returns how long packets are waited for.
func (w *way) patience() float64 { return float64(w.total.Settling()) * float64(w.config.Cut) }

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
	w.forget(end)
	d.Missing, w.missing = slices.DeleteFunc(w.missing, w.namedBefore), nil
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
	if w.total.Reset(); errors.Is(d.Err, ErrUnlike) && w.unlike.some < 2 && (w.unlike.reports <= reports || w.unlike.reports%10 == 0) {
		d = Traffic{Sent: r.Sent, Received: r.Received, Err: d.Err}
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
	if came = int(math.Ceil(max(0, min(late, w.given)))); r.Received > 0 && late == 0 { // or nothing shows that those of before will not come
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

// distribute fills in the quantiles, but for those so high that packets given up, which came after all, may be
// among them: samples lack these.
func (w *way) distribute(d *Traffic, back int) {
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

// tardy returns how many packets of a pair belong to earlier cuts.
type tardy struct {
	after int64
	n     int
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
