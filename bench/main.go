// Bench measures what the papers measured and compares the results with what they reported. It runs the named
// experiments, and writes what each found, with tables and notes, to NAME.md in the directory -out, by default
// out/.
//
//	go run ./bench                      # list the experiments
//	go run ./bench lda-4 'lds-*'        # some: names, or patterns
//	go run ./bench -quick -all          # all, small: a minute on two cores
//	go run ./bench -all                 # all: half an hour
//	go run ./bench -soak 10m            # the front door under hostile load
//	go run ./bench -results bench/RESULTS.md  # put what full runs found into the page
//
// The same -seed gives the same bytes.
//
// To measure the speed of the library, use go test:
//
//	go test -run '^$' -bench . -benchtime 0.5s ./bench
package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figclock"
	"github.com/hoplag/hoplag/bench/figcolate"
	"github.com/hoplag/hoplag/bench/figdoor"
	"github.com/hoplag/hoplag/bench/figlda"
	"github.com/hoplag/hoplag/bench/figlds"
	"github.com/hoplag/hoplag/bench/figmplane"
	"github.com/hoplag/hoplag/bench/figreal"
	"github.com/hoplag/hoplag/bench/figrli"
	"github.com/hoplag/hoplag/bench/soak"
	"github.com/hoplag/hoplag/internal/programs"
)

// experiments returns all experiments by group, in the order of the list and the report.
func experiments() []experiment.Experiment {
	return slices.Concat(
		experiment.In("LDA (aggregate delay)", figlda.KnownLoss),
		experiment.In("Ours: LDA", figlda.Areas, figlda.Lost),
		experiment.In("RLI (delay per flow from reference packets)", figrli.Accuracy),
		experiment.In("Ours: RLI", figrli.Robust, figrli.Bias),
		experiment.In("LDS (delay per flow)", figlds.Comparison),
		experiment.In("Ours: LDS", figlds.Joint, figlds.Tables),
		experiment.In("COLATE (per-flow delay)", figcolate.Promise),
		experiment.In("Ours", figcolate.Intervals, figcolate.Rival),
		experiment.In("Clocks that disagree", figclock.Clocks),
		experiment.In("The front door", figdoor.Door),
		experiment.In("Real packets", figreal.LDA),
		experiment.In("MPLANE", figmplane.Made, figmplane.Faults),
	)
}

func main() {
	programs.Main("bench", func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return command(ctx, experiments(), args, stdout, stderr)
	})
}

// settings are the options of the command line.
type settings struct {
	names []string
	all   bool
	quick bool
	seed  uint64
	out   string
	jobs  int
	page  string
	soak  time.Duration
}

func command(ctx context.Context, all []experiment.Experiment, args []string, stdout, stderr io.Writer) error {
	set, err := parseSettings(args, stderr)
	switch {
	case err != nil:
		return err
	case set.soak > 0:
		return soak.Run(ctx, set.soak, set.seed, stdout, stderr)
	case set.page != "":
		return writeResults(all, set.page, set.out)
	case !set.all && len(set.names) == 0:
		return list(all, set.quick, stdout)
	}
	if !set.all {
		if all, err = choose(all, set.names); err != nil {
			return programs.Usage("%w", err)
		}
	}
	if err := os.MkdirAll(set.out, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	defer context.AfterFunc(ctx, func() { // experiments do not look up
		os.RemoveAll(temp)
		os.Exit(1)
	})()
	defer os.Setenv("TMPDIR", os.Getenv("TMPDIR"))
	os.Setenv("TMPDIR", temp)
	return runAll(all, set, stderr)
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var set settings
	f := programs.NewFlags("bench", "usage: bench [flags] [NAME...]\n\nWithout arguments it lists the experiments. "+
		"A NAME is an experiment, or a pattern such as 'lda-*'.", stderr)
	f.Arguments = true
	f.BoolVar(&set.all, "all", false, "run every experiment")
	f.BoolVar(&set.quick, "quick", false, "smaller runs without verdicts: a minute instead of half an hour")
	f.Uint64Var(&set.seed, "seed", 1, "`number` from which everything random follows")
	f.StringVar(&set.out, "out", "out", "`directory` for the results")
	programs.Range(f, &set.jobs, "j", min(4, runtime.GOMAXPROCS(0)), 1, 1000, "`number` of experiments to run side by side")
	f.StringVar(&set.page, "results", "", "put what full runs found into this `file`, and run nothing")
	f.DurationVar(&set.soak, "soak", 0, "run the front door under hostile load for this `time`, and no experiments")
	if err := f.Parse(args); err != nil {
		return set, err
	}
	set.names = f.Args()
	running := set.all || len(set.names) > 0
	switch {
	case set.all && len(set.names) > 0:
		return set, programs.Usage("-all and %q: want one or the other", set.names[0])
	case set.page != "" && running:
		return set, programs.Usage("-results runs nothing: run the experiments first, then -results alone")
	case set.soak < 0 || set.soak > 0 && (running || set.page != ""):
		return set, programs.Usage("-soak %v: want a length of time, and nothing else to run", set.soak)
	}
	return set, nil
}
