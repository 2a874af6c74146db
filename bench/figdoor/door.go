// Package figdoor runs the front door in virtual time, in combinations of clocks,
// paths, rates, losses and faults, and compares each report with the truth.
//
// Virtual time is that of testing/synctest, so the experiment runs the package's own
// test, with settings that it draws, and reads the outcomes:
//
//	go test -v -run TestDoor ./bench/figdoor -args -outcomes -settings FILE
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

// Door compares the points' reports with the truth, whatever goes wrong.
var Door = experiment.Experiment{
	Name: "ours-door", Title: "Reports of the front door, whatever goes wrong",
	Claim: "The interval of a report's mean holds the mean in 95 of 100 reports, or there is no mean: with any clocks, rates, paths, " +
		"losses, slow readers, bad transports, restarts and pauses. Where the clocks are not said to agree, the interval is as wide as they " +
		"leave it.",
	Weight: 150, Quick: 8, Measure: measureDoor,
}

// draw returns settings in which each factor is drawn independently.
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
		"outside the interval", "certainly wrong", "half width over mean", "half width over error", "of sampling",
		"of the clock", "the clock's over what is assumed", "lost: said, true")
	row := func(name string, of func(s setting) bool) outcome {
		t := sum(all, of)
		table.Row(name, t.Reports, t.Idle, t.Silent, t.Refused, t.Answered, t.Unbounded,
			fmt.Sprintf("%d (%s)", t.Missed, percent(uint64(t.Missed), uint64(t.Answered))), t.Wrong, experiment.Percent(median(t.Relative)),
			experiment.Number(t.Whole.sharp()), experiment.Number(t.Sampled.sharp()), experiment.Number(t.Clock.sharp()),
			experiment.Number(median(t.Assumed)), percent(t.SaidLost, t.SaidSent)+", "+percent(t.Lost, t.Sent))
		return t
	}
	whole := row("all", func(setting) bool { return true })
	worst := 0.0
	level := func(factor string, values []string, of func(s setting) string) {
		for _, v := range values {
			t := row(factor+" "+v, func(s setting) bool { return of(s) == v })
			worst = max(worst, float64(t.Missed)/float64(max(t.Answered, 1)))
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
		"path that is 20 ms apart, where the Config says so; one way only, all of the shortest exchange. What sampling adds to a half " +
		"width, and the clock, are beside the errors of a mean by the true clock, and of the clock. The truth is the mean delay of the " +
		"messages received in a report's time.")
	note := "On a busy host every other goroutine waits 50 ms on average between reading the clock and counting, and reports are read late. " +
		"%d s of 2,000 messages a second there, of which %s are lost: %d reports, which say %s in all, %d of them beyond chance " +
		"(4 deviations); %d of %d means outside their interval."
	run.Note(fmt.Sprintf(note, soak.Length, percent(soaked.Lost, soaked.Sent), soaked.Reports,
		percent(soaked.SaidLost, soaked.SaidSent), soaked.Unlike, soaked.Missed, soaked.Answered))
	if run.Quick {
		return
	}
	run.Within("reports of a busy host whose loss is beyond chance", "none", float64(soaked.Unlike), 0, 0)
	run.Within("share of reports outside their interval, all", "at most 5 %", float64(whole.Missed)/float64(whole.Answered), 0.05, 0)
	run.Within("the same, the worst level of any factor", "at most 5 %", worst, 0.05, 0)
	agreed, sampled, assumed := agree.Whole.sharp(), whole.Sampled.sharp(), median(whole.Assumed)
	run.Meets("half width over error or 1 ns, clocks that agree, no fault", "at most 12", experiment.Number(agreed), agreed <= 12)
	run.Meets("the same of what sampling adds, all", "at most 12", experiment.Number(sampled), sampled <= 12)
	run.Meets("half width of the clock over what the assumed asymmetry leaves", "at most 1.1", experiment.Number(assumed), assumed <= 1.1)
}

// sum adds up outcomes.
func sum(all []outcome, of func(setting) bool) (t outcome) {
	for _, o := range all {
		if !of(o.Setting) {
			continue
		}
		t.Reports += o.Reports
		t.Idle += o.Idle
		t.Silent += o.Silent
		t.Refused += o.Refused
		t.Answered += o.Answered
		t.Unbounded += o.Unbounded
		t.Missed += o.Missed
		t.Wrong += o.Wrong
		t.SaidLost, t.SaidSent, t.Lost, t.Sent = t.SaidLost+o.SaidLost, t.SaidSent+o.SaidSent, t.Lost+o.Lost, t.Sent+o.Sent
		t.Whole, t.Sampled, t.Clock = append(t.Whole, o.Whole...), append(t.Sampled, o.Sampled...), append(t.Clock, o.Clock...)
		t.Relative, t.Assumed = append(t.Relative, o.Relative...), append(t.Assumed, o.Assumed...)
	}
	return t
}

// percent formats a share of a number, which may be 0.
func percent(n, of uint64) string { return experiment.Percent(float64(n) / float64(max(of, 1))) }
