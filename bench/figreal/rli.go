package figreal

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

var realRLI = experiment.Experiment{
	Name: "real-rli", Title: "RLI: the error of flows by their size",
	Claim: "With references at 1 in 10 to 1 in 300 packets, the median error of all flows is 10 to 12 % at a load of 55 % and more, and " +
		"about 30 % at lower load (section V-B, packets of backbone traces through a simulated queue).",
	Weight: 2, Quick: 2, Measure: measureRLI,
}

// methods are those of a receiver, the paper's first.
var methods = []struct {
	name  string
	kind  rli.Method
	paper bool
}{{"RLI-L", rli.Left, true}, {"RLI", rli.Linear, true}, {"busy-aware", rli.BusyAware, false}}

// every is the distance between references, in packets: in the middle of the
// paper's 10 to 300, and the same on all links, which differ in load.
const every = 50

// A departure is what is reported to a receiver: a packet or a reference.
type departure struct {
	flow      int32
	bytes     int32
	at        int64
	reference bool
	stamp     rli.ReferencePacket
}

// simulate sends the captured packets at their times through a simulated link
// like the recorded queue, with references. The study is of the delays there.
func (c *capture) simulate() (list []departure, s *study, all estimate.Moments, counts queue.Counts) {
	link := experiment.Try(queue.NewLink(queue.LinkConfig{Rate: c.rate, Queue: queue.QueueConfig{Bytes: c.limit}}))
	injector := experiment.Try(rli.NewInjector(rli.InjectorConfig{Every: every}))
	delays := make([]estimate.Moments, len(c.flows))
	now := int64(math.MinInt64)
	for i := range c.packets {
		p := &c.packets[i]
		now = max(now, p.in) // a capture may be out of order by a little
		if out, fate := link.Send(now, int(p.bytes)); fate == queue.Passed {
			list = append(list, departure{flow: p.flow, bytes: p.bytes, at: out})
			delays[p.flow].Add(float64(out - now))
			all.Add(float64(out - now))
		}
		if stamp, due := injector.Packet(int(p.bytes), now); due {
			if out, fate := link.Send(now, rli.DefaultConfig.ReferenceBytes); fate == queue.Passed {
				list = append(list, departure{reference: true, at: out, stamp: stamp})
			}
		}
	}
	return list, c.studyOf(delays), all, link.Counts()
}

// follow lets a reference without length follow every n captured packets: it
// leaves when its packet left.
func (c *capture) follow() []departure {
	injector := experiment.Try(rli.NewInjector(rli.InjectorConfig{Every: every}))
	stamps := map[int32]rli.ReferencePacket{}
	now := int64(math.MinInt64)
	for i := range c.packets {
		now = max(now, c.packets[i].in)
		if stamp, due := injector.Packet(int(c.packets[i].bytes), now); due {
			stamps[int32(i)] = stamp
		}
	}
	var list []departure
	now = math.MinInt64
	for _, number := range c.leaving {
		p := &c.packets[number]
		now = max(now, p.out)
		list = append(list, departure{flow: p.flow, bytes: p.bytes, at: now})
		if stamp, ok := stamps[number]; ok {
			list = append(list, departure{reference: true, at: now, stamp: stamp})
		}
	}
	return list
}

// receive returns what a receiver says about the flows of a capture.
func (c *capture) receive(config rli.Config, list []departure) ([]float64, *rli.Receiver) {
	r := experiment.Try(rli.NewReceiver(config))
	keys := c.flowKeys(config.Identity)
	for i := range list {
		d := &list[i]
		if d.reference {
			r.Reference(d.stamp, d.at)
		} else {
			r.Update(keys[d.flow], int(d.bytes), d.at)
		}
	}
	r.Flush()
	answers := perflow.Unanswered(len(keys))
	for i, key := range keys {
		if got, err := r.Estimate(key); err == nil {
			answers[i] = got.Mean
		}
	}
	return answers, r
}

// receiverConfig has room for the flows of a capture. Without a rate, sizes
// are not corrected for.
func (c *capture) receiverConfig(seed uint64, method rli.Method, rate int64) rli.Config {
	config := rli.DefaultConfig
	config.Identity, config.Method, config.Rate = seed, method, rate
	config.Flows = max(64, 1<<bits.Len(uint(len(c.flows))))
	if method == rli.Left {
		config.Buffer = 0
	}
	return config
}

