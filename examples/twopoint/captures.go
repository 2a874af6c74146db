package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue/trace"
)

//go:embed testdata/ingress.pcap.gz testdata/egress.pcap.gz
var shipped embed.FS

// captures is an open capture pair.
type captures struct {
	names [2]string
	pair  *trace.Pair
	files []fs.File
}

// open opens the two named captures, or those that ship if the names are empty.
func open(before, after string) (*captures, error) {
	if (before == "") != (after == "") {
		return nil, programs.Usage("-before and -after go together: a capture before and one after the delay")
	}
	c := &captures{names: [2]string{cmp.Or(before, "testdata/ingress.pcap.gz"), cmp.Or(after, "testdata/egress.pcap.gz")}}
	from := shipped.Open
	if before != "" {
		from = func(name string) (fs.File, error) { return os.Open(name) }
	}
	var readers [2]*trace.Reader
	for i, name := range c.names {
		file, err := from(name)
		if err == nil {
			c.files = append(c.files, file)
			readers[i], err = trace.NewReader(file)
		}
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	c.pair = trace.NewPair(readers[0], readers[1])
	return c, nil
}

// Close closes the files.
func (c *captures) Close() {
	for _, file := range c.files {
		file.Close()
	}
}

// feed passes every IP packet of the pair to the meter, up to the first error in one of the captures.
func (c *captures) feed(ctx context.Context, m *meter) error {
	var frame hashing.Frame
	for packets := 0; ; {
		if packets++; packets%1024 == 0 && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		side, rec, err := c.pair.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, trace.ErrTime), errors.Is(err, trace.ErrLink):
			return fmt.Errorf("%s and %s: %w", c.names[0], c.names[1], err)
		case err != nil:
			return fmt.Errorf("%w (-before %s, -after %s)", err, c.names[0], c.names[1])
		}
		switch err := frame.Parse(rec.Link, rec.Frame); {
		case errors.Is(err, hashing.ErrLink):
			return fmt.Errorf("%s: %w: %d", c.names[side], err, rec.Link)
		case err != nil:
			m.passedOver++
			continue
		case frame.Cut:
			m.cut++
		}
		packet := frame.Digest(m.seed)
		if side == trace.Egress && c.pair.Broken(trace.Ingress) && len(m.flying[packet]) == 0 {
			continue // it may have entered after the first capture broke off
		}
		if err := m.update(side, rec.Time, packet); err != nil {
			return err
		}
	}
}
