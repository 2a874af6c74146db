package experiment

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/hoplag/hoplag/bench/plot"
)

// An Experiment reproduces one figure of a paper, or a few that show the same
// runs.
type Experiment struct {
	Name  string // on the command line: lower case, "lda-4"; unique
	Group string // heading in the list and in the report: the paper
	Title string
	Claim string // what the paper claims, with section and figure, in our words

	// Weight is roughly how many seconds the full run takes on one core, by
	// which time left is told; Quick the same for the quick run. Quick 0 means
	// a thirtieth of Weight.
	Weight, Quick float64

	// Run does it. It returns early, with ctx's error, once ctx is done.
	Run func(ctx context.Context, run *Run) (Result, error)
}

// Seconds is how long the experiment takes, roughly, on one core.
func (e *Experiment) Seconds(quick bool) float64 {
	switch {
	case !quick:
		return e.Weight
	case e.Quick == 0:
		return e.Weight / 30
	}
	return e.Quick
}

// A Run is what an experiment is given.
type Run struct {
	Seed  uint64
	Quick bool // a smaller run that shows the same, all experiments in 2 minutes together

	// Report, if not nil, is told by Progress how far the run has come, from 0
	// to 1.
	Report func(done float64)
}

// Rand returns a generator for one purpose of the run: the same for the same
// seed and purpose, and independent of those for others.
func (r *Run) Rand(purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, r.SeedOf(purpose)))
}

// SeedOf returns a seed for one purpose of the run, for what takes a seed
// rather than a generator.
func (r *Run) SeedOf(purpose string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", r.Seed, purpose)
	return rand.NewPCG(r.Seed, h.Sum64()).Uint64()
}

// Pick returns the size for the kind of run.
func (r *Run) Pick(quick, full int) int {
	if r.Quick {
		return quick
	}
	return full
}

// Progress tells that done of total equal parts are done, and returns the
// context's error once it is over. Call it many times a second if possible.
func (r *Run) Progress(ctx context.Context, done, total int) error {
	if r.Report != nil && total > 0 {
		r.Report(float64(done) / float64(total))
	}
	return ctx.Err()
}

// Steps returns a function that is Progress by one of total steps at each call.
func (r *Run) Steps(ctx context.Context, total int) func() error {
	done := 0
	return func() error {
		done++
		return r.Progress(ctx, done, total)
	}
}

// A Result is what an experiment found.
type Result struct {
	Claims  []Claim
	Figures []plot.Figure
	Tables  []Table
	Notes   []string // paragraphs of plain text: how it was run, where it differs from the paper, what to make of it
	Config  any      // everything that was chosen, to JSON
}

// A Claim sets what was measured beside what was claimed.
type Claim struct {
	What    string // the quantity and where: "mean error at 20 % loss, Weibull 0.6"
	Paper   string // "< 4 %"
	Ours    string // "3.1 %": see [Number] and [Percent]
	Verdict Verdict

	// Headline tells that the claim is what the experiment comes down to: it
	// is shown where there is one line for each.
	Headline bool
}

// A Verdict says in a word what came of a claim.
type Verdict string

// The verdicts.
const (
	Win         Verdict = "win"           // better than claimed, or than the paper's method in the same run
	AsGood      Verdict = "as good"       // the claim holds; no difference that matters
	Loss        Verdict = "loss"          // worse than claimed, or than the paper's method in the same run
	DoesNotHold Verdict = "does not hold" // the paper's claim could not be reproduced, and not for want of our doing as it does
)

// Judge compares what was measured with what was claimed, both of a quantity
// that is better the smaller it is: within a factor of 1 ± slack it is as good.
func Judge(ours, claimed, slack float64) Verdict {
	switch {
	case ours < claimed*(1-slack):
		return Win
	case ours <= claimed*(1+slack):
		return AsGood
	}
	return Loss
}

// Holds judges a claim that is true or not.
func Holds(is bool) Verdict {
	if is {
		return AsGood
	}
	return DoesNotHold
}

// A Table is shown in the report and can be copied into README.md. Cells are
// text; numbers in them come from Number and Percent.
type Table struct {
	Name    string // within the experiment, lower case; "" for its only table
	Title   string
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Number formats x for people, to three significant digits.
func Number(x float64) string {
	if x >= 1000 || x <= -1000 {
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Percent formats a fraction as a percentage, to two significant digits.
func Percent(x float64) string {
	if x >= 0.1 || x <= -0.1 {
		return grouped(strconv.FormatFloat(100*x, 'f', 0, 64)) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 2, 64) + " %"
}

// grouped puts commas between the thousands of a whole number.
func grouped(digits string) string {
	sign := ""
	if digits != "" && digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if digits == "" || digits[0] < '0' || digits[0] > '9' { // Inf, NaN
		return sign + digits
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// RelativeError is how far an estimate is from the truth, as a fraction of the
// truth.
func RelativeError(estimate, truth float64) float64 {
	return math.Abs(estimate-truth) / math.Abs(truth)
}
