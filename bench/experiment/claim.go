package experiment

import "github.com/hoplag/hoplag/estimate"

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
	Win         Verdict = "win"           // better than claimed, or than the paper's method in the same run
	AsGood      Verdict = "as good"       // the claim holds
	Nearly      Verdict = "nearly"        // it misses by so little that chance explains it, or nobody minds
	Loss        Verdict = "loss"          // worse than claimed, or than the paper's method in the same run
	DoesNotHold Verdict = "does not hold" // the paper's claim could not be reproduced, although we did as it says
)

// Judge compares a measured quantity with a claimed one. Both are better the
// smaller they are. Smaller by a factor of 1 - slack is a win, and larger by a
// factor of up to 1 + slack nearly as good.
func Judge(ours, claimed, slack float64) Verdict {
	switch {
	case ours < claimed*(1-slack):
		return Win
	case ours <= claimed:
		return AsGood
	case ours <= claimed*(1+slack):
		return Nearly
	}
	return Loss
}

// Claim adds a claim, and returns it.
func (r *Run) Claim(what, paper, ours string, v Verdict) *Claim {
	c := &Claim{What: what, Paper: paper, Ours: ours, Verdict: v}
	r.found.Claims = append(r.found.Claims, c)
	return c
}

// Holds adds a claim of a paper that is true or not: as good, or does not
// hold.
func (r *Run) Holds(what, paper, ours string, is bool) *Claim {
	return r.Claim(what, paper, ours, either(is, AsGood, DoesNotHold))
}

// Meets adds a claim of ours that is true or not: as good, or a loss.
func (r *Run) Meets(what, paper, ours string, is bool) *Claim {
	return r.Claim(what, paper, ours, either(is, AsGood, Loss))
}

// Keeps adds a claim of ours that is true or not: a win or a loss.
func (r *Run) Keeps(what, paper, ours string, is bool) *Claim {
	return r.Claim(what, paper, ours, either(is, Win, Loss))
}

func either(is bool, yes, no Verdict) Verdict {
	if is {
		return yes
	}
	return no
}

// Beats adds a comparison of two errors in one run, ours and that of the
// paper's method, as Judge sees it.
func (r *Run) Beats(what string, ours, theirs, slack float64) *Claim {
	return r.Claim(what, Percent(theirs), Percent(ours), Judge(ours, theirs, slack))
}

// Within adds an error of ours and the limit that the paper claims for it, as
// Judge sees it.
func (r *Run) Within(what, paper string, ours, limit, slack float64) *Claim {
	return r.Claim(what, paper, Percent(ours), Judge(ours, limit, slack))
}

// Between adds an error of the paper's own method and the range that the paper
// gives for it, as Fits sees it.
func (r *Run) Between(what, paper string, got, low, high, slack float64) *Claim {
	return r.Claim(what, paper, Percent(got), Fits(got, low, high, slack))
}

// Fits compares a number with a claimed range: as good within it, nearly so
// within the range widened by a factor of 1 ± slack; otherwise the claim does
// not hold. Low is 0 if only an upper limit is claimed. If low and high are the
// same, the claim says "about", and slack is how much that allows.
func Fits(x, low, high, slack float64) Verdict {
	switch {
	case !IsBetween(x, low, high, slack):
		return DoesNotHold
	case low == high, IsBetween(x, low, high, 0):
		return AsGood
	}
	return Nearly
}

// Covers judges intervals by how many of them held the truth. A coverage below
// their confidence is nearly enough if chance explains it, at the level sure.
func Covers(held, all uint64, confidence, sure float64) Verdict {
	switch {
	case float64(held) >= confidence*float64(all):
		return AsGood
	case estimate.ProportionInterval(held, all, sure).High >= confidence:
		return Nearly
	}
	return Loss
}

// IsBetween reports whether a number is in a range widened by a factor of 1 ±
// slack.
func IsBetween(x, low, high, slack float64) bool { return x >= low*(1-slack) && x <= high*(1+slack) }
