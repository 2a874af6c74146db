// Package clock measures how far two points' clocks disagree, from the synopses that are compared anyway, and
// corrects the delays.
//
// Give a [Tracker] the samples of both directions, interval by interval. It says how far the far point's clock
// is ahead, and how fast it gains:
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
// After that, the synopses give what points with equal clocks would have measured. If you only have the
// estimates, use [Reading.Subtract]. [Reading.NearTime] is for RLI's references, and a [History]
// is for records that are compared months later. Package hoplag does all of this by itself.
//
// # How it works
//
// A cell that holds one packet at both points gives that packet's sending time and its delay, measured with a
// different clock at each end. If the far clock is ahead by θ, delays on the way there are measured θ too long,
// and delays on the way back θ too short. No delay is negative, so every packet there gives an upper bound on
// θ, and every packet back a lower bound. A drifting clock is a line, θ = offset + drift·t, below all upper
// bounds and above all lower ones. The tracker finds the line that stays farthest from both, with two convex
// hulls and a search.
//
// # The two intervals
//
// [Reading.Certain] covers every place where the line can be. It assumes nothing about the path, and is as wide
// as the shortest round trip: ±5 ms for 10 ms. [Reading.Likely] assumes that the shortest delays there and back
// differ by no more than [Config.Asymmetry]. To half of that it adds by how much more packets might lower the
// shortest delays: a microsecond or less if queues are empty now and then.
//
// # What remains unknowable
//
// If the path there is longer than the path back by 2 ms even with all queues empty, the offset is off by 1 ms,
// and so is every delay that it corrects, with opposite signs there and back. No measurement by the two points
// can see that: not this one, nor NTP, nor PTP without help from every switch on the way. Likely relies on
// [Config.Asymmetry]; Certain holds whatever the asymmetry is. The sum of both delays, the drift, and every
// change of a delay do not depend on it.
//
// # Steps, wander, wrong samples
//
// If a clock is set, or begins to run at another rate, as under NTP, upper and lower bounds move together, and
// one line no longer fits before and after. The tracker notices and starts again from there
// ([Reading.Stepped]). It treats a rate that wanders by more than [Config.Wander] in the same way. A change in
// one direction only is a change of the path, not of a clock. Between two noticed changes the certain interval
// is wider than the samples require, by twice what the margin has lost since it was widest, so that a step too
// small to notice does not make it false. A few samples may be wrong: see [Config.Outliers].
//
// If a path and a clock change in the same interval, the tracker cannot tell which did what.
//
// # Figures
//
// A comparison with means, NTP's filter and probes, at loads from 10 to 95 %:
//
//	go run ./bench ours-clock
//
// With one direction alone the offset cannot be known, and [Tracker.Add] returns [estimate.ErrNoSamples].
package clock
