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

// files are the captures that ship with the two-point example, from the
// project's root: of a queue of 12 Mb/s, ingress first.
var files = [2]string{"examples/twopoint/testdata/ingress.pcap.gz", "examples/twopoint/testdata/egress.pcap.gz"}

// A capture is what passed both points, in memory.
type capture struct {
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

// load reads the captures, or ends the run.
func load() *capture {
	var readers [2]*trace.Reader
	for i, name := range files {
		file, err := os.Open(filepath.FromSlash(name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("run it from the project's root, where the captures are found: %w", err)
		}
		experiment.Check(err)
		defer file.Close()
		readers[i] = experiment.Try(trace.NewReader(file))
	}
	c := new(capture)
	experiment.Check(c.read(trace.NewPair(readers[0], readers[1])))
	return c
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
