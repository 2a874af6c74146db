package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// pass passes packets in order, with a copy 2 ms behind each that takes longer than a given time. The point downstream may cut later.
func (run *cutRun) pass(t *testing.T, packets []truth.Packet, copied, later int64) {
	t.Helper()
	last := max(packets[len(packets)-1].Sent, packets[len(packets)-1].Received)/cutInterval + 2
	for range last {
		run.up, run.down = append(run.up, mustNewFor(t, DefaultConfig)), append(run.down, mustNewFor(t, DefaultConfig))
	}
	for _, x := range packets {
		p := hashing.Packet(x.Flow)
		run.up[x.Sent/cutInterval].Update(p, x.Sent)
		if x.Lost {
			continue
		}
		run.down[max(0, x.Received-later)/cutInterval].Update(p, x.Received)
		if again := x.Received + 2e6; x.Received-x.Sent > copied && again < last*cutInterval {
			run.down[again/cutInterval].Update(p, again)
		}
	}
	run.packets, run.later = packets, later
}

// sends returns packets that leave at random, 500 a second, and come when arrive says, or never if that is before time 0.
func sends(seed uint64, end int64, arrive func(r *rand.Rand, sent int64) int64) (packets []truth.Packet) {
	r := rand.New(rand.NewPCG(seed, 3))
	for now := int64(0); now < end; now += int64(2e6 * r.ExpFloat64()) {
		at := arrive(r, now)
		packets = append(packets, truth.Packet{Flow: r.Uint64(), Sent: now, Received: at, Lost: at < 0})
	}
	return packets
}

// Where slow packets come twice, intervals of the mean, the deviation and the median allow for them, though
// none of them was alone. If packets that came once stood for them, most would miss.
func TestCopiesOfSlowPackets(t *testing.T) {
	for _, over := range []int64{15e6, 20e6, 40e6} {
		var mean, deviation, median covered
		width := 0.0
		for seed := range uint64(2) {
			run := new(cutRun)
			run.pass(t, sends(seed, 10e9, func(r *rand.Rand, sent int64) int64 { return sent + 5e6 + int64(8e6*r.ExpFloat64()) }), over, 0)
			run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
				r := must(a.Estimate())
				want := truth.Of(run.packets, from, to).MeanDelay()
				_, i := r.OfReceived(0.95)
				mean.add(i.Contains(want))
				if from >= 5e9 { // it is known how long packets take
					width += (i.High - i.Low) / 2 / want / 10
				}
				all, of := run.came(from, to)
				deviation.add(r.DeviationInterval(0.95).Contains(of))
				q, err := a.Quantile(0.5, 0.95)
				middle, _ := all.Quantile(0.5)
				median.add(err != nil || q.Interval.Contains(middle))
			})
		}
		for _, of := range []covered{mean, deviation, median} {
			if of.of < 15 || of.hits < of.of-3 {
				t.Errorf("%d of %d intervals hold where those slower than %d ns came twice", of.hits, of.of, over)
			}
		}
		if width > 0.2 {
			t.Errorf("half widths are %.2g of the mean", width)
		}
	}
}

// Where more packets are on their way than the largest bank has cells, copies of one in 100 do not all show, and
// the mean is too low by more than is known otherwise.
func TestCopiesThatDoNotShow(t *testing.T) {
	packets := sends(4, 300e9, func(r *rand.Rand, sent int64) int64 { return sent + 4e9 + int64(12e8*r.ExpFloat64()) })
	for i := range packets { // ten times as fast
		packets[i].Sent, packets[i].Received = packets[i].Sent/10, packets[i].Received/10
	}
	packets[len(packets)-1].Received = 32e9 // so long it goes on
	run, held, blind := new(cutRun), covered{}, covered{}
	run.pass(t, packets, math.MaxInt64, 0)
	for i := 0; i < len(packets)-1; i += 100 {
		again := packets[i].Received + 5e7
		run.down[again/cutInterval].Update(hashing.Packet(packets[i].Flow), again)
	}
	run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
		if r, err := a.Estimate(); err == nil && from >= 5e9 && to < 29e9 {
			want := truth.Of(run.packets, from, to).MeanDelay()
			_, i := r.OfReceived(0.95)
			held.add(i.Contains(want))
			r.late = 0
			_, i = r.OfReceived(0.95)
			blind.add(i.Contains(want))
		}
	})
	if held.of < 15 || held.hits < held.of-2 || blind.hits > held.of-4 {
		t.Errorf("%+v hold, and without copies %+v", held, blind)
	}
}

