package kernel

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/hoplag/hoplag/lds"
)

// benchFrame is UDP over IPv4, as most packets are parsed.
func benchFrame() []byte {
	b := make([]byte, 14+20+8+22)
	copy(b, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45})
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
	b[14+9] = protoUDP
	copy(b[14+12:], []byte{10, 99, 0, 1, 10, 99, 0, 2})
	return b
}

// A stage is a program that ends early, or does something else with packets.
type stage struct {
	name   string
	config func(*Config)
	build  func(p *program, m maps) []instruction
}

// maps are for matching, one of them by least recent use.
type maps struct{ hash, recent int }

// number changes the packet before all else, as many packets differ.
func (p *program) number() {
	short := p.label()
	p.load(word, r2, r1, xdpData)
	p.load(word, r3, r1, xdpEnd)
	p.move(r4, r2)
	p.with(opAdd, r4, 54)
	p.jump(ifGreater, r4, r3, short)
	p.load(word, r4, r2, 50)
	p.with(opAdd, r4, 1)
	p.store(word, r2, 50, r4)
	p.place(short)
}

// leave ends the program.
func (p *program) leave() []instruction {
	p.place(p.count)
	p.place(p.out)
	p.with(opMove, r0, xdpPass)
	p.exit()
	p.refusals()
	return p.assemble()
}

func stages() []stage {
	whole := func(p *program, _ maps) []instruction { return p.generate() }
	match := func(kind func(maps) int) func(*program, maps) []instruction {
		return func(p *program, m maps) []instruction {
			p.labels()
			p.begin()
			p.parse()
			p.place(p.count)
			p.digest()
			(&match{times: kind(m)}).up(p)
			p.count = p.label()
			return p.leave()
		}
	}
	return []stage{
		{"return", nil, func(p *program, _ maps) []instruction {
			p.with(opMove, r0, xdpPass)
			p.exit()
			return p.assemble()
		}},
		{"clock", nil, func(p *program, _ maps) []instruction {
			p.labels()
			p.begin()
			p.with(opMove, r0, xdpPass)
			p.exit()
			return p.assemble()
		}},
		{"clock+parse", nil, func(p *program, _ maps) []instruction {
			p.labels()
			p.begin()
			p.parse()
			return p.leave()
		}},
		{"clock+parse+digest", nil, func(p *program, _ maps) []instruction {
			p.labels()
			p.begin()
			p.parse()
			p.place(p.count)
			p.digest()
			p.count = p.label()
			return p.leave()
		}},
		{"LDA", nil, whole},
		{"LDA,TAI", func(c *Config) { c.Clock = TAI }, whole},
		{"LDA,coarse", func(c *Config) { c.Clock = Coarse }, whole},
		{"LDA+LDS", func(c *Config) { c.LDS = lds.DefaultConfig; c.LDS.Identity = 0 }, whole},
		{"match,hash", nil, match(func(m maps) int { return m.hash })},
		{"match,LRU", nil, match(func(m maps) int { return m.recent })},
	}
}

// BenchmarkStages runs every stage on XDP, in the kernel, of packets that all
// differ. All are measured by turns, and the best of several turns counts, so
// that their ratios hold on a busy machine. Matching is the work of one end only.
func BenchmarkStages(b *testing.B) {
	const rounds, runs = 7, 100_000
	list := stages()
	runners := make([]runner, len(list))
	best := make([]float64, len(list))
	for i, s := range list {
		config := DefaultConfig
		config.Clock = Boot
		if s.config != nil {
			s.config(&config)
		}
		point := newPoint(b, config)
		const hashMap, recentMap = 1, 9
		m := maps{point.benchMap(b, hashMap), point.benchMap(b, recentMap)}
		g := &program{config: point.config, hook: XDP, cells: point.cells, control: point.control, lanes: point.lanes}
		g.number()
		runners[i] = runner{program: point.loadCode(b, XDP, s.build(g, m))}
		best[i] = 1e9
	}
	frame := benchFrame()
	for b.Loop() {
		for range rounds {
			for i := range runners {
				ns, err := runners[i].run(frame, runs)
				if err != nil {
					b.Fatal(err)
				}
				best[i] = min(best[i], float64(ns))
			}
		}
	}
	for i, s := range list {
		b.ReportMetric(best[i], "ns/"+s.name)
	}
	b.ReportMetric(0, "ns/op")
}

func (p *Point) benchMap(b *testing.B, kind uint32) int {
	descriptor, err := newMap(kind, 8, 8, 1<<20, 0)
	if err != nil {
		b.Fatal(err)
	}
	p.closers = append(p.closers, func() { closeDescriptor(descriptor) })
	return descriptor
}

// BenchmarkRead reads an interval of all processors, less the wait for
// programs.
func BenchmarkRead(b *testing.B) {
	p := newPoint(b, DefaultConfig)
	i := p.rotation.Active()
	for b.Loop() {
		p.collect(i, 0, 0)
	}
}

// BenchmarkRotate is the whole of it.
func BenchmarkRotate(b *testing.B) {
	p := newPoint(b, DefaultConfig)
	for b.Loop() {
		i, err := p.Rotate()
		if err != nil {
			b.Fatal(err)
		}
		p.Release(i)
	}
}

// BenchmarkCable sends datagrams through a virtual cable, by turns with and
// without points at both ends.
func BenchmarkCable(b *testing.B) {
	const each, rounds = 50_000, 5
	w := newWire(b, "")
	if err := w.sendUDP(1, 100); err != nil {
		b.Fatal(err)
	}
	best := map[string]time.Duration{}
	for b.Loop() {
		for round := range rounds {
			for _, points := range []bool{false, true} {
				name := fmt.Sprintf("points=%v", points)
				var up, down *Point
				if points {
					up, down = newPoint(b, DefaultConfig), newPoint(b, DefaultConfig)
					w.attach(b, up, w.a, Egress)
					w.attach(b, down, w.b, Ingress)
				}
				start := time.Now()
				if err := w.sendUDP(1, each); err != nil {
					b.Fatal(err)
				}
				if took := time.Since(start) / each; round == 0 || took < best[name] {
					best[name] = took
				}
				if points {
					up.Close()
					down.Close()
				}
			}
		}
	}
	for name, took := range best {
		b.ReportMetric(float64(took), "ns/"+name)
	}
	b.ReportMetric(0, "ns/op")
}
