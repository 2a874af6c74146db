package kernel

import (
	"errors"
	"flag"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/hoplag/hoplag/lda"
)

// Tests run at once, because they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

// bootConfig has the clock that tests read.
func bootConfig() Config {
	c := DefaultConfig
	c.Clock = Boot
	return c
}

// newPoint makes a Point, or skips the test where that is not permitted.
func newPoint(t testing.TB, c Config) *Point {
	t.Helper()
	p, err := New(c)
	if errors.Is(err, ErrPrivilege) || errors.Is(err, ErrUnsupported) {
		t.Skipf("no points in this kernel: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// loadTest loads a program for runs by hand, whose stamps are what setTime says.
func (p *Point) loadTest(t testing.TB, hook Hook, raw, fixedTime bool) int {
	t.Helper()
	g := &program{config: p.config, hook: hook, raw: raw, cells: p.cells, control: p.control, lanes: p.lanes, after: p.after,
		fixedTime: fixedTime}
	return p.loadCode(t, hook, g.generate())
}

func (p *Point) loadCode(t testing.TB, hook Hook, code []instruction) int {
	t.Helper()
	kind, attach := uint32(progSchedule), uint32(0)
	if hook == XDP {
		kind, attach = progXDP, attachXDP
	}
	descriptor, err := loadProgram(kind, attach, 0, code)
	if err != nil {
		t.Fatal(err)
	}
	p.closers = append(p.closers, func() { closeDescriptor(descriptor) })
	return descriptor
}

// attachCode attaches a loaded program to end a of the link, behind those that are there.
func (w *wire) attachCode(t testing.TB, p *Point, program int) {
	t.Helper()
	err := in(w.a, func() error {
		index, _, err := lookInterface("eth0")
		if err != nil {
			return err
		}
		link, err := newLink(program, index, attachTCXEgress, 0)
		if err == nil {
			p.closers = append(p.closers, func() { closeDescriptor(link) })
		}
		return err
	})
	if err != nil {
		t.Skipf("no tcx: %v", err)
	}
}

func (p *Point) setTime(now int64) { p.flags[controlTime/8] = uint64(now) }

// A runner runs a program on frames by hand (BPF_PROG_TEST_RUN).
type runner struct {
	program int
	context [192]byte // struct __sk_buff
	size    int       // of context that is given
}

// setBundle makes the frames to come bundles of segments of the given size.
func (r *runner) setBundle(gsoSize, gsoSegments int) {
	*(*uint32)(unsafe.Pointer(&r.context[164])) = uint32(gsoSegments)
	*(*uint32)(unsafe.Pointer(&r.context[bufferSegment])) = uint32(gsoSize)
	r.size = len(r.context)
}

// run runs the program a given number of times, and returns the time of one run in nanoseconds.
func (r *runner) run(frame []byte, repeat int) (nanoseconds uint32, err error) {
	attributes := struct {
		program, result, sizeIn, sizeOut uint32
		in, out                          uint64
		repeat, duration                 uint32
		contextIn, contextOut            uint32
		contextInAt, contextOutAt        uint64
		flags, processor, batch, pad     uint32
	}{
		program: uint32(r.program), sizeIn: uint32(len(frame)), in: pointer(unsafe.Pointer(&frame[0])), repeat: uint32(repeat),
	}
	if r.size > 0 {
		attributes.contextIn, attributes.contextInAt = uint32(r.size), pointer(unsafe.Pointer(&r.context))
	}
	_, err = bpf(progTest, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	runtime.KeepAlive(frame)
	return attributes.duration, err
}

func isOffload(err error) bool { return errors.Is(err, ErrOffload) }

// estimateSelf returns how many packets an interval has.
func estimateSelf(i *Interval) (uint64, error) {
	r, err := lda.Estimate(i.Aggregator, i.Aggregator)
	return r.Sent, err
}
