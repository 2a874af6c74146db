// Package clock measures how far two points' clocks disagree, from the synopses
// that are compared anyway, and corrects the delays.
//
// Give a [Tracker] the samples of both directions, interval by interval. It
// says how far the far point's clock is ahead, and how fast it gains:
//
//	tracker, err := clock.New(clock.DefaultConfig)
//	...
//	forth, err = lda.AppendClockSamples(forth[:0], sent, received, middle, false)
//	home, err = lda.AppendClockSamples(home[:0], farSent, nearReceived, middle, true)
//	_, err = tracker.Add(forth, home)
//	...
//	reading, err = tracker.At(middle)
//	received.Correct(reading) // the far point's synopsis of the direction there
//	farSent.Correct(reading)  // and of the direction back
//
// After that, the synopses give what points with equal clocks would have
// measured. If you only have the estimates, correct those with
// [Reading.Correct]. [Reading.NearTime] is for RLI's references, and [History] for records
// that are compared months later. Package hoplag does all of this by itself.
//
// # How it works
//
// A cell that holds one packet at both points gives that packet's sending time
// and its delay, measured with a different clock at each end. If the far clock
// is ahead by θ, a delay there is measured θ too long and a delay back θ too
// short. No delay is negative, so every packet there gives an upper bound on θ,
// and every packet back a lower bound. A drifting clock is a line, θ = offset +
// drift·t, below all bounds of one kind and above all of the other. The tracker
// finds the line that stays farthest from both, with two convex hulls and a
// search.
//
// # The two intervals
//
// [Reading.Certain] is where the line can be at all. It assumes nothing about
// the path, and is as long as the shortest round trip: ±5 ms on a path of 10
// ms. [Reading.Likely] assumes that the shortest delays there and back differ
// by no more than [Config.Asymmetry]. To half of that it adds how much shorter
// delays more packets might show: a microsecond or less if queues are empty now
// and then.
//
// # What remains unknowable
//
// If the path there is longer than the path back by 2 ms even with all queues
// empty, then the offset is off by 1 ms, and so is every delay corrected by it,
// in opposite ways. No measurement by the two points can see that: not this
// one, nor NTP, nor PTP without help from every switch on the way. Likely knows
// of asymmetry only what [Config.Asymmetry] says, and Certain holds whatever it
// is. The sum of both delays, the drift, and every change of a delay do not
// depend on it.
//
// # Steps, wander, wrong samples
//
// If a clock is set, or begins to run at another rate, as under NTP, the bounds
// of one direction fall and those of the other rise. The tracker notices and
// starts again from there ([Reading.Stepped]). It treats a rate that wanders by
// more than [Config.Wander] in the same way. A change in one direction only is
// a path, not a clock. Between two noticed changes the certain interval is
// longer than the samples need, by twice what the margin has lost since it was
// widest, so that a step too small to notice does not make it false. A few
// samples may be wrong: see [Config.Outliers].
//
// The tracker cannot tell a path and a clock apart that change in the same
// interval.
//
// # Figures
//
// Beside means, NTP's filter and probes, at loads from 10 to 95 %:
//
//	go run ./bench ours-clock
//
// With one direction alone the offset cannot be known, and [Tracker.Add]
// returns [estimate.ErrNoSamples].
package clock
