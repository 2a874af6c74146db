package lda

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
)

// An Accumulator adds up what two points saw over many intervals, although packets cross from one to the next.
// Compare often, so that a loss or a lost report costs little, and report seldom, after as many intervals as a
// good answer takes. The zero value panics.
//
//	total, err := lda.NewAccumulator(config)
//	err = total.Add(start, end, up, down) // for each interval, in order
//	result, err := total.Estimate()
//	p99, err := total.Quantile(0.99, 0.95)
//	total.Reset()
//
// It measures the time that packets spent on their way within the report, for each packet received in it (see [areas.Areas]).
// [Result.OfReceived] makes that the mean delay of the packets received, as package hoplag reports it. Without losses that is
// exact once all packets have arrived, however many cross the ends of intervals. A report waits for them for at most 90
// intervals, and packets may take 60 on average. Of a cell that lost a packet, only the time of the loss is unknown.
//
// Ask for a report a little after its end, when it is known what was on its way and what was lost. If packets
// may be lost, wait for that: call End, add intervals until Settled, and then call Estimate and Reset.
//
// Add allocates room for the packets of as many intervals as the slowest packet takes, and reuses it. An
// Accumulator is not safe for concurrent use.
type Accumulator struct {
	config   Config
	areas    *areas.Areas
	end      int64 // of the interval added last
	started  bool
	underWay bool // packets were on their way when it began

	from int      // the cut after which what is not in whole begins
	ends []ending // of reports that wait, the oldest first, and of the present one

	whole        transit   // up to cut from
	kept         reservoir // of its packets that were alone
	all          transit   // up to the end, if current
	sample       reservoir // likewise
	current      bool
	distribution *distribution  // of the sample, if it was asked for
	weights      []areas.Alone  // what others would stand for that are not in it
	alone        estimate.Delay // of the sample
	degrees      uint64         // of freedom of its deviation
	calm         estimate.Delay // of all but the farthest,
	calmDegrees  uint64         // and those of its deviation
	pairs        pairs
	unlike       unsettled // at the end of the report
	before       unsettled // and at its beginning
}

// unsettled is about packets that are outstanding in cells that always have some on
// their way, and so do not tell which are lost, or that some came without being sent.
type unsettled struct {
	lost  int     // of them
	extra int     // of which fewer than none would be outstanding, at this end and at the one before
	most  int     // the same at this end
	onWay float64 // most packets that were on their way lately
}

// fadingOnWay is how much of that each report leaves.
const fadingOnWay = 0.97

// An ending is where a report ends, and what it counted.
type ending struct {
	to     int // its last cut, or 0 if it is in whole, or the present one
	counts counted
}

// counted is what a report counts: Sent, Received, Lost and Extra, and the stamps at both points.
type counted struct {
	Result
	stamps [2]stamping
	length float64 // of its intervals
}

// A transit adds up parts of a report.
type transit struct {
	time        float64 // that packets spent on their way
	received    float64
	variance    float64     // of the time
	delays      float64     // of those received, by levels alone
	unsure      float64     // variance of these
	exact       float64     // packets received in exact spans
	joined      float64     // packets received that were not sent: copies, mostly
	alike       float64     // packets received that look like others on their way
	first, last areas.OnWay // at its ends
	greatest    float64     // delay
	late        float64     // time that packets spent on their way which may still come
	unknown     error       // why nothing is known of a part; if clocks disagree in any, that they do
}

// NewAccumulator returns an empty accumulator for aggregators of one Config. The error wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Accumulator{config: c, ends: make([]ending, 1)}
	var groups []int
	for _, b := range c.Banks[:c.banks()] {
		groups = append(groups, b.Rows)
	}
	a.areas = areas.New(groups, c.SumBits, c.DigestBits)
	return a, nil
}

// Gap says that the next interval does not follow the last one, whatever its time: a point was restarted, or
// its clock was set. The accumulator leaves out the packets that were on their way. These arrive without having
// been sent, and count as Extra. Call it also for an Accumulator that begins while packets are on their way.
func (a *Accumulator) Gap() {
	a.underWay = true
	a.before, a.unlike = unsettled{}, unsettled{}
	if !a.started {
		return
	}
	a.fold(a.through())
	for i := range a.ends { // nobody will know more of them
		a.ends[i].to = 0
	}
	a.from, a.started = 0, false
	a.areas.Begin(a.end, false) // reports that end before the next interval have none
}