func measureRLI(run *experiment.Run) {
	captures := loadAll(run, sources...)
	seed := run.SeedOf("rli")
	run.Notef("Simulated: the captured packets, at the times and of the sizes they came, through a drop-tail link of the rate and limit "+
		"that the recorded queue was shaped to, with a reference of %d bytes behind every %dth packet in the same queue. "+
		"The truth is the simulated delay.", rli.DefaultConfig.ReferenceBytes, every)
	run.Notef("Captured: the departures as they were. No references were sent then, so one without length is imagined directly behind "+
		"every %dth packet; it leaves when its packet left, and is lost if that was.", every)
	run.Note("A shaper is not a link. Its token bucket lets packets pass at once while there are tokens, and then at its rate in bursts, "+
		"and no packet takes time to send. So departures contradict the rate, and the busy-aware receiver never believes it: it interpolates "+
		"as RLI does. It is worse than RLI all the same where delays are short, because it must be told a rate, and then corrects for the time "+
		"that packets would take to send at it. RLI was told none there. Behind a shaper, use Linear and no rate.",
		"Two classes of packets that overtake each other break what interpolation stands on, that a packet's delay is near its neighbours'.")
	run.Config("every", every, "receiver", rli.DefaultConfig, "seed", seed)
	table := run.Table("", fmt.Sprintf("Flows of at least %d packets", large), "capture", "delays", "load", "mean delay", "loss",
		"median error, RLI-L", "RLI", "busy-aware", "r.m.s. error, RLI-L", "RLI", "busy-aware", "packets that busy-aware believed the link for")
	for _, c := range experiment.Each(run, captures) {
		load := "-"
		if c.rate > 0 {
			load = percent(c.offered() / float64(c.rate))
			list, s, all, counts := c.simulate()
			dropped := float64(counts.Packets[queue.Full]) / float64(counts.Sent())
			i := interpolation{c, "simulated", "RLI through a simulated link", "Dashed: the paper's methods.", list, s}
			table.Row(i.compare(run, seed, load, duration(all.Mean()), percent(dropped)))
		}
		truth := c.truth()
		i := interpolation{c, "captured", "RLI on captured delays", "Dashed: the paper's methods. References are imagined.", c.follow(),
			c.study()}
		table.Row(i.compare(run, seed, load, duration(truth.Mean()), percent(c.loss())))
	}
}

// An interpolation is what receivers see of a capture.
type interpolation struct {
	*capture
	kind, title, caption string
	list                 []departure
	study                *study
}

// compare draws and judges the result of each method, and returns a row of the
// table.
func (i *interpolation) compare(run *experiment.Run, seed uint64, cells ...string) []string {
	var series []plot.Series
	medians, squares := perflow.Unanswered(len(methods)), perflow.Unanswered(len(methods))
	believed := "-"
	for k, m := range methods {
		if m.kind == rli.BusyAware && i.rate == 0 {
			continue
		}
		told := i.rate
		if i.kind == "captured" && m.kind != rli.BusyAware {
			told = 0
		}
		answers, r := i.receive(i.receiverConfig(seed, m.kind, told), i.list)
		series = append(series, i.study.series(plot.Series{Name: m.name, Paper: m.paper, Pair: k + 1}, answers, nil))
		medians[k], squares[k] = i.study.median(answers), i.study.rms(answers)
		if i.kind == "simulated" && m.kind != rli.Left {
			i.judgeAll(run, m.name, answers, m.paper)
		}
		if m.kind == rli.BusyAware {
			n := r.Counts()
			believed = percent(float64(n.Idle+n.Busy) / float64(n.Packets))
		}
	}
	drawSizes(run, i.kind, i.capture, i.title, i.caption, series)
	if i.rate > 0 {
		where := fmt.Sprintf("%s, %s: ", i.capture.title, i.kind)
		run.Beats(where+fmt.Sprintf("median error of flows of %d packets or more, RLI and busy-aware", large), medians[2], medians[1], 0.1)
		run.Beats(where+"root mean square error of the same", squares[2], squares[1], 0.1)
	}
	row := append([]string{i.capture.title, i.kind}, cells...)
	for _, x := range append(medians, squares...) {
		row = append(row, percent(x))
	}
	return append(row, believed)
}

// judgeAll judges the median error of all flows by what the paper reports at
// such a load.
func (i *interpolation) judgeAll(run *experiment.Run, method string, answers []float64, paper bool) {
	reported, text := 0.12, "10–12 %"
	if i.offered() < 0.5*float64(i.rate) {
		reported, text = 0.3, "about 30 %"
	}
	all := perflow.Quantile(i.study.relative(answers, i.study.flows(1, math.MaxInt)), 0.5)
	run.Claim(fmt.Sprintf("%s, %s: median error of all flows, %s", i.capture.title, i.kind, method), text, percent(all),
		byThePaper(all, reported, !paper))
}
