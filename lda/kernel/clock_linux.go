package kernel

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Clocks of the system.
const (
	systemRealtime = 0
	systemBoot     = 7
)

// A clock knows how the stamps of programs differ from the configured clock. The offset of Wall to Boot is
// constant until somebody sets the wall clock, because daemons that discipline a clock change the speed of
// both. So one measurement is enough until another one contradicts it.
type clock struct {
	kind        Clock
	offset      int64
	uncertainty int64
	first, last int64 // when the interval began and ended, since boot
}

// begin reads the clock for the first time.
func (c *clock) begin() error {
	if _, err := now(systemBoot); err != nil {
		return explain("CLOCK_BOOTTIME", err)
	}
	if c.kind == Wall {
		c.offset, c.uncertainty = measureOffset()
	}
	c.cut()
	return nil
}

// cut ends an interval.
func (c *clock) cut() {
	c.first = c.last
	c.last, _ = now(systemBoot)
}

// check returns the offset to add to an interval's stamps, and ErrStep if it changed. A better measurement of
// the same offset is ignored, so that all intervals until a step have the same one.
func (c *clock) check() (offset int64, err error) {
	offset = c.offset
	if c.kind == Wall {
		measured, uncertainty := measureOffset()
		if change := measured - offset; max(change, -change) > c.uncertainty+uncertainty {
			c.offset, c.uncertainty = measured, uncertainty
			err = fmt.Errorf("%w: by %d ns", ErrStep, change)
		}
	}
	return offset, err
}

// measureOffset returns the wall clock's offset to the time since boot, and the error it may have: half of the
// shortest of several times between two readings of the one clock with a reading of the other in between.
func measureOffset() (offset, uncertainty int64) {
	const tries = 16
	uncertainty = 1<<63 - 1
	for range tries {
		before, _ := now(systemBoot)
		wall, _ := now(systemRealtime)
		after, _ := now(systemBoot)
		if half := (after-before)/2 + 1; half < uncertainty {
			offset, uncertainty = wall-(before+after)/2, half
		}
	}
	return offset, uncertainty
}

// now reads a clock of the system.
func now(clock uintptr) (int64, error) {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, errno
	}
	return t.Nano(), nil
}