// through returns the last cut of the report so far.
func (a *Accumulator) through() int {
	if len(a.ends) > 1 {
		return a.ends[0].to
	}
	return a.areas.Cuts()
}

// Add adds what both points saw of an interval, from its start to its end in nanoseconds by their clocks, which are those
// that stamp packets. If it does not begin where the last one ended, some are missing, and the packets that were on their way
// are left out. The error wraps [estimate.ErrMismatch] if a Config differs, and [estimate.ErrOrder] if the interval ends
// before it begins, or begins before the last one ended; nothing has changed then. An interval of no length is added to the
// last one. Both points must cut at the same times, to within less than the least delay: otherwise packets arrive before they
// are sent, and the interval is wide, or Estimate refuses the report.
func (a *Accumulator) Add(start, end int64, up, down *Aggregator) error {
	if err := cmp.Or(a.config.same(&up.config), a.config.same(&down.config)); err != nil {
		return err
	}
	if end < start || a.started && start < a.end {
		return fmt.Errorf("lda: %w: an interval from %d to %d after %d", estimate.ErrOrder, start, end, a.end)
	}
	if a.started && start != a.end {
		a.Gap()
	}
	if !a.started {
		a.areas.Begin(start, a.underWay)
		a.underWay = false
	}
	a.end, a.started, a.current = end, true, false
	a.cut(start, up, down)
	a.areas.Next(end)
	if len(a.ends) == 1 {
		// What is settled goes into the whole, from which nothing is taken out, so that memory stays fixed.
		if n := a.areas.Cuts() - a.Settling(); n-a.from >= foldedCuts && a.ends[0].counts.cells+16*(n-a.from) >= mostKept {
			a.fold(n)
		}
	}
	return nil
}

// foldedCuts is how many settled intervals are added up at once, in reports of a number of cells.
const foldedCuts, mostKept = 32, 1 << 15

// cut compares the cells at the end of an interval.
func (a *Accumulator) cut(start int64, up, down *Aggregator) {
	counts, cells := &a.ends[len(a.ends)-1].counts, pairing{up: up, down: down}
	when := interval{start: uint64(start), ns: uint64(a.end - start), bits: int(a.config.SumBits)}
	when.packets = math.MaxUint64 >> (66 - when.bits) / max(1, when.ns)
	counts.length += float64(when.ns)
	counts.Sent += up.unsampledCount()
	counts.Received += down.unsampledCount()
	counts.stamps[0].shifted += up.shifted
	counts.stamps[1].shifted += down.shifted
	var squares [maxBanks]float64
	for bank := range a.config.banks() {
		squares[bank] = a.cutBank(&cells, bank, counts, &when)
	}
	sent := cells.sum[0]
	for j := range sent {
		counts.Sent += sent[j]
		counts.Received += cells.sum[1][j]
	}
	if cells.judge(); cells.any {
		cells.each(func(bank, i int) {
			if n := up.cells[i].count(); counts.see(&cells, bank, i) {
				sent[bank] -= uint64(n)
				squares[bank] -= sq(float64(n))
			}
		})
	}
	for j, b := range a.config.Banks[:a.config.banks()] {
		a.pairs.see(float64(sent[j]), squares[j], float64(b.Rows))
	}
}

// Settling returns how many more intervals it takes until the packets of the latest one have arrived or are
// known to be lost, by the greatest recent delay. It is at most 90.
func (a *Accumulator) Settling() int {
	if a.areas.Cuts() == 0 {
		return 0
	}
	return a.areas.Settling(mostSettling)
}

// Before returns how many nanoseconds after the latest Gap packets still arrived that were on their way then,
// as far as can be seen.
func (a *Accumulator) Before() float64 { return a.areas.Before() }

// mostSettling bounds how long a report waits for slow packets.
const mostSettling = 90

// Trails calls visit for what the cells that lost packets in the report had outstanding. Package lost finds out
// which packets these were.
func (a *Accumulator) Trails(visit func(areas.Trail)) {
	a.complete() // learns how long packets take
	if to := a.through(); a.started && to > a.from {
		a.areas.Trails(a.from, to, visit)
	}
}

