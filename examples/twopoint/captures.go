package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue/trace"
)

//go:embed testdata/ingress.pcap.gz testdata/egress.pcap.gz
var shipped embed.FS

// captures is an open capture pair.
type captures struct {
	names    [2]string
	pair     *trace.Pair
	progress progress
	closers  []io.Closer
}

// open opens the two named captures, or those that ship if the names are
// empty.
func open(in, out string, stderr io.Writer) (*captures, error) {
	c := &captures{names: [2]string{in, out}, progress: progress{w: stderr}}
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
			if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
				c.progress.total += info.Size()
			} else {
				c.progress.endless = true
			}
			src = io.TeeReader(file, &c.progress)
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

// feed passes every packet of the pair to the meter, up to the first error in
// one of the captures.
func (c *captures) feed(ctx context.Context, m *meter) error {
	defer c.progress.end()
	var p packet
	for {
		if c.progress.packets%1024 == 0 && ctx.Err() != nil {
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
		c.progress.packets++
		if err := p.parse(rec); err != nil {
			return fmt.Errorf("%s: %w: %d", c.names[point], err, rec.Link)
		}
		// If link types differ, so do the bytes of frames without IP.
		m.ipOnly = m.ipOnly || c.pair.Mixed()
		if point == trace.Egress && c.pair.Broken(trace.Ingress) && !m.knows(&p) {
			continue // it may have entered after the first capture broke off
		}
		m.update(point, rec.Time, &p)
	}
}

// progress shows on a terminal how far a long read has come.
type progress struct {
	w            io.Writer
	total, bytes int64
	endless      bool // the total is unknown, as for a pipe
	packets      int64
	start, shown time.Time
}

// Write counts bytes read and shows the progress twice a second.
func (p *progress) Write(b []byte) (int, error) {
	p.bytes += int64(len(b))
	now := time.Now()
	if p.start.IsZero() {
		p.start, p.shown = now, now.Add(time.Second/2)
	}
	if now.Sub(p.shown) >= time.Second/2 && programs.Terminal(p.w) {
		p.shown = now
		fmt.Fprintf(p.w, "\r%s ", p.line(now.Sub(p.start)))
	}
	return len(b), nil
}

func (p *progress) line(elapsed time.Duration) string {
	s := fmt.Sprintf("%s packets  %.1f M/s", programs.Thousands(p.packets), float64(p.packets)/elapsed.Seconds()/1e6)
	if p.endless {
		return s
	}
	return fmt.Sprintf("%3.0f %%  %s", 100*float64(p.bytes)/float64(p.total), s)
}

func (p *progress) end() {
	if p.shown.After(p.start.Add(time.Second / 2)) {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
