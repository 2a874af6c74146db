package lds

import (
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A stamp says which interval a sketch is of, if its point says so.
type stamp struct {
	number uint64
	began  int64
}

// SetInterval sets the interval of the sketch: its number, from 1, and when it
// began by the point's clock, in nanoseconds. Encodings carry both. Sketches
// with different numbers are not compared. A sketch without SetInterval has
// the number 0 and compares with any.
func (i *stamp) SetInterval(number uint64, began int64) { *i = stamp{number, began} }

// Interval returns the values passed to SetInterval, or 0 and 0.
func (i *stamp) Interval() (number uint64, began int64) { return i.number, i.began }

// join makes i the interval of both together: it begins with the earlier one.
func (i *stamp) join(j stamp) {
	if i.number == 0 || j.number != 0 && j.number < i.number {
		*i = j
	}
}

// match returns an error if two points' intervals differ.
func (i stamp) match(j stamp) error {
	if i.number != 0 && j.number != 0 && i.number != j.number {
		return fmt.Errorf("lds: %w: intervals %d and %d", estimate.ErrMismatch, i.number, j.number)
	}
	return nil
}

func (i stamp) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, i.number)
	return binary.BigEndian.AppendUint64(b, uint64(i.began))
}

func readStamp(r *wire.Reader) stamp { return stamp{r.Uint64(), int64(r.Uint64())} }