// Packets that wait for 6 s had been taken for lost. When they come, and after that, reports hold or say so. If
// all of them stood for each other, every report in which they come would be wrong.
func TestBacklog(t *testing.T) {
	for _, rate := range []int64{3000, 100_000} {
		free, run := int64(0), new(cutRun)
		run.pass(t, sends(uint64(rate), 40e9, func(_ *rand.Rand, sent int64) int64 {
			at := sent + 3e6
			if at > 8e9 && at < 14e9 {
				at = 14e9
			}
			at = max(at, free)
			free = at + 1e9/rate
			return at
		}), math.MaxInt64, 0)
		refused := 0
		var mean covered
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			r, err := a.Estimate()
			if err != nil {
				refused++
				return
			}
			want := truth.Of(run.packets, from, to).MeanDelay()
			_, i := r.OfReceived(0.99)
			mean.add(i.Contains(want))
		})
		if mean.hits < mean.of-1 || mean.of < 15 || refused > 12 {
			t.Errorf("of a backlog that drains at %d packets a second %d of %d means hold, %d are refused", rate, mean.hits, mean.of, refused)
		}
	}
}

// After a pause packets may be slow, and it takes as long to know which of the next ones are lost. The share that was lost before
// still tells how many. If none were expected, most means would be twice as great as the truth.
func TestLossAfterPause(t *testing.T) {
	var mean covered
	for seed := range uint64(3) {
		run := new(cutRun)
		run.pass(t, sends(seed, 24e9, func(r *rand.Rand, sent int64) int64 {
			at := sent + 300e6 + int64(20e6*r.ExpFloat64())
			switch {
			case r.Float64() < 0.1:
				return -1
			case at > 8e9 && at < 12e9:
				return 12e9
			}
			return at
		}), math.MaxInt64, 0)
		h, _, _ := run.ofReceived(t, 10, after(3e9), 13e9, math.MaxInt64, 0.999)
		mean.join(h)
	}
	if mean.of < 20 || mean.hits < mean.of-1 {
		t.Errorf("%d of %d intervals hold", mean.hits, mean.of)
	}
}

// If one point cuts later than the other by more than packets take, packets come before they are sent, and reports
// hold or are refused. If theirs counted as ages of packets on their way, half of the intervals would miss.
func TestCutsApart(t *testing.T) {
	for _, later := range []int64{4e6, 20e6, 60e6} {
		var mean covered
		refused := 0
		for seed := range uint64(3) {
			run := new(cutRun)
			packets := sends(seed, 10e9, func(r *rand.Rand, sent int64) int64 { return sent + 5e6 + int64(1e6*r.ExpFloat64()) })
			run.pass(t, packets, math.MaxInt64, later)
			h, _, _ := run.ofReceived(t, 10, settled, 1, math.MaxInt64, 0.95)
			mean.join(h)
			run.reports(t, 10, settled, func(a *Accumulator, _, _ int64) {
				if _, err := a.Estimate(); errors.Is(err, estimate.ErrClocks) {
					refused++
				}
			})
		}
		if mean.of < 20 || (refused > 0) != (later > 5e6) || mean.hits < mean.of-1 {
			t.Errorf("%d of %d intervals hold where cuts are %v ms apart, and %d are refused", mean.hits, mean.of, later/1e6, refused)
		}
	}
}

