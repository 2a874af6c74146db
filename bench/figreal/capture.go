package figreal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// A source says where a pair of captures is.
type source struct {
	name, title string
	files       [2]string // from the project's root, ingress first
	ships       bool      // with the project: it is an error if it is missing
}

var sources = []source{
	{
		name: "shipped", title: "queue of 12 Mb/s", ships: true,
		files: [2]string{"examples/twopoint/testdata/ingress.pcap.gz", "examples/twopoint/testdata/egress.pcap.gz"},
	},
	beside("tbf400m_512k", "400 Mb/s, 512 kB"),
	beside("tbf300m_2m", "300 Mb/s, 2 MB"),
	beside("htb2_reorder", "two classes, reordered"),
}

func beside(name, title string) source {
	dir := "../shared/data/twopoint/" + name + "/"
	return source{name: name, title: title, files: [2]string{dir + "ingress.pcap.gz", dir + "egress.pcap.gz"}}
}

// A capture is what passed both points, in memory.
type capture struct {
	source
	packets []packet // in the order they came
	leaving []int32  // the numbers of those that left, in that order
}

type packet struct {
	id      hashing.Packet
	in, out int64 // ns
	lost    bool
}

func (p *packet) delay() float64 { return float64(p.out - p.in) }

// identity is the seed for matching everything.
const identity = 0x9e3779b97f4a7c15

// load reads a pair of captures. The error wraps fs.ErrNotExist if they are
// missing.
func (s source) load() (*capture, error) {
	var readers [2]*trace.Reader
	for i, name := range s.files {
		file, err := os.Open(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if readers[i], err = trace.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	c := &capture{source: s}
	if err := c.read(trace.NewPair(readers[0], readers[1])); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return c, nil
}

func (c *capture) read(pair *trace.Pair) error {
	flying := map[hashing.Packet][]int32{}
	var frame hashing.Frame
	for {
		point, rec, err := pair.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if frame.Parse(rec.Link, rec.Frame) != nil {
			continue // it has no IP
		}
		id := frame.Digest(identity)
		if point == trace.Ingress {
			flying[id] = append(flying[id], int32(len(c.packets)))
			c.packets = append(c.packets, packet{id: id, in: rec.Time, lost: true})
			continue
		}
		same := flying[id]
		if len(same) == 0 {
			return errors.New("a packet left that had not come: the two captures are not of the same traffic")
		}
		p := &c.packets[same[0]]
		p.out, p.lost = rec.Time, false
		c.leaving = append(c.leaving, same[0])
		if flying[id] = same[1:]; len(same) == 1 {
			delete(flying, id)
		}
	}
	if len(c.leaving) == 0 {
		return estimate.ErrNoSamples
	}
	return nil
}

// loadAll reads the captures of all sources that exist, and notes which are
// missing. Those that ship must exist.
func loadAll(run *experiment.Run, from ...source) (there []*capture) {
	for _, s := range from {
		c, err := s.load()
		switch {
		case err == nil:
			there = append(there, c)
			if !s.ships {
				run.Outside(s.files[0])
			}
		case s.ships && errors.Is(err, fs.ErrNotExist):
			experiment.Check(fmt.Errorf("run it from the project's root, where the shipped captures are found: %w", err))
		case errors.Is(err, fs.ErrNotExist):
			run.Notef("Without the captures %q, which are not part of the project.", s.title)
		default:
			experiment.Check(err)
		}
	}
	return there
}

// packetKey is a packet's digest under a seed.
func packetKey(seed uint64, p *packet) hashing.Packet { return hashing.Word(seed, uint64(p.id)) }
