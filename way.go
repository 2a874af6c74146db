package hoplag

import (
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
	names   map[[2]int64]bool  // by id and time sent, of messages lost lately that reports have told
	samples estimate.Empirical // of the latest report, as measured
	unlike  unlike
	ledger
	lacks uint64 // packets lost or extra since flows were first told apart,
	whole bool   // or none, nor any on its way before: at the latest rate, each would have been alone in its cell by now

	// Packets that were alone in a cell: the latest sent one of each cell.
	sent  []single   // nil if clocks agree
	hasty []received // lately, of which nobody knows yet who sent them
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

// A tardy says how many packets of a pair belong to earlier cuts.
type tardy struct {
	after int64
	n     int
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

// begin records that what was on its way is unknown. Delays before and after, perhaps by different clocks, do not mix.
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

// aligned is how much earlier one point's cuts may end, in ns: few packets come in between.
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
		w.match(up, down, p.through, p.doubt/int64(w.config.Cut), sample)
	}
	down.shift(w.added)
	start, end := w.ofSender(p.after, w.lag), w.ofSender(p.through, w.lag)
	if begins || w.end == 0 {
		w.since, w.end = start, start // nothing passed before
	}
	if w.config.Flows > 0 && w.flows == nil {
		w.flows, w.lacks = flows.New(w.config.Flows, w.config.Cut, w.end, begins), 0
	}
	before, last := w.late, w.through
	w.late, w.cuts, w.through = nil, p.through-p.after, p.through
	if w.waits && w.cuts == 1 { // that of an idle point is too long
		w.late, down = down, nil
	}
	if before != nil {
		w.add(up, before, end, last-1, last)
		up = nil
	}
	if w.ending {
		w.finish()
	}
	if before == nil || down != nil {
		w.add(up, down, end, p.after, p.through)
	}
}

// add takes what was sent up to a time by the sender's clock, and received in cuts after one and up to another, nil if
// nothing, and gives it back.
func (w *way) add(up, down *tally, end, after, through int64) {
	defer borrowInto(&up, w.config).giveBack()
	defer borrowInto(&down, w.config).giveBack()
	if err := w.total.Add(w.end, end, &up.all.Aggregator, &down.all.Aggregator); err != nil {
		w.err = err
	}
	if cut := float64(w.config.Cut); w.flows != nil {
		w.flows.Add(end, up.flows, down.flows, estimate.Interval{Low: cut * float64(after+1), High: cut * float64(through+1)})
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

const (
	// unsettled stands for an unknown number of cuts that packets take to settle.
	unsettled = 90

	// settling is the most cuts after a session's beginning in which packets may still come that were on their
	// way, or seem lost because only one point counted them.
	settling = 10
)

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

// A single is a packet that was alone in its cell, unless its cut is 0.
type single struct {
	stamp  uint64 // ambiguous if several packets look alike
	cut    uint32 // its lowest bits
	digest uint32
}

const (
	ambiguous    = math.MaxUint64
	longestDelay = 300 // for so many cuts a packet is waited for
)

func (s *single) recent(cut int64) bool { return s.cut != 0 && uint32(cut)-s.cut < longestDelay }

// match finds packets that were alone in a cell at both points, whatever cuts they passed in: they may seem to come so many before they
// are sent.
func (w *way) match(up, down *tally, cut, before int64, sample func(sent, received uint64)) {
	if up != nil {
		up.all.Singles(func(cell int, digest uint32, stamp uint64) {
			s := &w.sent[cell]
			if s.recent(cut) && s.digest == digest {
				stamp = ambiguous
			}
			*s = single{stamp, uint32(cut), digest}
		})
	}
	if down != nil {
		down.all.Singles(func(cell int, digest uint32, stamp uint64) {
			w.hasty = append(w.hasty, received{cell, digest, stamp, cut})
		})
	}
	w.hasty = slices.DeleteFunc(w.hasty, func(e received) bool {
		s := &w.sent[e.cell]
		if s.digest == e.digest && s.recent(cut) && s.stamp != ambiguous {
			delay := estimate.SignExtend(e.stamp-s.stamp+uint64(w.lag), int(w.config.Cells.SumBits))
			w.fastest.add(delay, 0, cut*int64(w.config.Cut))
			sample(s.stamp, e.stamp)
			s.cut = 0
		}
		return s.digest == e.digest || cut-e.cut > before
	})
}

// A received is a packet that was alone in its cell where it came. It may be sent in one of the next pairs, whose cuts end
// sooner at the sender: without these, the fastest of a burst at the end of a cut would be missing.
type received struct {
	cell   int
	digest uint32
	stamp  uint64
	cut    int64
}
