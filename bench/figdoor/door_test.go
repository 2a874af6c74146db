package figdoor

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
)

var (
	settingsFile = flag.String("settings", "", "a file of settings to run, as JSON, in place of a few")
	verbose      = flag.Bool("outcomes", false, "print the outcomes as JSON")
)

// TestDoor runs settings in virtual time and compares the reports with the truth. None may be outside Traffic.Certain, and none longer
// than the whole run. Among them are clocks whose cuts end at other times, directions that were idle until a report had ended, restarts,
// drifts by more than messages take, and packets that a host holds for seconds.
func TestDoor(t *testing.T) {
	settings := []setting{
		{Ways: "one", Clock: "agree", Rate: 1000, Path: "even", Fault: "none", Loss: "0", Seed: 1, Length: 20},
		{Ways: "two", Clock: "1 day", Rate: 30, Path: "2 ms", Fault: "slow body", Loss: "1 %", Seed: 2, Length: 20},
		{Ways: "two", Clock: "50 ppm", Rate: 1000, Path: "even", Fault: "failing", Loss: "0", Seed: 3, Length: 30},
		{Ways: "one", Clock: "agree", Rate: 1000, Path: "even", Fault: "pause", Loss: "0", Seed: 11, Length: 20},
		{Ways: "one", Clock: "agree", Rate: 1000, Path: "even", Fault: "busy", Loss: "1 %", Seed: 31, Length: 60},
		{Ways: "one", Clock: "1 s", Rate: 1000, Path: "even", Fault: "slow exchanges", Loss: "0", Seed: 4, Length: 30},
		{Ways: "one", Clock: "2000 ppm", Rate: 3, Path: "80 ms", Fault: "truncated", Loss: "0", Seed: 3326336882692920744, Length: 20},
		{Ways: "two", Clock: "1 s", Rate: 0.5, Path: "20 ms", Fault: "none", Loss: "10 %", Seed: 2801313311672095366, Length: 20},
		{Ways: "two", Clock: "agree", Rate: 30, Path: "0.1 ms", Fault: "restart there", Loss: "bursts", Seed: 4248983687749463682, Length: 20},
		{Ways: "two", Clock: "agree", Rate: 3, Path: "even", Fault: "busy", Loss: "0.1 %", Seed: 665259138523902530, Length: 20},
		{Ways: "two", Clock: "500 ppm", Rate: 30, Path: "even", Fault: "truncated", Loss: "0", Seed: 237742464042675128, Length: 40},
		{Ways: "one", Clock: "500 ppm", Rate: 3, Path: "300 ms", Fault: "none", Loss: "bursts", Seed: 4916875709140104686, Length: 40},
		{Ways: "two", Clock: "2000 ppm", Rate: 30, Path: "300 ms", Fault: "restart here", Loss: "0.1 %", Seed: 7140038760953113379, Length: 40},
		{Ways: "one", Clock: "agree", Rate: 3, Path: "standing queue", Fault: "pause", Loss: "10 %", Seed: 3676764625586143833, Length: 40},
		{Ways: "one", Clock: "agree", Rate: 3000, Path: "even", Fault: "pause", Loss: "0", Seed: 2, Length: 9},
		{Ways: "one", Clock: "500 ppm", Rate: 1000, Path: "300 ms", Fault: "restart there", Loss: "0", Seed: 468124366894275197, Length: 40},
	}
	if *settingsFile != "" {
		settings = nil
		data, err := os.ReadFile(*settingsFile)
		if err == nil {
			err = json.Unmarshal(data, &settings)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	answered, missed := 0, 0
	for _, s := range settings {
		synctest.Test(t, func(t *testing.T) {
			o := run(s)
			answered, missed = answered+o.Answered, missed+o.Missed
			if *verbose {
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("outcome %s\n", data)
				return
			}
			t.Logf("%+v: %d reports, %d refused, %d silent, %d answered, %d missed, half width over error %.3g",
				s, o.Reports, o.Refused, o.Silent, o.Answered, o.Missed, o.Whole.sharp())
			if o.Answered == 0 || o.Wrong > 0 || o.Unlike > 0 {
				t.Errorf("%+v: %d answers, %d of them certainly wrong, %d losses beyond chance", s, o.Answered, o.Wrong, o.Unlike)
			}
			if slices.ContainsFunc(o.Whole, func(x [2]float64) bool { return !(2*x[0] <= float64(s.Length)*1e9) }) {
				t.Errorf("%+v: an interval is wider than all the time, or no number", s)
			}
		})
	}
	if *settingsFile == "" && missed*20 > answered {
		t.Errorf("%d of %d missed", missed, answered)
	}
}

// TestLossOfBusyCells sends traffic that keeps packets on their way in nearly all cells, so that hardly any cell shows what it lost.
func TestLossOfBusyCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := run(setting{Ways: "one", Clock: "agree", Rate: 10_000, Path: "300 ms", Fault: "none", Loss: "10 %", Seed: 5, Length: 16})
		if said := float64(o.SaidLost) / float64(o.SaidSent); said < 0.09 || said > 0.11 {
			t.Errorf("of 10 %% lost reports say %.1f %%", 100*said)
		}
	})
}
