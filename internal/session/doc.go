// Package session carries synopses from one point to another, interval after
// interval: markers in the stream of packets that say where an interval begins
// and ends, the parts of an encoded synopsis, and feedback. It knows nothing of
// what it carries; a synopsis rides on it by a [Point].
//
//	sender:    Start · packets · End · Parts, for every interval
//	receiver:  Receive of each of them, which reports on every interval once,
//	           in order: what the comparison gave, or why there is none
//
// A point that has a key tags its control packets and takes only those that
// carry the right tag; a packet recorded and sent again is of an interval that
// has passed. Without a key strangers can make up intervals, but no packet
// silences a receiver for longer than three markers of the true sender take.
// A record of which some parts are lost is compared by the parts that came.
package session

import "errors"

// Why an interval is unusable, and what calls out of turn are.
var (
	// ErrStart says that the Start marker was lost, or came after the End.
	ErrStart = errors.New("start marker missing")
	// ErrEnd says that the End marker was lost, or came after the next Start.
	ErrEnd = errors.New("end marker missing")
	// ErrParts says that nothing of the synopsis had come when the next interval
	// ended.
	ErrParts = errors.New("parts of the synopsis missing")
	// ErrStep says that the clock of one of the points was set in the interval.
	ErrStep = errors.New("clock was set")
	// ErrTurn says that a call, or an interval, is out of turn.
	ErrTurn = errors.New("out of turn")
	// ErrForged says that the tag of a control packet is missing, or not that of
	// the key.
	ErrForged = errors.New("tag missing or wrong")
)