// TakeOut takes packets of trails that are known to be lost out of the areas; they still count as Lost. Cells that
// lost nothing else are then exact. Quantiles and deviation stay as they are, because weights of packets that were
// alone allow for all losses, also those with names: so call it when the report has settled.
func (a *Accumulator) TakeOut(lost []areas.Lost) {
	a.complete()
	if to := a.through(); a.areas.TakeOut(lost) > 0 && to > a.from {
		a.all, a.distribution = a.whole, nil
		a.take(&a.all, nil, to)
	}
}

// End ends the report with the interval added last, and begins the next one. Intervals added from now on belong to later
// reports, but tell what this one waits for. Estimate, Quantile and Reset refer to the oldest report that has ended.
func (a *Accumulator) End() {
	a.ends[len(a.ends)-1].to = a.areas.Cuts()
	a.ends, a.current = append(a.ends, ending{}), false
	a.pairs.fade()
}

// Settled reports whether a report has ended that is as good as it will be.
func (a *Accumulator) Settled() bool {
	return len(a.ends) > 1 && (a.ends[0].to == 0 || a.areas.Cuts()-a.ends[0].to >= a.Settling())
}

// Reset forgets the report. If none has ended, the next one begins now.
func (a *Accumulator) Reset() {
	if to := a.through(); a.started && to > a.from {
		a.complete() // learns how long packets take, or what was lost is told in the next report
		a.areas.Settle(to)
		a.from = to
	}
	if len(a.ends) == 1 {
		a.End()
	}
	a.ends = append(a.ends[:0], a.ends[1:]...)
	a.before, a.current, a.whole = a.unlike, false, transit{}
	a.kept.reset()
}

// report returns the counts of the report.
func (a *Accumulator) report() *counted { return &a.ends[0].counts }

// fold adds what is known up to a cut to the whole.
func (a *Accumulator) fold(to int) {
	if to <= a.from {
		return
	}
	a.take(&a.whole, &a.kept, to) // learns how long packets take, on which it depends what is lost
	lost, extra, _ := a.areas.Losses(to)
	of := a.report()
	of.Lost += uint64(lost)
	of.Extra += uint64(extra)
	a.areas.Settle(to)
	a.from = to
}

// take adds what is known from the last fold up to a cut, also to a sample if there is one.
func (a *Accumulator) take(into *transit, sample *reservoir, to int) {
	var singles []areas.Alone
	t, err := a.areas.Transit(a.from, to, func(all []areas.Alone) { singles = all })
	rate := a.config.sampledRate()
	if err != nil {
		if !errors.Is(into.unknown, estimate.ErrClocks) {
			into.unknown = err
		}
		return
	}
	received := t.Received / rate
	left := received - t.Received // packets that no bank samples
	if into.received == 0 {
		into.first = whole(t.First, rate)
	}
	into.time += t.Mean * received
	into.received += received
	into.variance += sq(t.Error*received) + t.Scatter*left*(1+left/t.Received)
	into.delays += t.Delay * received
	into.unsure += sq(t.DelayError*received) + t.Scatter*left*(1+left/t.Received)
	into.exact += t.Exact
	into.joined += t.Joined / rate
	into.alike += t.Alike / rate
	into.last = whole(t.Last, rate)
	into.greatest = max(into.greatest, t.Greatest)
	into.late += t.Late * received
	if sample != nil {
		sample.add(singles, received)
		a.weights = a.areas.Weights(a.weights[:0])
	}
}

// whole is about all packets on their way, of which a share was sampled.
func whole(o areas.OnWay, rate float64) areas.OnWay {
	o.Packets, o.Ages, o.Variance, o.Shared, o.Pending = o.Packets/rate, o.Ages/rate, o.Variance/rate/rate, o.Shared/rate, o.Pending/rate
	return o
}

// complete adds up the whole report.
func (a *Accumulator) complete() *transit {
	if !a.current {
		a.all = a.whole
		a.sample.set(&a.kept)
		if to := a.through(); a.started && to > a.from {
			a.take(&a.all, &a.sample, to)
		}
		if a.alone, a.degrees = deviation(a.sample.delays); a.degrees > 0 {
			a.calm, a.calmDegrees = deviation(withoutFarthest(a.sample.delays, a.alone.Mean))
		}
		a.current, a.distribution = true, nil
	}
	return &a.all
}

