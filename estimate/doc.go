// Package estimate has the statistics that the synopses of hoplag share: what a
// result is, how sure you can be of it, and the mathematics of both.
//
//   - [Delay], [Interval] and the errors are what Estimate returns, everywhere.
//   - [Rotation] lets one writer continue while readers have the interval before.
//   - [Moments] accumulates the mean and variance of samples; [Cells] does so where only sums over groups of
//     packets are known, which is all that LDA, LDS and COLATE keep; [SignExtend] reads narrow registers.
//   - [HoeffdingInterval] (LDA's eq. (1)) and [StudentInterval] (tighter, and also right for few cells) are for
//     a mean, [DeviationInterval] and [ProportionInterval] for a deviation and for loss.
//   - [Empirical] gives quantiles of samples, with intervals that hold for every distribution, and their CDF;
//     [RelativeError] turns estimates into samples of errors.
//   - [NormalQuantile] and [StudentQuantile] are what package math lacks.
//
// Each interval states its assumptions. None allows for losses that depend on delay, or for clocks that
// disagree, which shift a mean and its interval alike. Nothing here reads a clock or is random: the same input
// gives the same result. Package areas measures how long packets are on their way across the cuts of a clock,
// and how many are lost; package joint finds the mean delays of all flows that share cells; package clock finds
// how far two points' clocks differ.
package estimate
