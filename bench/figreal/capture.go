package figreal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// A source says where a pair of captures is, and what is known about the queue
// between them.
type source struct {
	name, title string
	files       [2]string // from the project's root, ingress first
	ships       bool      // with the project: it is an error if it is missing
	period      int64     // ns: length of an interval in figures over time
	rate        int64     // bits per second to which the queue was shaped; 0: not a single queue
	limit       int64     // bytes that it held
}

var sources = []source{
	{
		name: "shipped", title: "queue of 12 Mb/s", ships: true, period: 250e6, rate: 12e6, limit: 120_000,
		files: [2]string{"examples/twopoint/testdata/ingress.pcap.gz", "examples/twopoint/testdata/egress.pcap.gz"},
	},
	beside("tbf400m_512k", "400 Mb/s, 512 kB", 400e6, 512_000),
	beside("tbf300m_2m", "300 Mb/s, 2 MB", 300e6, 2_000_000),
	beside("htb2_reorder", "two classes, reordered", 0, 0),
}

func beside(name, title string, rate, limit int64) source {
	dir := "../shared/data/twopoint/" + name + "/"
	return source{name: name, title: title, period: 250e6, rate: rate, limit: limit,
		files: [2]string{dir + "ingress.pcap.gz", dir + "egress.pcap.gz"}}
}

// hardware is a switch that loses nothing; both sides on one clock of 10 ns.
var hardware = source{name: "switch", title: "hardware switch",
	files: [2]string{"../shared/data/switch/ingress.pcap", "../shared/data/switch/egress.pcap"}}

// A capture is what passed both points, in memory.
type capture struct {
	source
	packets []packet // in the order they came
	leaving []int32  // the numbers of those that left, in that order
	flows   []flow   // in the order of their first packets
	lost    int
	twins   int // packets with an identical one on its way when they left: which is which is a guess
	others  int // frames without IP, skipped
}

type packet struct {
	id      hashing.Packet
	in, out int64 // ns
	flow    int32
	bytes   int32 // on the link
	lost    bool
}

func (p *packet) delay() float64 { return float64(p.out - p.in) }

type flow struct {
	key    hashing.Flow
	sent   int
	delays estimate.Moments // of the packets that arrived
}

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
	flows := map[hashing.Flow]int32{}
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
			c.others++
			continue
		}
		id := frame.Digest(identity)
		if point == trace.Ingress {
			key := frame.Tuple.Flow(identity)
			number, ok := flows[key]
			if !ok {
				number = int32(len(c.flows))
				flows[key] = number
				c.flows = append(c.flows, flow{key: key})
			}
			c.flows[number].sent++
			flying[id] = append(flying[id], int32(len(c.packets)))
			c.packets = append(c.packets, packet{id: id, in: rec.Time, flow: number, bytes: int32(rec.Length), lost: true})
			continue
		}
		same := flying[id]
		if len(same) == 0 {
			return errors.New("a packet left that had not come: the two captures are not of the same traffic")
		}
		p := &c.packets[same[0]]
		p.out, p.lost = rec.Time, false
		if len(same) > 1 {
			c.twins++
		}
		c.leaving = append(c.leaving, same[0])
		c.flows[p.flow].delays.Add(p.delay())
		if flying[id] = same[1:]; len(same) == 1 {
			delete(flying, id)
		}
	}
	c.lost = len(c.packets) - len(c.leaving)
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
			run.Try(fmt.Errorf("run it from the project's root, where the shipped captures are found: %w", err))
		case errors.Is(err, fs.ErrNotExist):
			run.Notef("Without the captures %q, which are not part of the project.", s.title)
		default:
			run.Try(err)
		}
	}
	return there
}

// packetKey is a packet's digest under a seed.
func packetKey(seed uint64, p *packet) hashing.Packet { return hashing.Word(seed, uint64(p.id)) }

// flowKeys returns the keys of all flows under a seed.
func (c *capture) flowKeys(seed uint64) []hashing.Flow {
	keys := make([]hashing.Flow, len(c.flows))
	for i := range keys {
		keys[i] = hashing.Flow(hashing.Word(seed, uint64(c.flows[i].key)))
	}
	return keys
}

// seen returns a capture's packets, with or without the lost ones, and the
// flow records: the packets that arrived.
func (c *capture) seen(seed uint64, withLost bool) (iter.Seq[counters.Packet], []joint.FlowRecord) {
	keys := c.flowKeys(seed)
	records := make([]joint.FlowRecord, len(keys))
	for i, key := range keys {
		records[i] = joint.FlowRecord{Flow: key, Packets: float64(c.flows[i].delays.N())}
	}
	return func(yield func(counters.Packet) bool) {
		for i := range c.packets {
			p := &c.packets[i]
			if (withLost || !p.lost) &&
				!yield(counters.Packet{Flow: keys[p.flow], ID: packetKey(seed, p), In: p.in, Out: p.out, Lost: p.lost}) {
				return
			}
		}
	}, records
}

// truth covers all packets that left.
func (c *capture) truth() estimate.Moments {
	var all estimate.Moments
	for _, number := range c.leaving {
		all.Add(c.packets[number].delay())
	}
	return all
}

func (c *capture) loss() float64 { return float64(c.lost) / float64(len(c.packets)) }

// seconds returns the time from the first packet to the last.
func (c *capture) seconds() float64 {
	return float64(c.packets[len(c.packets)-1].in-c.packets[0].in) / 1e9
}

// offered returns the rate of the packets that came, in bits per second.
func (c *capture) offered() float64 {
	bits := 0.0
	for i := range c.packets {
		bits += 8 * float64(c.packets[i].bytes)
	}
	return bits / c.seconds()
}