// unsure is how much wider Student's interval of nine degrees of freedom is: few spans may tell of a report's ends.
const unsure = 1.15

// Estimate returns what is known of the report so far: the mean delay and its deviation, and how many packets were lost. If
// no packet was received or nothing is known of any, the error wraps [estimate.ErrNoSamples]; if many delays are negative and
// hardly any were before, or timestamps lie outside their interval by more than its length on average, or packets come before
// they are sent because the points cut at other times, it wraps [estimate.ErrClocks]. The counts are right all the same.
//
// MeanError allows for the packets on their way where the report begins and ends. A packet is Outstanding until it arrives,
// or has been outstanding for half as long again as any recent packet. Then it is Lost; if it arrives after all, it is Extra.
func (a *Accumulator) Estimate() (Result, error) {
	of, whole := a.report(), a.complete()
	r := of.Result
	lost, extra, outstanding := a.areas.Losses(a.through())
	if a.started && a.through() > a.from {
		r.Lost += uint64(lost)
		r.Extra += uint64(extra)
	} else { // the next report with intervals tells them
		outstanding += lost - extra
	}
	r.Outstanding = uint64(max(0, outstanding))
	a.tellUnsettled(&r, whole, max(0, -outstanding))
	copies := a.pairs.copies()
	if copies >= 1 { // ids are so few that nothing tells which packets are on their way
		r.Repeats = max(r.Repeats, uint64(copies/(1+copies)*float64(r.Sent)))
	}
	if errors.Is(whole.unknown, estimate.ErrClocks) {
		return r, fmt.Errorf("lda: %w", whole.unknown)
	}
	if err := cmp.Or(of.stamps[0].check("upstream"), of.stamps[1].check("downstream")); err != nil {
		return r, err
	}
	if whole.received == 0 {
		const none = "lda: %w: %d packets sent, %d received, nothing is known of them"
		return r, fmt.Errorf(none, cmp.Or(whole.unknown, estimate.ErrNoSamples), r.Sent, r.Received)
	}
	r.Mean = whole.time / whole.received
	r.N, r.spoken = uint64(whole.exact), uint64(whole.received)
	r.meanDegrees = uint64(math.MaxInt32) // of many spans
	a.tellAlone(&r)
	repeated := copies + float64(r.Repeats)/float64(max(r.Sent, 1))
	r.copied = min(1, whole.copied()+repeated)
	// If c of n packets have k copies each, they have p = ck/n on average, and behind l losses
	// are at most lk and at most c of them: at most n√(p·l/n) whatever k is.
	r.behind.value = min(r.copied, math.Sqrt(copies*float64(r.Lost)/float64(max(r.Sent, 1))))
	r.StdDev, r.greatest = r.alone.StdDev, whole.greatest
	r.coming = whole.late / whole.received
	r.late = r.late/whole.received + r.coming
	if !a.Settled() {
		lost := a.unlike.lost // except earlier ones, if they would have come by now
		if a.areas.Cuts()-a.from >= a.Settling() {
			lost -= min(lost, a.before.lost)
		}
		r.late += float64(lost) * of.length / whole.received
		r.pending = min(1, whole.last.Pending/max(1, whole.last.Packets))
	}
	if r.Extra > 0 || whole.joined > 0 { // otherwise each stamp is one of two
		r.stray = (of.stamps[0].stray + of.stamps[1].stray) / whole.received
	}
	if r.stray > math.Abs(r.Mean) && of.stamps[0].shifted+of.stamps[1].shifted == 0 {
		return r, fmt.Errorf("lda: %w: the points cut further apart than packets take", estimate.ErrClocks)
	}
	r.owe(whole, repeated)
	return r, nil
}

// tellAlone fills in what the packets that were alone tell of all those received.
func (a *Accumulator) tellAlone(r *Result) {
	r.alone = a.alone
	r.deviationDegrees = uint64(min(float64(a.degrees)/r.byChance(), math.MaxInt32))
	r.calmDegrees = uint64(min(float64(a.calmDegrees)/r.byChance(), math.MaxInt32))
	// The farthest packet is one of those received: at least that part of what it adds to the sample is theirs.
	r.calm = math.Sqrt(sq(a.calm.StdDev) + r.aloneShare()*(sq(r.alone.StdDev)-sq(a.calm.StdDev)))
}

