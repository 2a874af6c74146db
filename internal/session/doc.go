// Package session carries synopses from one point to another, interval after
// interval. It adds markers to the stream of packets that say where an
// interval begins and ends, sends the parts of an encoded synopsis, and
// returns feedback. It knows nothing about what it carries: a [Point] connects
// it to a synopsis.
//
//	sender:    Start · packets · End · Parts, for every interval
//	receiver:  Receive for each of them; it reports on every interval once, in
//	           order: the result of the comparison, or why there is none
//
// A point that has a key tags its control packets and accepts only those with
// the right tag; a packet recorded and sent again belongs to an interval that
// has passed. Without a key strangers can make up intervals, but no packet
// silences a receiver for longer than three markers of the true sender take.
// If some parts of a record are lost, the comparison uses the parts that came.
package session

import "errors"

// The reasons why an interval is unusable or a call fails.
var (
	// ErrStart means that the Start marker was lost, or came after the End.
	ErrStart = errors.New("start marker missing")
	// ErrEnd means that the End marker was lost, or came after the next Start.
	ErrEnd = errors.New("end marker missing")
	// ErrParts means that no part of the synopsis had come when the next
	// interval ended.
	ErrParts = errors.New("parts of the synopsis missing")
	// ErrStep means that the clock of one of the points was set in the
	// interval.
	ErrStep = errors.New("clock was set")
	// ErrPassed means that markers come of a session, or of intervals, that have
	// passed: sent again by a stranger, or by a sender that was restarted with a
	// number that is not greater.
	ErrPassed = errors.New("session or interval has passed")
	// ErrTurn means that a call, or an interval, is out of turn.
	ErrTurn = errors.New("out of turn")
	// ErrForged means that the tag of a control packet is missing, or is not
	// that of the key.
	ErrForged = errors.New("tag missing or wrong")
)
