package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue/trace"
)

// recordOptions are the options of record.
type recordOptions struct {
	in, out, dir string
	period       time.Duration
	config       colate.Config
	seed         uint64 // of all digests
	exact        *exact // also matches packets, if not nil
}

func parseRecord(args []string, stderr io.Writer) (recordOptions, error) {
	opt := recordOptions{config: colate.Config{CountBits: 12, DigestBits: 20, Shift: 6}}
	f := flags("record", "Reads a capture pair into the stores of a directory.", stderr)
	f.StringVar(&opt.in, "in", "examples/twopoint/testdata/ingress.pcap.gz", "capture `file` before the delay; pcap or pcapng, also .gz")
	f.StringVar(&opt.out, "out", "examples/twopoint/testdata/egress.pcap.gz", "capture `file` after the delay")
	f.StringVar(&opt.dir, "dir", "", "`directory` for the stores, created if missing")
	f.Uint64Var(&opt.seed, "seed", 1, "`secret` seed of all digests; it is not kept, and a query needs it too")
	f.IntVar(&opt.config.Counters, "counters", 4096, "`number` of counters at each point")
	f.IntVar(&opt.config.PerFlow, "perflow", 20, "`number` of counters that a flow is spread over")
	f.DurationVar(&opt.period, "period", 500*time.Millisecond, "`time` between stores of the counters, cut by the clock")
	bits := f.Uint("bits", 64, "`width` of a counter, 12 bits of which count packets and 20 tell which they were")
	if err := parseDir(f, args, &opt.dir); err != nil {
		return opt, err
	}
	if *bits > 64 {
		return opt, fmt.Errorf("-bits is %d, want at most 64", *bits)
	}
	opt.config.Identity = hashing.Fingerprint(opt.seed)
	opt.config.Bits, opt.config.Period = uint8(*bits), int64(opt.period)
	return opt, opt.config.Validate()
}

// point is one of the two points: its recorders and its store.
type point struct {
	rotation *estimate.Rotation[*colate.Recorder]
	store    *colate.Store
	packets  int
	other    int // frames that carry no IP, or are cut short
	before   colate.Summary
}

// newPoint opens a point's store, and prints what is damaged in it.
func newPoint(opt *recordOptions, i int, stdout io.Writer) (*point, error) {
	store, err := openStore(opt.dir, i, colate.StoreOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range store.Damages() {
		fmt.Fprintf(stdout, "damaged: %v\n", d)
	}
	rotation, err := colate.NewRotation(opt.config)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &point{rotation: rotation, store: store, before: store.Summary()}, nil
}

// tell prints what was stored.
func (p *point) tell(name string, stdout io.Writer) {
	now := p.store.Summary()
	epochs, bytes := now.Epochs-p.before.Epochs, now.Bytes-p.before.Bytes
	fmt.Fprintf(stdout, "%-8s %d packets in %d epochs, %d bytes: %.1f bits a packet\n",
		name+":", p.packets, epochs, bytes, float64(bytes)*8/float64(max(p.packets, 1)))
	if p.other > 0 {
		fmt.Fprintf(stdout, "         and %d frames without IP, not recorded\n", p.other)
	}
}

// update records a packet, after storing the previous epoch if it is over. A
// switch would leave the writing to another thread; the rotation's other
// recorder continues meanwhile.
func (p *point) update(flow hashing.Flow, packet hashing.Packet, t int64) error {
	p.packets++
	if p.rotation.Active().Due(t) {
		if err := p.keep(); err != nil {
			return err
		}
	}
	p.rotation.Active().Update(flow, packet, t)
	return nil
}

func (p *point) keep() error {
	done, err := p.rotation.Rotate()
	if err != nil {
		return err
	}
	return errors.Join(p.store.Append(done), p.rotation.Release(done))
}

// finish stores the current epoch and closes the store.
func (p *point) finish() error { return errors.Join(p.keep(), p.store.Close()) }

func record(opt recordOptions, stdout io.Writer) error {
	// Open the captures first: without them no store is created.
	var readers [2]*trace.Reader
	for i, name := range []string{opt.in, opt.out} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "examples/") {
			return fmt.Errorf("%w: the captures that ship are found from the top of the project; elsewhere, give -in and -out", err)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if readers[i], err = trace.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(opt.dir, programs.FlowsFile)); err == nil {
		return fmt.Errorf("%s already has a recording; choose another -dir", opt.dir)
	}
	var at [2]*point
	for i := range at {
		var err error
		if at[i], err = newPoint(&opt, i, stdout); err != nil {
			return err
		}
	}
	flows := new(programs.FlowTable)
	if err := pass(&opt, trace.NewPair(readers[0], readers[1]), at, flows); err != nil {
		return err
	}
	for i, p := range at {
		if err := p.finish(); err != nil {
			return err
		}
		p.tell(points[i], stdout)
	}
	fmt.Fprintf(stdout, "flows:   %d\n", flows.Len())
	return flows.Write(opt.dir)
}

// pass passes all packets to the points where they were captured.
func pass(opt *recordOptions, pair *trace.Pair, at [2]*point, flows *programs.FlowTable) error {
	var frame hashing.Frame
	for {
		side, rec, err := pair.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		p := at[side]
		if err := frame.Parse(rec.Link, rec.Frame); err != nil {
			if errors.Is(err, hashing.ErrLink) {
				return err
			}
			p.other++
			continue
		}
		packet := frame.Digest(opt.seed)
		if err := p.update(frame.Tuple.Flow(opt.seed), packet, rec.Time); err != nil {
			return err
		}
		if opt.exact != nil {
			opt.exact.update(side, &frame.Tuple, packet, rec.Time)
		}
		seen := programs.FlowRecord{Tuple: frame.Tuple, First: rec.Time, Last: rec.Time}
		if side == trace.Egress {
			seen.Packets = 1
		}
		flows.Add(seen)
	}
}