// Copies that are sent one after another, are slow and are lost more often than others: intervals hold the mean of those that came, and
// quantiles of copies that are never alone. If losses were taken to spare copies, most means would be wrong, and so would every p95.
func TestCopiesThatAreLost(t *testing.T) {
	var mean, blind, slow covered
	for seed := range uint64(3) {
		run, r := new(cutRun), rand.New(rand.NewPCG(seed, 8))
		packets := sends(seed, 20e9, func(r *rand.Rand, sent int64) int64 { return sent + 40e6 + int64(10e6*r.ExpFloat64()) })
		for i := 0; i+500 < len(packets); i += 20 {
			for k := range 5 {
				p := &packets[i+k]
				p.Flow, p.Received, p.Lost = packets[i].Flow, p.Received+200e6, r.Float64() < 0.6
			}
		}
		run.pass(t, packets, math.MaxInt64, 0)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			r, err := a.Estimate()
			if err != nil || from < 5e9 { // it is sure then that there are copies
				return
			}
			want := truth.Of(run.packets, from, to).MeanDelay()
			_, i := r.OfReceived(0.95)
			mean.add(i.Contains(want))
			q, err := a.Quantile(0.95, 0.95)
			slow.add(err != nil || q.Interval.High > 150e6)
			r.behind = figure{}
			_, i = r.OfReceived(0.95)
			blind.add(i.Contains(want))
		})
	}
	if mean.of < 30 || mean.hits < mean.of-2 || slow.hits < slow.of-2 || blind.hits > blind.of*3/4 {
		t.Errorf("%+v means hold, %+v p95, and %+v of means as if losses chose no copies", mean, slow, blind)
	}
}

// Means hold or are refused where copies are far slower than all that are alone, and where a clock is so far behind that no loss shows.
func TestNothingAloneTells(t *testing.T) {
	for _, behind := range []int64{0, 2e9} {
		packets := sends(1, 30e9, func(r *rand.Rand, sent int64) int64 { return sent + int64(5e6*r.ExpFloat64()) - behind })
		for i := 1; i+100 < len(packets); i += 33 {
			packets[i] = packets[i-1]
			packets[i].Received += 200e6
		}
		run := new(cutRun)
		run.pass(t, packets, math.MaxInt64, 0)
		if held, _, _ := run.ofReceived(t, 10, settled, 0, math.MaxInt64, 0.95); held.of-held.hits > 1+held.of/20 {
			t.Errorf("%d ns behind %+v means hold", behind, held)
		}
	}
}

// Where packets wait for up to 8 s and then for 8 s do not, some count as lost and come after all. The number that was
// on its way lately accounts for most of these; without it, or the quarter that it may be more, four times as many do.
func TestWaitingIsNotLoss(t *testing.T) {
	t.Parallel()
	run, lost, extra, missing := new(cutRun), 0, 0, 0
	run.pass(t, sends(3, 120e9, func(r *rand.Rand, sent int64) int64 {
		if r.Float64() < 0.1 {
			missing++
			return -1
		} else if phase := sent % 16e9; phase < 8e9 && r.Float64() < 0.9 {
			return sent - phase + 8e9 + int64(1e6*r.Float64())
		}
		return sent + 7e6
	}), math.MaxInt64, 0)
	run.reports(t, 20, settled, func(a *Accumulator, _, _ int64) {
		r, _ := a.Estimate()
		lost, extra = lost+int(r.Lost), extra+int(r.Extra)
	})
	if t.Logf("%d lost, %d extra; %d were lost", lost, extra, missing); lost-extra > missing || extra > missing/12 {
		t.Error("they are not lost")
	}
}

// Where most cells always have packets on their way, a report loses 500 give or take 200, and what was lost before
// widens no mean. By what a moment's packets tell, 6 of these 7 would lose more or fewer, and 1 be wide.
func TestLossesOfBusyCellsAreEven(t *testing.T) {
	t.Parallel()
	run, far, wide := cutTraffic(t, 1, 260, 5000, exponentialDelay(3*cutInterval), 0.01), 0, 0
	run.reports(t, 10, settled, func(a *Accumulator, from, _ int64) {
		r, err := a.Estimate()
		if _, mean := r.OfReceived(0.95); from >= 140*cutInterval && (err != nil || mean.High > 3.6*cutInterval) {
			wide++
		}
		if lost := float64(r.Lost) - float64(r.Extra); from >= 140*cutInterval && math.Abs(lost-500) > 200 {
			far++
		}
	})
	if far > 3 || wide > 0 {
		t.Errorf("losses of %d reports are far from those of the rate, and %d means are wide", far, wide)
	}
}
