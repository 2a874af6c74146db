package kernel

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hoplag/hoplag/internal/programs"
)

// ip runs the command ip, or skips the test.
func ip(t testing.TB, arguments string) {
	t.Helper()
	if err := programs.Command("ip " + arguments); err != nil {
		t.Skip(err)
	}
}

// count returns how many packets an interval has, which ends now.
func (p *Point) count(t testing.TB) uint64 {
	t.Helper()
	i, err := p.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	n, _ := estimateSelf(i)
	if err := p.Release(i); err != nil {
		t.Fatal(err)
	}
	return n
}

// The generic hook, which devices without XDP have, comes after segments are merged: a point there would miss
// packets.
func TestXDPIsTheDrivers(t *testing.T) {
	w := newWire(t, "")
	p := newPoint(t, DefaultConfig)
	err := in(w.a, func() error { return p.Attach("lo", XDP) })
	if !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), "use Ingress") {
		t.Errorf("a device without XDP: error %v, want ErrKernel and what to do", err)
	}
	if err := in(w.a, func() error { return p.Attach("eth0", XDP) }); err != nil {
		t.Errorf("a device with XDP: %v", err)
	}
}

// A program that was there before, and passes packets on past all other programs, hides none.
func TestBeforeOthers(t *testing.T) {
	t.Parallel()
	w := newWire(t, "")
	p := newPoint(t, DefaultConfig)
	var a assembler
	a.with(opMove, r0, 0) // TCX_PASS
	a.exit()
	hides := p.loadCode(t, Egress, a.assemble())
	w.attachCode(t, p, hides)
	w.attach(t, p, w.a, Egress)
	if err := w.sendUDP(1, 50); err != nil {
		t.Fatal(err)
	}
	if n := p.count(t); n != 50 {
		t.Errorf("%d packets counted, want 50", n)
	}
}

// An interface that goes away is named at every rotation, until the point is attached to another one of that
// name. What passed before is not lost.
func TestInterfaceGone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tcx", "XDP"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, "")
			p := newPoint(t, DefaultConfig)
			end, hook := w.a, Egress
			if name == "XDP" {
				end, hook = w.b, XDP
			}
			var sink net.PacketConn
			if err := in(w.b, func() (err error) {
				sink, err = net.ListenPacket("udp4", ":6000")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			attach := func() {
				t.Helper()
				if err := in(end, func() error { return p.attach("eth0", hook) }); err != nil {
					t.Fatal(err)
				}
			}
			attach()
			pass := func() { // until all have arrived, behind the point
				t.Helper()
				if err := w.sendUDP(1, 50); err != nil {
					t.Fatal(err)
				}
				sink.SetReadDeadline(time.Now().Add(time.Minute))
				for range 50 {
					if _, _, err := sink.ReadFrom(make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
				}
			}
			pass()
			ip(t, "-n "+w.a+" link del eth0")
			for _, want := range []uint64{50, 0} {
				i, err := p.Rotate()
				if !errors.Is(err, ErrDetached) || i == nil || !strings.Contains(err.Error(), "eth0") {
					t.Fatalf("%+v, error %v, want ErrDetached that names eth0", i, err)
				}
				if n, _ := estimateSelf(i); n != want {
					t.Errorf("%d packets counted before, want %d", n, want)
				}
				p.Release(i)
			}
			w.connect(t)
			attach()
			pass()
			if n := p.count(t); n != 50 {
				t.Errorf("%d packets counted after, want 50", n)
			}
		})
	}
}

// Whoever lacks a capability is told so, and not that the kernel is too old.
func TestPrivilege(t *testing.T) {
	const capNetAdmin, capBPF = 12, 39
	p := newPoint(t, DefaultConfig)
	p.Close()
	for name, keep := range map[string]uint64{"CAP_PERFMON": 1<<capNetAdmin | 1<<capBPF, "all": 0} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			done <- func() error {
				if err := setCapabilities(keep); err != nil {
					return nil
				}
				p, err := New(DefaultConfig)
				if err != nil {
					return err
				}
				defer p.Close()
				return p.Attach("lo", Ingress)
			}()
		}()
		if err := <-done; !errors.Is(err, ErrPrivilege) || !strings.Contains(err.Error(), "CAP_PERFMON") {
			t.Errorf("without %s: error %v, want ErrPrivilege", name, err)
		}
	}
}

// setCapabilities leaves the calling thread nothing but the given ones.
func setCapabilities(keep uint64) error {
	head := struct {
		version uint32
		process int32
	}{version: capabilities}
	low, high := uint32(keep), uint32(keep>>32)
	sets := [2][3]uint32{{low, low}, {high, high}}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&sets)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
