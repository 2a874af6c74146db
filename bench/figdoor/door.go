package figdoor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
)

var door = experiment.Experiment{
	Name: "ours-door", Title: "Reports of the front door, whatever goes wrong",
	Claim: "The interval of a report's mean holds the mean in 95 of 100 reports, or there is no mean: with any clocks, rates, paths, " +
		"losses, slow readers, bad transports, restarts and pauses. Where the clocks are not said to agree, the interval is as wide as they " +
		"leave it.",
	Weight: 150, Quick: 8, Measure: measureDoor,
}

// draw returns settings in which every factor is drawn by itself.
func draw(random *rand.Rand, n, seconds int) (all []setting) {
	for range n {
		s := setting{
			Ways: one(random, ways), Clock: one(random, clocks), Rate: one(random, rates), Path: one(random, paths), Fault: one(random, faults),
			Loss: one(random, losses), Seed: random.Uint64() >> 1, Length: seconds,
		}
		if s.Rate >= 10_000 { // nearly all of the time
			s.Length /= 2
		}
		all = append(all, s)
	}
	return all
}

func one[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

// outcomes runs settings in a process of their own, in virtual time.
func outcomes(settings []setting) (all []outcome) {
	dir := experiment.Try(os.MkdirTemp("", "door"))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "settings.json")
	experiment.Check(os.WriteFile(file, experiment.Try(json.Marshal(settings)), 0o600))
	command := exec.Command("go", "test", "-v", "-timeout", "1h", "-count", "1", "-run", "^TestDoor$",
		"github.com/hoplag/hoplag/bench/figdoor", "-args", "-outcomes", "-settings", file)
	out, err := command.CombinedOutput()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("outcome ")); ok {
			var o outcome
			experiment.Check(json.Unmarshal(data, &o))
			all = append(all, o)
		}
	}
	if err != nil || len(all) != len(settings) {
		experiment.Check(fmt.Errorf("%d outcomes of %d settings, %v: %.2000s", len(all), len(settings), err, out))
	}
	return all
}

func measureDoor(run *experiment.Run) {
	settings := draw(run.Rand("settings"), run.Pick(25, 400), run.Pick(15, 40))
	soak := setting{Ways: "one", Clock: "agree", Rate: 2000, Path: "even", Fault: "busy", Loss: "1 %", Seed: 1, Length: run.Pick(30, 600)}
	all := outcomes(append(settings, soak))
	soaked := all[len(settings)]
	all = all[:len(settings)]
	table := run.Table("Reports by what they were of", "", "reports", "idle", "silent", "refused", "with a mean", "without an upper end",
		"outside the interval", "certainly wrong", "half width over mean", "half width over error", "lost: said, true")
	row := func(name string, of func(s setting) bool) total {
		t := sum(all, of)
		table.Row(name, t.reports, t.idle, t.silent, t.refused, t.answered, t.unbounded,
			fmt.Sprintf("%d (%s)", t.missed, experiment.Percent(float64(t.missed)/float64(max(t.answered, 1)))), t.wrong,
			experiment.Percent(t.relative), experiment.Number(t.sharp), experiment.Percent(t.said)+", "+experiment.Percent(t.lost))
		return t
	}
	whole := row("all", func(setting) bool { return true })
	worst := 0.0
	level := func(factor string, values []string, of func(s setting) string) {
		for _, v := range values {
			t := row(factor+" "+v, func(s setting) bool { return of(s) == v })
			worst = max(worst, float64(t.missed)/float64(max(t.answered, 1)))
		}
	}
	level("ways:", ways, func(s setting) string { return s.Ways })
	level("clock:", clocks, func(s setting) string { return s.Clock })
	var names []string
	for _, r := range rates {
		names = append(names, experiment.Number(r))
	}
	level("messages a second:", names, func(s setting) string { return experiment.Number(s.Rate) })
	level("path:", paths, func(s setting) string { return s.Path })
	level("fault:", faults, func(s setting) string { return s.Fault })
	level("loss:", losses, func(s setting) string { return s.Loss })
	agree := row("clocks that agree, no fault", func(s setting) bool { return s.Clock == "agree" && s.Fault == "none" })
	run.Note("Each setting is drawn: every factor by itself; where there are 10,000 messages a second it takes half as long. " +
		"Delays are 5 ms and exponential of 5 ms more, each way, or what the path says; " +
		"\"apart\" is by how much the least delays of both ways differ. Clocks are the first point's, as the second one sees it; \"agree\" is " +
		"Config.ClocksAgree. Where they are not said to agree, half of the shortest round trip is the asymmetry that is assumed, but for the " +
		"path that is 20 ms apart, where the Config says so. The truth is the mean delay of the messages received in a report's time.")
	note := "On a busy host every other goroutine waits 50 ms on average between reading the clock and counting, and reports are read late. " +
		"%d s of 2,000 messages a second there, of which %s are lost: %d reports, which say %s in all, %d of them beyond chance " +
		"(4 deviations); %d of %d means outside their interval."
	run.Note(fmt.Sprintf(note, soak.Length, experiment.Percent(float64(soaked.Lost)/float64(soaked.Sent)), soaked.Reports,
		experiment.Percent(float64(soaked.SaidLost)/float64(soaked.SaidSent)), soaked.Unlike, soaked.Missed, soaked.Answered))
	if run.Quick {
		return
	}
	run.Within("reports of a busy host whose loss is beyond chance", "none", float64(soaked.Unlike), 0, 0)
	run.Within("share of reports outside their interval, all", "at most 5 %", float64(whole.missed)/float64(whole.answered), 0.05, 0)
	run.Within("the same, the worst level of any factor", "at most 5 %", worst, 0.05, 0)
	run.Keeps("half width over error or 1 ns, clocks that agree, no fault", "at most 12", experiment.Number(agree.sharp), agree.sharp <= 12)
}

// A total is outcomes added up.
type total struct {
	reports, idle, silent, refused, answered, unbounded, missed, wrong int
	relative, sharp, said, lost                                        float64
}

func sum(all []outcome, of func(setting) bool) (t total) {
	var halves, errors, relative []float64
	var saidLost, saidSent, lost, sent uint64
	for _, o := range all {
		if !of(o.Setting) {
			continue
		}
		t.reports += o.Reports
		t.idle += o.Idle
		t.silent += o.Silent
		t.refused += o.Refused
		t.answered += o.Answered
		t.unbounded += o.Unbounded
		t.missed += o.Missed
		t.wrong += o.Wrong
		saidLost, saidSent, lost, sent = saidLost+o.SaidLost, saidSent+o.SaidSent, lost+o.Lost, sent+o.Sent
		halves, errors, relative = append(halves, o.Half...), append(errors, o.Error...), append(relative, o.Relative...)
	}
	t.said, t.lost = float64(saidLost)/float64(max(saidSent, 1)), float64(lost)/float64(max(sent, 1))
	t.relative, t.sharp = median(relative), median(halves)/max(median(errors), 1)
	return t
}
