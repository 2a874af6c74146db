package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// EstimateParts is [Estimate] where the upstream point's encoding may have come
// in part. record is as long as the encoding of an aggregator of down's Config,
// and came reports whether its bytes from one offset to another are there. up is
// made to hold what came; cells that did not come are emptied at both points.
// The share is of the cells that came, 0 to 1, and the Result counts the packets
// of those.
//
// Beside Estimate's errors, [estimate.ErrEncoding] is of a record that came
// whole and is corrupt.
func EstimateParts(up, down *Aggregator, record []byte, came func(from, to int) bool) (r Result, share float64, err error) {
	if size := down.config.EncodedSize(); len(record) != size {
		return r, 0, fmt.Errorf("lda: %w: a record of %d bytes, want %d", estimate.ErrEncoding, len(record), size)
	}
	if !up.config.sameButShifts(&down.config) {
		return r, 0, sameConfig(up, down)
	}
	share = 1
	received := down.Packets()
	if came(0, len(record)) {
		state, config, err := openRecord(record)
		if err != nil {
			return r, 0, err
		}
		if config != down.config {
			return r, 0, fmt.Errorf("lda: %w: %+v and %+v", estimate.ErrMismatch, config, down.config)
		}
		up.configure(config)
		if err := up.decodeState(state); err != nil {
			return r, 0, err
		}
	} else {
		up.configure(down.config)
		share = up.decodePartly(record, came, down)
	}
	r, err = compare(up, down, received)
	return r, share, err
}

// SetShifts gives an empty aggregator the Config c, which may differ from its
// own in shifts only. Nothing is allocated. The error wraps
// [estimate.ErrConfig] or [estimate.ErrMismatch].
func (a *Aggregator) SetShifts(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !a.config.sameButShifts(&c) {
		return fmt.Errorf("lda: %w: %+v and %+v differ in more than shifts", estimate.ErrMismatch, a.config, c)
	}
	if a.config != c {
		a.configure(c)
	}
	return nil
}
