package lds

import (
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A stamp is which interval a sketch is of, where its point says so.
type stamp struct {
	number uint64
	began  int64
}

// SetInterval says of which interval the sketch is: its number, from 1, and when
// it began by the point's clock, in nanoseconds. Both travel in its encodings,
// and sketches of different numbers are not compared. A sketch of which nothing
// is said has the number 0, and is compared with any.
func (i *stamp) SetInterval(number uint64, began int64) { *i = stamp{number, began} }

// Interval returns what SetInterval said, or 0 and 0.
func (i *stamp) Interval() (number uint64, began int64) { return i.number, i.began }

// join makes i what both are of together: it begins with the earlier one.
func (i *stamp) join(j stamp) {
	if i.number == 0 || j.number != 0 && j.number < i.number {
		*i = j
	}
}

// match reports how two points' intervals differ, if they do.
func (i stamp) match(j stamp) error {
	if i.number != 0 && j.number != 0 && i.number != j.number {
		return fmt.Errorf("lds: %w: intervals %d and %d", estimate.ErrMismatch, i.number, j.number)
	}
	return nil
}

const stampBytes = 16

func (i stamp) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, i.number)
	return binary.BigEndian.AppendUint64(b, uint64(i.began))
}

func readStamp(r *wire.Reader) stamp { return stamp{r.Uint64(), int64(r.Uint64())} }
