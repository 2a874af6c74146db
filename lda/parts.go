package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// EstimateParts is [Estimate] for an upstream encoding of which parts may be
// missing. The record is as long as the whole encoding, and came reports whether
// the bytes from one offset to another are there. EstimateParts decodes what came
// into up and empties the other cells at both points. It returns the share of the
// cells that came; the Result counts the packets of those cells.
//
// If the whole record came and is corrupt, the error wraps
// [estimate.ErrEncoding]; for other errors see Estimate.
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

// SetShifts replaces the Config of an empty aggregator by c, which may differ in
// shifts only. It allocates nothing. The error wraps [estimate.ErrConfig] or
// [estimate.ErrMismatch].
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
