// Package clock measures by how much two points' clocks disagree, from the
// synopses that are compared anyway, and takes that out of the delays.
//
// A [Tracker] is fed, interval by interval, the samples of both directions and
// says what the far point's clock is ahead and how fast it gains:
//
//	tracker, err := clock.New(clock.DefaultConfig)
//	...
//	forth, err = lda.AppendClockSamples(forth[:0], sent, received, clock.There, middle)
//	home, err = lda.AppendClockSamples(home[:0], farSent, nearReceived, clock.Back, middle)
//	_, err = tracker.Add(forth, home)
//	...
//	reading, err = tracker.At(middle)
//	received.Correct(reading) // the far point's synopsis of the direction there
//	farSent.Correct(reading)  // and of the direction back
//
// After that whatever is estimated from the synopses is what points would have
// measured whose clocks agree. Who has only the estimates corrects these, by
// [Reading.Correct]; references of RLI take [Reading.NearTime]; records that are
// compared months later take a [History]; and [SolveNetwork] puts many points
// together. The front door does it all by itself.
//
// # How it works
//
// A cell that holds one packet at both points is that packet's sending time
// and its delay, measured with one clock at either end. If the far clock is
// ahead by θ, the delay there is measured θ too long and the delay back θ too
// short. No delay is less than nothing; so every packet there says that θ is at
// most what was measured, and every packet back that it is at least the
// opposite of that. A drifting clock is a line, θ = offset + drift·t, below all
// bounds of the one kind and above all of the other. The tracker finds the line
// that stays as far from both as can be: two convex hulls and a search.
//
// # The two intervals
//
// [Reading.Certain] is where the line can lie at all. It is as long as the
// shortest round trip, so that on a path of 10 ms it says ±5 ms, and it makes
// no assumption of the path. [Reading.Likely] assumes that the shortest delays
// there and back differ by no more than [Config.Asymmetry], and adds to half of
// that how far the shortest that were seen may be from those that more packets
// would show: a microsecond or less where queues run empty now and then.
//
// # What remains unknowable
//
// If the path there is longer than the path back by 2 ms even with all queues
// empty, then the offset is off by 1 ms, and so is every delay corrected by it,
// in opposite ways. No measurement by the two points can see that: not this
// one, nor NTP, nor PTP without help from every switch on the way. Likely
// knows of asymmetry only what [Config.Asymmetry] says, and Certain holds
// whatever it is. The sum of both delays, the drift, and every change of a
// delay do not depend on it.
//
// # Steps, wander, wrong samples
//
// A clock that is set at once, or begins to run at another rate, as NTP does to
// clocks, lowers the bounds of one direction and raises those of the other; the
// tracker notices and starts again from there ([Reading.Stepped]). What
// changes in one direction only is a path, not a clock. A rate that wanders by
// more than [Config.Wander] is followed in the same way. Between two noticed
// changes the certain interval is longer than the samples need, by twice what
// the margin has lost since it was widest, so that a step too small to notice
// does not make it false. A few samples may be wrong: see [Config.Outliers].
//
// A path and a clock that change in one interval are not told apart.
//
// # Together with NTP and PTP
//
// Let NTP or PTP keep the clocks within reach: of the same second, running at
// the same rate to within 0.1 %. Whatever is left of milliseconds is measured
// here, from traffic that is there anyway, in the same intervals as the delays.
// PTP with hardware stamps and aware switches is better than this; where it
// runs, the reading checks it.
//
// # Figures
//
// Two network namespaces, shaped queues, and a far clock that is 80 ms behind,
// drifts by 50 millionths one way and the other, wanders and is set twice: in
// 2,398 intervals of ten minutes the means of corrected cells were off by 0.01 µs
// (median), 0.03 µs (95 %), 0.23 µs at most, never by more than was likely; and
// of 46,945 certain intervals none excluded the truth. Where the means alone
// were corrected, by the readings of the intervals' middles, they were off by
// 0.4 µs (median) and up to 3 µs: packets in bursts are not from the middle.
//
//	go test -run TestLive -live 10m -timeout 20m -v ./bench/figclock
//
// Beside means, NTP's filter and probes, at loads from 10 to 95 %:
//
//	go run ./bench ours-clock
//
// With one direction alone the offset is unknowable, and [Tracker.Add] says
// [estimate.ErrNoSamples]; the Reading still has the drift, by the line below
// all delays that is closest to them.
package clock