// owe says by how much the mean delay of those received differs: by what the ends owe each other. A share of the packets
// is repeated.
func (r *Result) owe(whole *transit, repeated float64) {
	r.fromAreas, r.owed, r.delaysError = true, (whole.first.Ages-whole.last.Ages)/whole.received, math.Inf(1)
	ends := whole.first.Variance + whole.last.Variance + sq(whole.first.Shared-whole.last.Shared)
	r.sampling = math.Sqrt(whole.variance+sq(unsure)*max(0, ends)) / whole.received
	if error := unsure * math.Sqrt(whole.unsure) / whole.received; error < r.sampling {
		r.owed, r.delaysError = whole.delays/whole.received-r.Mean, error
	}
	// Those that were alone are a sample, chosen by the hash. As many as three in a sample's size may be as slow as any
	// packet lately without showing in it.
	if n := float64(r.alone.N); n > 0 && r.Lost+r.Extra == 0 && whole.joined+repeated == 0 {
		error := unsure * math.Hypot(r.alone.StdDev/math.Sqrt(n), 3/n*(whole.greatest-r.alone.Mean))
		if error < min(r.delaysError, r.sampling) {
			r.owed, r.delaysError = r.alone.Mean-r.Mean, error
		}
	}
	r.MeanError = math.Hypot(r.sampling, math.Abs(r.owed)+r.late)
	// Copies take one another's places on their way, so they seem older at the ends than they are.
	for _, end := range [2]*areas.OnWay{&whole.first, &whole.last} {
		r.stray = max(r.stray, min(math.Abs(end.Ages), repeated*end.Packets*whole.greatest)/whole.received)
	}
}

// tellUnsettled counts as lost the outstanding packets beyond those that can be on their way, as settled cells
// tell, and as extra those by which fewer than none are outstanding. It takes back what it counted before.
func (a *Accumulator) tellUnsettled(r *Result, whole *transit, fewer int) {
	was, of := a.before, a.report()
	extra := max(min(fewer, was.most), was.extra-int(r.Extra)) // cells showed fewer of them
	// Others were lost in cells that do not show an extra packet, and show neither.
	hidden := max(0, extra-fewer)
	r.Outstanding += uint64(hidden)
	a.unlike = unsettled{lost: was.lost, most: fewer, onWay: was.onWay}
	if whole.received > 0 {
		a.unlike.onWay = max(whole.last.Packets, fadingOnWay*was.onWay)
		// A moment shows it to a few in a hundred, which would be told as losses and taken back in turn. While a report's mean
		// is as before, within three errors, an eighth of the difference leaves 1/√15 of an error: √((1/8)/(2−1/8)).
		all, doubt := whole.time/of.length, math.Sqrt(whole.variance)/of.length
		if off := all - was.onWay; math.Abs(off) < 3*doubt && 12*doubt < was.onWay { // the quarter below allows for it
			a.unlike.onWay = was.onWay + off/8
		}
	}
	if n := a.unlike.onWay; whole.received > 0 && n > 0 {
		a.unlike.lost = int(r.Outstanding) - int(1.25*n+4*math.Sqrt(n)) // a quarter, and four deviations of chance, are no loss
	}
	a.unlike.lost = min(max(0, a.unlike.lost), int(r.Outstanding))
	r.Outstanding -= uint64(a.unlike.lost)
	more := int(r.Lost) + a.unlike.lost - was.lost
	// Copies that no span shows lower a level, each for as long as a packet may take. What it counted before is none.
	r.Extra += uint64(extra - was.extra)
	r.late = max(0, float64(r.Extra)-whole.joined) * 1.5 * whole.greatest
	r.Lost, r.Extra = uint64(max(0, more)), r.Extra+uint64(max(0, -more))
	hidden = min(hidden, a.unlike.lost) // both are told
	a.unlike.lost, a.unlike.extra = a.unlike.lost-hidden, extra-hidden
}

// copied returns the share of packets, except for copies, that share their cell with a copy, so that they are not alone.
func (t *transit) copied() float64 { return min(1, (t.joined+t.alike)/max(t.received-t.joined, 1)) }
