package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/hashing"
)

var choice = experiment.Experiment{
	Name: "ours-colate-choice-of-j", Title: "COLATE: which of its flow's counters a packet falls in",
	Claim: "Ours: the counter of its flow that a packet is added to follows from the packet's digest, so that both points choose alike; " +
		"the paper chooses at random (section 1.4), and if two points do so independently, the noise of whole time stamps does not cancel.",
	Weight: 5, Quick: 0.7, Measure: measureChoice,
}

func measureChoice(run *experiment.Run) {
	most := run.Pick(300, 2000)
	seed := run.SeedOf("choice")
	t, config := ownDelays(run)
	const full = 455_000
	n := scaled(run, full)
	alike := t.record(sums(n, seed))
	up, down := pair(paper.New, sums(n, seed))
	for i := range t.packets {
		p := &t.packets[i]
		key := t.flows[p.flow].key
		up.Update(key, p.id, p.in)
		down.Update(key, hashing.Packet(hashing.Mix(uint64(p.id), 1)), p.out)
	}
	apart := read(up, down)
	random, digest := &errorsOf{name: "chosen at random, at each point", paper: true}, &errorsOf{name: "chosen by the packet's digest"}
	for _, i := range t.someOfEach(most) {
		f := &t.flows[i]
		x := apart.theorem2(f)
		random.add(f, x)
		x = alike.theorem2(f)
		digest.add(f, x)
	}
	f := plot.Figure{
		Title:   fmt.Sprintf("Median error of Theorem 2 by size, %d counters", n),
		Caption: "The same traffic, flows and counters; time stamps of up to a minute.",
		X:       binAxis, Y: errorAxis(0, 0),
		Series: []plot.Series{random.byBin(random.name), digest.byBin(digest.name)},
	}
	run.Figures(f)
	configure(run, "traffic", config, "counters in a full run", full, "seed", seed)
	table := run.Table("", "Median error of Theorem 2", "packets of the flow", random.name, digest.name, "ratio")
	for _, b := range bins {
		table.Add(b.Name, experiment.Percent(random.median(b)), experiment.Percent(digest.median(b)),
			experiment.Number(random.median(b)/digest.median(b)))
	}
	ratio := random.median(large) / digest.median(large)
	verdict := experiment.Loss
	if ratio > 1000 {
		verdict = experiment.Win
	}
	run.Claim(fmt.Sprintf("median error of flows of ≥ 1,000 packets, random choice and digest (%s times; to be thousands)",
		experiment.Number(ratio)), experiment.Percent(random.median(large)), experiment.Percent(digest.median(large)), verdict).Headline = true

	run.Note("The paper's proof of Theorem 4 needs the same packets in the same counter at both points, which its random choice does not " +
		"give; its random choice must be read as one by a hash that the points share. A flow's own packets, too, are in other counters then, " +
		"which by itself would do no harm to the mean.")
}
