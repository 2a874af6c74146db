package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

//go:embed testdata/ingress.pcap.gz testdata/egress.pcap.gz
var shipped embed.FS

// captures is an open capture pair.
type captures struct {
	names   [2]string
	pair    *trace.Pair
	closers []io.Closer
}

// open opens the two named captures, or those that ship if the names are empty.
func open(in, out string) (*captures, error) {
	c := &captures{names: [2]string{in, out}}
	var readers [2]*trace.Reader
	for i, name := range c.names {
		var src io.Reader
		if name == "" {
			c.names[i] = []string{"testdata/ingress.pcap.gz", "testdata/egress.pcap.gz"}[i]
			data, err := shipped.ReadFile(c.names[i])
			if err != nil {
				return nil, err
			}
			src = bytes.NewReader(data)
		} else {
			file, err := os.Open(name)
			if err != nil {
				c.Close()
				return nil, err
			}
			c.closers = append(c.closers, file)
			src = file
		}
		r, err := trace.NewReader(src)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("%s: %w", c.names[i], err)
		}
		readers[i] = r
	}
	c.pair = trace.NewPair(readers[0], readers[1])
	return c, nil
}

// Close closes the files.
func (c *captures) Close() {
	for _, closer := range c.closers {
		closer.Close()
	}
}

// feed passes every packet of the pair to the meter, up to the first error in one of the captures.
func (c *captures) feed(ctx context.Context, m *meter) error {
	var p packet
	for packets := 0; ; {
		if packets++; packets%1024 == 0 && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		point, rec, err := c.pair.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, trace.ErrTime), errors.Is(err, trace.ErrLink):
			return fmt.Errorf("%s and %s: %w", c.names[0], c.names[1], err)
		case err != nil:
			return fmt.Errorf("%w (-before %s, -after %s)", err, c.names[0], c.names[1])
		}
		if err := p.parse(rec); err != nil {
			return fmt.Errorf("%s: %w: %d", c.names[point], err, rec.Link)
		}
		switch {
		case p.other != nil && c.pair.Mixed(): // the link types differ, and so do the bytes
			m.passedOver++
			continue
		case point == trace.Egress && c.pair.Broken(trace.Ingress) && !m.knows(&p):
			continue // it may have entered after the first capture broke off
		}
		if err := m.update(point, rec.Time, &p); err != nil {
			return err
		}
	}
}

// A packet is what identifies a frame at both points: an IP packet by what does
// not change in transit, any other frame by all its bytes.
type packet struct {
	frame hashing.Frame
	other []byte // the frame, if it carries no IP packet or a broken one
	cut   bool   // the capture ends within the bytes that distinguish IP packets
}

// parse sets p to the record's packet, valid as long as the record. The only
// error is an unknown link type.
func (p *packet) parse(rec trace.Record) error {
	err := p.frame.Parse(rec.Link, rec.Frame)
	if errors.Is(err, hashing.ErrLink) {
		return err
	}
	if p.other = nil; err != nil {
		p.other = rec.Frame
	}
	p.cut = p.frame.Cut || errors.Is(err, hashing.ErrTruncated)
	return nil
}

func (p *packet) digest(seed uint64) hashing.Packet {
	if p.other == nil {
		return p.frame.Digest(seed)
	}
	return hashing.Digest(seed, p.other)
}
