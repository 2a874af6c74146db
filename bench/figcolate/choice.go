package figcolate

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
)

var choice = experiment.Experiment{
	Name:   "ours-colate-choice-of-j",
	Group:  ours,
	Title:  "COLATE: which of its flow's counters a packet falls in",
	Claim:  "Ours: the counter of its flow that a packet is added to follows from the packet's digest, so that both points choose alike; the paper chooses at random (section 1.4), and if two points do so independently, the noise of whole time stamps does not cancel.",
	Weight: 5, Quick: 0.7,
	Run: runChoice,
}

func runChoice(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	most := run.Pick(300, 2000)
	seed := run.SeedOf("choice")
	t, config, err := ownDelays(run)
	if err != nil {
		return experiment.Result{}, err
	}
	const full = 455_000
	n := scaled(run, full)
	alike, err := t.record(sums(n, seed))
	if err != nil {
		return experiment.Result{}, err
	}
	if err := run.Progress(ctx, 1, 3); err != nil {
		return experiment.Result{}, err
	}
	up, down, err := newRecorders(sums(n, seed))
	if err != nil {
		return experiment.Result{}, err
	}
	for i := range t.packets {
		p := &t.packets[i]
		key := t.flows[p.flow].key
		up.Update(key, p.id, p.in)
		down.Update(key, hashing.Packet(hashing.Mix(uint64(p.id), 1)), p.out)
	}
	apart, err := read(up, down)
	if err != nil {
		return experiment.Result{}, err
	}
	if err := run.Progress(ctx, 2, 3); err != nil {
		return experiment.Result{}, err
	}
	random, digest := &errorsOf{name: "chosen at random, at each point", paper: true}, &errorsOf{name: "chosen by the packet's digest"}
	for _, i := range t.someOfEach(most) {
		f := &t.flows[i]
		x, err := apart.theorem2(f)
		if err != nil {
			return experiment.Result{}, err
		}
		random.add(f, x)
		if x, err = alike.theorem2(f); err != nil {
			return experiment.Result{}, err
		}
		digest.add(f, x)
	}
	f := plot.Figure{
		Title:   fmt.Sprintf("Median error of Theorem 2 by size, %d counters", n),
		Caption: "The same traffic, flows and counters; time stamps of up to a minute.",
		X:       binAxis(), Y: errorAxis(0, 0),
		Series: []plot.Series{random.byBin(random.name), digest.byBin(digest.name)},
	}
	result := experiment.Result{Figures: []plot.Figure{f}, Config: setting(run, map[string]any{"traffic": config, "counters in a full run": full, "seed": seed})}
	table := experiment.Table{Title: "Median error of Theorem 2", Columns: []string{"packets of the flow", random.name, digest.name, "ratio"}}
	for _, b := range bins {
		table.Add(b.name, experiment.Percent(random.median(b)), experiment.Percent(digest.median(b)), experiment.Number(random.median(b)/digest.median(b)))
	}
	ratio := random.median(large) / digest.median(large)
	verdict := experiment.Loss
	if ratio > 1000 {
		verdict = experiment.Win
	}
	result.Claims = []experiment.Claim{{
		What:  fmt.Sprintf("median error of flows of ≥ 1,000 packets, random choice and digest (%s times; to be thousands)", experiment.Number(ratio)),
		Paper: experiment.Percent(random.median(large)), Ours: experiment.Percent(digest.median(large)), Verdict: verdict, Headline: true,
	}}
	result.Tables = []experiment.Table{table}
	result.Notes = []string{"The paper's proof of Theorem 4 needs the same packets in the same counter at both points, which its random choice does not give; its random choice must be read as one by a hash that the points share. A flow's own packets, too, are in other counters then, which by itself would do no harm to the mean."}
	return result, nil
}
