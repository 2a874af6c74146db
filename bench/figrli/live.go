package figrli

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// measureLive sends real packets over the wires of examples/rli, where this machine can make them.
func measureLive(run *experiment.Run) {
	table := run.Table("Real packets: means of five flows in each of 20 seconds", "wire", "confidence", "refused", "in intervals",
		"median error")
	for _, wire := range []string{"veth", "tbf"} {
		for _, confidence := range []string{"95", "99.9"} {
			var out []byte
			if run.Pick(0, 1) == 1 {
				line := "-C examples/rli run . -json -traffic poisson -rate 10 -load 60 -flows 5 -every 10 -seconds 20 -live " + wire
				out, _ = exec.Command("go", append(strings.Fields(line), "-confidence", confidence)...).Output()
			}
			total := struct{ Intervals, MeansHeld, MedianError float64 }{0, math.NaN(), math.NaN()}
			lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			if json.Unmarshal(lines[len(lines)-1], &total) != nil {
				table.Row(wire, confidence+" %", "skipped: needs root, and a full run", "", "")
				continue
			}
			refused := 1 - total.Intervals/100
			table.Row(wire, confidence+" %", percent(refused), held(total.MeansHeld), percent(total.MedianError))
			least := map[string]float64{"95": 0.94, "99.9": 0.997}[confidence]
			run.Keeps("Real packets over "+wire+": means in their intervals at "+confidence+" %", "at least "+held(least)+", or refused",
				held(total.MeansHeld)+", "+percent(refused)+" refused", refused > 0.99 || total.MeansHeld >= least)
		}
	}
}
