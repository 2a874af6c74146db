package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// seal appends the checksum of a record.
func seal(b []byte) []byte { return wire.Seal(b, 0) }

// counter is the least synopsis: it counts packets. It rides on a session as
// any other does.
type counter struct {
	counts [2]uint64
	target int // slot, or -1
}

func (c *counter) Open(slot int, _ []byte) error { c.target = slot; return nil }
func (c *counter) Idle()                         { c.target = -1 }
func (c *counter) Discard(slot int)              { c.counts[slot] = 0 }
func (c *counter) update() {
	if c.target >= 0 {
		c.counts[c.target]++
	}
}

func (c *counter) Compare(slot int, parts iter.Seq[[]byte]) (int64, error) {
	all := bytes.Join(slices.Collect(parts), nil)
	if len(all) < 8 {
		return 0, errors.New("not all came")
	}
	return int64(binary.BigEndian.Uint64(all)) - int64(c.counts[slot]), nil
}

func TestAnySynopsisRides(t *testing.T) {
	point := &counter{target: -1}
	r := NewReceiver[int64]("test", point, 2, 8, 42)
	s, err := NewSender("test", 1, FrameSize+4, 4, 42)
	if err != nil {
		t.Fatal(err)
	}
	var reports []Report[int64]
	receive := func(data []byte, err error) {
		t.Helper()
		if err == nil {
			reports, err = r.Receive(bytes.Clone(data), reports)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	random := uint64(1)
	for interval := range 50 {
		receive(s.Start(nil, nil))
		sent, lost := uint64(0), int64(0)
		for range 20 {
			sent++
			if random = uint64(hashing.Word(1, random)); random%5 == 0 {
				lost++
				continue
			}
			point.update()
		}
		receive(s.End(nil))
		point.update() // between intervals
		parts := 0
		record := binary.BigEndian.AppendUint64(nil, sent)
		for data := range s.Parts([][]byte{record[:4], record[4:]}) {
			parts++
			receive(data, nil)
		}
		if len(reports) != interval+1 || parts != 2 {
			t.Fatalf("%d reports, %d parts", len(reports), parts)
		}
		if got := reports[interval]; got.Err != nil || got.Result != lost || got.Interval != uint64(interval) {
			t.Errorf("%+v, want %d lost", got, lost)
		}
	}
}
