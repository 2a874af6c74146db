package experiment

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Claim compares what was measured with what was claimed.
type Claim struct {
	What    string  // the quantity and where: "mean error at 20 % loss, Weibull 0.6"
	Paper   string  // "< 4 %"
	Ours    string  // "3.1 %": see [Number] and [Percent]
	Verdict Verdict `json:",omitempty"` // empty in a quick run
}

// A Verdict sums up a comparison in a word.
type Verdict string

// The verdicts.
const (
	Win         Verdict = "win"           // better than another method in the same run
	AsGood      Verdict = "as good"       // the claim holds, or two methods have the same error as printed
	Nearly      Verdict = "nearly"        // it misses by so little that chance explains it
	Loss        Verdict = "loss"          // worse than claimed, or than another method in the same run
	Lower       Verdict = "lower"         // the paper's own method errs less here than the paper says
	DoesNotHold Verdict = "does not hold" // the paper's claim could not be reproduced, although we did as it says
)

// Judge compares two errors as they are printed. Without an error of ours it is a loss.
func Judge(ours, theirs float64, printed func(float64) string) Verdict {
	switch {
	case math.IsNaN(ours):
		return Loss
	case printed(ours) == printed(theirs):
		return AsGood
	case ours < theirs:
		return Win
	}
	return Loss
}

// Claim adds a claim, and returns it.
func (r *Run) Claim(what, paper, ours string, v Verdict) *Claim {
	c := &Claim{What: what, Paper: paper, Ours: ours, Verdict: v}
	r.found.Claims = append(r.found.Claims, c)
	return c
}

// Holds adds a claim of a paper that is true or not: the verdict is as good, or does not hold.
func (r *Run) Holds(what, paper, ours string, is bool) *Claim {
	return r.Claim(what, paper, ours, either(is, AsGood, DoesNotHold))
}

// Meets adds a claim of ours that is true or not: the verdict is as good, or a loss.
func (r *Run) Meets(what, paper, ours string, is bool) *Claim {
	return r.Claim(what, paper, ours, either(is, AsGood, Loss))
}

func either(is bool, yes, no Verdict) Verdict {
	if is {
		return yes
	}
	return no
}

// Beats adds a comparison of two errors in one run, ours and that of another method, as Judge sees it.
func (r *Run) Beats(what string, ours, theirs float64) *Claim {
	return r.Claim(what, Percent(theirs), Percent(ours), Judge(ours, theirs, Percent))
}

// Within adds an error of ours and the limit that is claimed for it, which it nearly meets if it is larger by a
// factor of at most 1 + chance.
func (r *Run) Within(what, paper string, ours, limit, chance float64) *Claim {
	v := Fits(ours, 0, limit, chance)
	if v == DoesNotHold {
		v = Loss
	}
	return r.Claim(what, paper, Percent(ours), v)
}

// Between adds an error of the paper's own method and the range that the paper gives for it, judged by Fits.
func (r *Run) Between(what, paper string, got, low, high, chance float64) *Claim {
	return r.Claim(what, paper, Percent(got), Fits(got, low, high, chance))
}

// Fits compares an error with a claimed range, whose low end is 0 if only a limit is claimed. It is as good
// within the range, nearly so within one wider by a factor of 1 ± chance, and lower below that. Above it, or if
// there is no error, the claim does not hold.
func Fits(x, low, high, chance float64) Verdict {
	switch {
	case x >= low && x <= high:
		return AsGood
	case x >= low*(1-chance) && x <= high*(1+chance):
		return Nearly
	case x < low:
		return Lower
	}
	return DoesNotHold
}

// Covers judges intervals by how many of them held the truth. A coverage below their confidence is nearly
// enough if chance explains it, at the level sure.
func Covers(held, all uint64, confidence, sure float64) Verdict {
	switch {
	case float64(held) >= confidence*float64(all):
		return AsGood
	case estimate.ProportionInterval(held, all, sure).High >= confidence:
		return Nearly
	}
	return Loss
}
