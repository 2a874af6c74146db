package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hoplag/hoplag"
)

// audit waits until the reports of a pair contain every message that passed,
// and checks that they contain each once. It returns the number of reports.
func (f *fleet) audit(ctx context.Context, want total, patience time.Duration) (int, error) {
	for end := time.Now().Add(patience); ; sleep(ctx, 500*time.Millisecond) {
		reports, err := f.since(ctx, want.Pair, time.Now().Add(-24*time.Hour))
		if err != nil {
			return 0, err
		}
		if err = want.check(reports); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return len(reports), err
		}
	}
}

// check compares reports with what passed. What was received is exact. What was
// lost at the very end is outstanding, and a report that refuses an answer, or
// in which a session begins, withholds its losses.
func (t *total) check(reports []hoplag.Report) error {
	var got total
	var lost int64 // without those that came after all
	untold, outstanding := false, int64(0)
	for i, r := range reports {
		if i > 0 && r.Number <= reports[i-1].Number {
			return fmt.Errorf("%s: report %d comes after %d", t.Pair, r.Number, reports[i-1].Number)
		}
		got.Sent += r.Forth.Sent
		untold = untold || r.Begins && r.Forth.Sent > 0 || r.Forth.Sent > 0 && r.Forth.Err != nil
		got.Received += r.Forth.Received
		lost += int64(r.Forth.Lost) - int64(r.Forth.Extra)
		if r.Forth.Received > 0 {
			outstanding = int64(r.Forth.Outstanding)
		}
	}
	missing := int64(t.Sent - t.Received)
	if got.Sent > t.Sent || got.Received != t.Received || lost > missing || lost+outstanding < missing && !untold {
		return fmt.Errorf("%s: %d reports have %d messages sent, %d received and %d lost; %d, %d and %d were", t.Pair, len(reports),
			got.Sent, got.Received, lost, t.Sent, t.Received, t.Sent-t.Received)
	}
	return nil
}
