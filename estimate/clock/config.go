package clock

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Limits of a Config, and of samples.
const (
	MaxWindow   = 4096
	MaxOutliers = 8
	MaxPackets  = 64 // of a sample that counts
)

// A Config says what is known of the clocks in advance. The certain intervals
// hold as long as it is true.
type Config struct {
	// Window is the number of latest intervals to keep, 1 to MaxWindow. A longer
	// window gives a better drift and follows its changes more slowly.
	Window int

	// MaxDrift is the greatest difference between the clocks' rates, as a
	// fraction: 1e-3 is a millisecond a second. More than 0, at most 0.01.
	MaxDrift float64

	// Wander is how far the rate may stray from its mean in the window, as a
	// fraction: 1e-7 is 0.1 ppm. Bounds loosen at that rate as they age. 0 to
	// MaxDrift.
	Wander float64

	// Outliers is the number of samples in a window, each way, that may be wrong
	// without contradicting the others, such as two different packets that a cell
	// without a digest takes for one. 0 to MaxOutliers.
	Outliers int

	// MinStep is the smallest step, in nanoseconds, to tell from noise.
	MinStep float64

	// Resolution is the time between two ticks of the clocks, in nanoseconds: a
	// stamp may be that much too early.
	Resolution float64

	// Asymmetry is how much the least delays of the two directions may differ, in
	// nanoseconds: a few microseconds between similar machines in one building,
	// milliseconds across a continent where routes differ. Only the likely
	// interval depends on it, and is longer by as much.
	Asymmetry float64

	// SumBits is the width of the sums that the samples come from, 1 to 64:
	// delays are known modulo 2^SumBits.
	SumBits int
}

// DefaultConfig suits quartz clocks that NTP or nothing disciplines, a path
// within a building, and samples of one-second intervals from 40-bit sums.
var DefaultConfig = Config{
	Window:   16,
	MaxDrift: 1e-3,
	Wander:   1e-7,
	Outliers: 1,
	MinStep:  1000,

	Resolution: 1,
	Asymmetry:  10_000,
	SumBits:    40,
}

// Validate reports what is out of range. The error wraps
// [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("clock", field, got, want) }
	// 1e15 ns are eleven days: float64 holds them to a fraction of a
	// nanosecond.
	const most = 1e15
	switch {
	case c.Window < 1 || c.Window > MaxWindow:
		return bad("Window", c.Window, fmt.Sprintf("1 to %d", MaxWindow))
	case !(c.MaxDrift > 0 && c.MaxDrift <= 0.01):
		return bad("MaxDrift", c.MaxDrift, "more than 0, at most 0.01")
	case !(c.Wander >= 0 && c.Wander <= c.MaxDrift):
		return bad("Wander", c.Wander, "0 to MaxDrift")
	case c.Outliers < 0 || c.Outliers > MaxOutliers:
		return bad("Outliers", c.Outliers, fmt.Sprintf("0 to %d", MaxOutliers))
	case !(c.MinStep >= 0 && c.MinStep <= most):
		return bad("MinStep", c.MinStep, "0 to 1e15 ns")
	case !(c.Resolution >= 0 && c.Resolution <= most):
		return bad("Resolution", c.Resolution, "0 to 1e15 ns")
	case !(c.Asymmetry >= 0 && c.Asymmetry <= most):
		return bad("Asymmetry", c.Asymmetry, "0 to 1e15 ns")
	case c.SumBits < 1 || c.SumBits > 64:
		return bad("SumBits", c.SumBits, "1 to 64")
	}
	return nil
}

// layers returns the number of layers of hulls that contain every mark that is
// among the lowest along some line, counting all that are dropped or ranked.
func (c *Config) layers() int { return c.Outliers + 1 + spacings }
