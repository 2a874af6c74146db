package kernel

import (
	"encoding/binary"
	"testing"
	"time"
	"unsafe"
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
	name  string
	build func(p *program, times int) []instruction // in whose map packets are remembered
}

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

// until ends the program after a stage.
func (p *program) until(stages ...func()) []instruction {
	p.labels()
	p.begin()
	p.plain()
	p.place(p.count)
	for _, stage := range stages {
		stage()
	}
	p.place(p.segment)
	p.place(p.out)
	p.with(opMove, r0, map[bool]int32{true: xdpPass, false: scheduleNext}[p.hook == XDP])
	p.exit()
	p.place(p.start)
	p.parse()
	p.refusals()
	return p.assemble()
}

func stages() []stage {
	return []stage{
		{"return", func(p *program, _ int) []instruction {
			p.with(opMove, r0, map[bool]int32{true: xdpPass, false: scheduleNext}[p.hook == XDP])
			p.exit()
			return p.assemble()
		}},
		{"clock", func(p *program, _ int) []instruction {
			p.labels()
			p.begin()
			p.place(p.start)
			p.with(opMove, r0, map[bool]int32{true: xdpPass, false: scheduleNext}[p.hook == XDP])
			p.exit()
			return p.assemble()
		}},
		{"clock+parse", func(p *program, _ int) []instruction { return p.until(func() {}) }},
		{"clock+parse+digest", func(p *program, _ int) []instruction { return p.until(p.digest) }},
		{"LDA", func(p *program, _ int) []instruction { return p.generate() }},
		{"match", func(p *program, times int) []instruction {
			return p.until(p.digest, func() { (&match{times: times}).up(p) })
		}},
	}
}

// measureStages returns how many ns every stage takes on XDP, in the kernel, of
// packets that all differ. All are measured by turns, and the best of several
// turns counts, so that their ratios hold on a busy machine. Matching is the work
// of one end only.
func measureStages(b testing.TB, list []stage, rounds, runs int) []float64 {
	b.Helper()
	runners := make([]runner, len(list))
	best := make([]float64, len(list))
	for i, s := range list {
		config := DefaultConfig
		config.Clock = Boot
		point := newPoint(b, config)
		times := 0
		if s.name == "match" {
			times = newMatch(b, point).times
		}
		g := &program{config: point.config, hook: XDP, cells: point.cells, control: point.control, lanes: point.lanes}
		g.number()
		runners[i] = runner{program: point.loadCode(b, XDP, s.build(g, times))}
		best[i] = 1e9
	}
	frame := benchFrame()
	for range rounds {
		for i := range runners {
			ns, err := runners[i].run(frame, runs)
			if err != nil {
				b.Fatal(err)
			}
			best[i] = min(best[i], float64(ns))
		}
	}
	return best
}

func BenchmarkStages(b *testing.B) {
	list := stages()
	var best []float64
	for b.Loop() {
		best = measureStages(b, list, 7, 100_000)
	}
	for i, s := range list {
		b.ReportMetric(best[i], "ns/"+s.name)
	}
	b.ReportMetric(0, "ns/op")
}

// A packet costs what the clock costs and a third, as the document says; this
// fails when it is half as much again.
func TestStagesCost(t *testing.T) {
	const written = 1.33
	var list []stage
	for _, s := range stages() {
		if s.name == "return" || s.name == "clock" || s.name == "LDA" {
			list = append(list, s)
		}
	}
	ratio := 0.0
	for range 10 { // a busy machine spoils some of them
		ns := measureStages(t, list, 15, 20_000)
		ratio = (ns[2] - ns[0]) / (ns[1] - ns[0])
		t.Logf("%v ns: %.2f clocks", ns, ratio)
		if ratio <= 1.5*written {
			return
		}
	}
	t.Errorf("a packet costs %.2f times what the clock does, want %.2f", ratio, written)
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

// statistics returns how long a program has run, and how often.
func statistics(b *testing.B, program int) (ns, runs uint64) {
	var info [256]byte // struct bpf_prog_info
	attributes := struct {
		descriptor, size uint32
		info             uint64
	}{uint32(program), uint32(len(info)), pointer(unsafe.Pointer(&info))}
	if _, err := bpf(objInfo, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes)); err != nil {
		b.Fatal(err)
	}
	return *(*uint64)(unsafe.Pointer(&info[192])), *(*uint64)(unsafe.Pointer(&info[200]))
}

// BenchmarkLive sends datagrams through a virtual cable with programs at both
// ends, and reports what the kernel says that they take (bpf_stats), at the end
// that receives: at full rate, and in bursts of 50 after 10 ms without work, when
// nothing is in a cache. The program that only returns is what measuring costs.
func BenchmarkLive(b *testing.B) {
	const enableStatistics, rounds = 32, 5
	var kind uint32
	switch on, err := bpf(enableStatistics, unsafe.Pointer(&kind), 4); {
	case err != nil:
		b.Skipf("no statistics of programs: %v", err)
	default:
		defer closeDescriptor(on)
	}
	w := newWire(b, "")
	bursts := func() error {
		for range 20 {
			if err := w.sendUDP(1, 50); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}
	for b.Loop() {
		for _, s := range stages() {
			if s.name != "return" && s.name != "LDA" {
				continue
			}
			config := DefaultConfig
			config.Clock = Boot
			up, _ := w.liveProgram(b, config, s, w.a, Egress)
			down, program := w.liveProgram(b, config, s, w.b, Ingress)
			for name, send := range map[string]func() error{"full": func() error { return w.sendUDP(1, 20_000) }, "cold": bursts} {
				best := 1e9
				for range rounds {
					before, count := statistics(b, program)
					if err := send(); err != nil {
						b.Fatal(err)
					}
					after, counted := statistics(b, program)
					best = min(best, float64(after-before)/float64(max(1, counted-count)))
				}
				b.ReportMetric(best, "ns/"+s.name+","+name)
			}
			up.Close()
			down.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
}

// liveProgram attaches a stage of a program to an end of the link.
func (w *wire) liveProgram(b *testing.B, c Config, s stage, namespace string, hook Hook) (p *Point, descriptor int) {
	p = newPoint(b, c)
	g := &program{config: p.config, hook: hook, cells: p.cells, control: p.control, lanes: p.lanes}
	descriptor = p.loadCode(b, hook, s.build(g, 0))
	err := in(namespace, func() error {
		index, _, err := lookInterface(w.device)
		if err != nil {
			return err
		}
		kind := map[Hook]uint32{Ingress: attachTCXIngress, Egress: attachTCXEgress}[hook]
		link, err := newLink(descriptor, index, kind, beforeOthers)
		if err == nil {
			p.closers = append(p.closers, func() { closeDescriptor(link) })
		}
		return err
	})
	if err != nil {
		b.Skip(err)
	}
	return p, descriptor
}
