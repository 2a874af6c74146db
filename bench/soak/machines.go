package soak

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// all makes the machines.
func all() (machines []machine, err error) {
	machines = []machine{{name: "frames", round: frames}, {name: "captures", round: captures}}
	for _, m := range []struct {
		name string
		make func() (machine, error)
	}{
		{"lda", newAggregates},
		{"lda control", newControl},
		{"lds", newSketches},
		{"rli", newReceiver},
		{"colate", newRecorders},
		{"colate store", newStores},
		{"front door", newPoints},
		{"mplane", newStation},
		{"clocks", newTrackers},
	} {
		made, err := m.make()
		if err != nil {
			return machines, fmt.Errorf("soak: %s: %w", m.name, err)
		}
		made.name = m.name
		machines = append(machines, made)
	}
	return machines, nil
}

// damage changes some bytes, cuts some off or adds some.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range random.IntN(8) {
		if len(b) > 0 {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		b = b[:random.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(random.Uint32()))
	}
	return b
}

// templates are frames of a tunnel in a tunnel, to be damaged.
var templates = [][]byte{
	[]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x81\x00\x00\x01\x08\x00\x45\x00\x00\x62\x00\x00" +
		"\x40\x00\x40\x11\x00\x00\xc6\x33\x64\x01\xc6\x33\x64\x02\xc0\x01\x12\xb5\x00\x4e\x00\x00\x08\x00" +
		"\x00\x00\x00\x00\x12\x00" +
		"\x02\x00\x00\x00\x00\x03\x02\x00\x00\x00\x00\x04\x08\x00\x45\x00\x00\x30\x12\x34\x40\x00\x40\x2f" +
		"\xbe\xef\x0a\x00\x00\x01\x0a\x00\x00\x02\x30\x00\x08\x00\x00\x00\x00\x07\x00\x00\x00\x01\x45\x00" +
		"\x00\x10\x00\x01\x00\x00\x40\x11\x00\x00"),
	[]byte("\x60\x00\x00\x00\x00\x38\x00\x40\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x2b\x00\x01\x04\x00\x00\x00\x00" +
		"\x2c\x02\x04\x01\x00\x00\x00\x00\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0a" +
		"\x33\x00\x00\x01\x00\x00\x00\x07\x11\x00\x00\x00\x00\x00\x00\x01\x00\x35\x08\x68\x00\x08\x00\x00"),
}

// frames parses damaged frames, for every kind of link.
func frames(random *rand.Rand) (tried, refused int, err error) {
	var f hashing.Frame
	for range 2000 {
		link := hashing.Link(random.IntN(300))
		if random.IntN(2) == 0 {
			link = []hashing.Link{hashing.LinkEthernet, hashing.LinkRaw}[random.IntN(2)]
		}
		tried++
		if f.ParseWith(link, damage(random, templates[random.IntN(len(templates))]), &hashing.Tunnels{Depth: random.IntN(4)}) != nil {
			refused++
			if f != (hashing.Frame{}) {
				return tried, refused, errors.New("a refused frame has something in it")
			}
		}
	}
	return tried, refused, nil
}

// captures merges two damaged captures.
func captures(random *rand.Rand) (tried, refused int, err error) {
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, hashing.LinkRaw, 96)
	if err != nil {
		return 0, 0, err
	}
	for range 200 {
		rec := trace.Record{Time: 1e18 + random.Int64N(trace.MaxBackstep), Link: hashing.LinkRaw, Length: 96}
		rec.Frame = make([]byte, random.IntN(96))
		if err := w.Write(rec); err != nil {
			return 0, 0, err
		}
	}
	var readers [2]*trace.Reader
	for i := range readers {
		tried++
		if readers[i], err = trace.NewReader(bytes.NewReader(damage(random, file.Bytes()))); err != nil {
			return tried, tried, nil
		}
	}
	pair := trace.NewPair(readers[0], readers[1])
	for {
		if _, _, err := pair.Next(); err == io.EOF {
			return tried, refused, nil
		} else if err != nil {
			return tried, tried, nil
		}
	}
}

// reseal gives a damaged record the right checksum.
func reseal(data []byte) {
	if n := len(data) - 4; n > 0 {
		binary.BigEndian.PutUint32(data[n:], crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)))
	}
}

// codec is what every synopsis can do.
type codec interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// decode gives a synopsis damaged records of itself. The synopsis may accept
// only those that encode to the same bytes again, and must not change on the
// others.
func decode(random *rand.Rand, s codec) (tried, refused int, err error) {
	before, err := s.MarshalBinary()
	if err != nil {
		return 0, 0, err
	}
	for range 4 {
		data := damage(random, before)
		if random.IntN(2) == 0 {
			reseal(data)
		}
		tried++
		wrong := s.UnmarshalBinary(data)
		after, err := s.MarshalBinary()
		switch {
		case err != nil:
			return tried, refused, err
		case wrong != nil && !bytes.Equal(after, before):
			return tried, refused, fmt.Errorf("changed by a record that was refused: %w", wrong)
		case wrong == nil && !bytes.Equal(after, data):
			return tried, refused, errors.New("took a record and encodes another")
		case wrong != nil:
			refused++
		}
		if err := s.UnmarshalBinary(before); err != nil {
			return tried, refused, err
		}
	}
	return tried, refused, nil
}

// hostileTime returns, mostly, the present.
func hostileTime(random *rand.Rand, now int64) int64 {
	switch random.IntN(1000) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	case 2:
		return int64(random.Uint64())
	}
	return now
}

// hostilePacket returns, mostly, a new packet; sometimes one of a few again.
func hostilePacket(random *rand.Rand) hashing.Packet {
	if random.IntN(3) == 0 {
		return hashing.Word(1, uint64(random.IntN(3)))
	}
	return hashing.Packet(random.Uint64())
}

// finite reports which part of a delay is not a number.
func finite(d estimate.Delay) error {
	for _, x := range [2]float64{d.Mean, d.StdDev} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the answer is %+v", d)
		}
	}
	return nil
}
