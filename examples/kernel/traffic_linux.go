package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// traffic sends datagrams that carry the time, and remembers when each one
// arrived.
type traffic struct {
	out, in *net.UDPConn

	mutex          sync.Mutex
	sent, received int64
	sum, count     int64 // of the delays since the row before, ns
}

const payload = 972 // 1,000 bytes of IP

func newTraffic(c *cable) (t *traffic, err error) {
	t = new(traffic)
	err = in(c.receiver, func() (err error) {
		t.in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 98, 0, 2), Port: 7000})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := stampReceived(t.in); err != nil {
		t.in.Close()
		return nil, err
	}
	err = in(c.sender, func() (err error) {
		t.out, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(10, 98, 0, 2), Port: 7000})
		return err
	})
	if err != nil {
		t.in.Close()
		return nil, err
	}
	// The first datagram waits for the neighbour's address.
	t.write(make([]byte, payload))
	time.Sleep(100 * time.Millisecond)
	return t, nil
}

func (t *traffic) close() {
	t.out.Close()
	t.in.Close()
}

// stampReceived asks the kernel to say when it received each datagram.
func stampReceived(c *net.UDPConn) error {
	const bufferSize = 8 << 20
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var option error
	err = raw.Control(func(fd uintptr) {
		if option = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, bufferSize); option == nil {
			option = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		}
	})
	if err != nil {
		return err
	}
	return option
}

// send sends bursts of 1 to 63 datagrams at exponential distances.
func (t *traffic) send(ctx context.Context, rate float64) {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	b := make([]byte, payload)
	for next := time.Now(); ctx.Err() == nil; {
		time.Sleep(time.Until(next))
		burst := 1 + random.IntN(63)
		for range burst {
			t.write(b)
		}
		next = next.Add(time.Duration(float64(burst) / rate * random.ExpFloat64() * float64(time.Second)))
	}
}

func (t *traffic) write(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(time.Now().UnixNano()))
	if _, err := t.out.Write(b); err == nil {
		t.mutex.Lock()
		t.sent++
		t.mutex.Unlock()
	}
}

// receive receives until the socket is closed.
func (t *traffic) receive() {
	b, control := make([]byte, payload), make([]byte, 256)
	for {
		n, size, _, _, err := t.in.ReadMsgUDP(b, control)
		if err != nil {
			return
		}
		messages, err := syscall.ParseSocketControlMessage(control[:size])
		if err != nil || len(messages) == 0 || n < 8 || len(messages[0].Data) < int(unsafe.Sizeof(syscall.Timespec{})) {
			continue
		}
		received := (*syscall.Timespec)(unsafe.Pointer(&messages[0].Data[0])).Nano()
		t.mutex.Lock()
		t.received++
		t.count++
		t.sum += received - int64(binary.LittleEndian.Uint64(b))
		t.mutex.Unlock()
	}
}

// row returns the exact mean in microseconds since the row before and, at the
// end, the number of datagrams lost since the beginning.
func (t *traffic) row(last bool) (mean *float64, lost *int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.count > 0 {
		m := float64(t.sum) / float64(t.count) / 1e3
		mean = &m
	}
	t.sum, t.count = 0, 0
	if last {
		l := t.sent - t.received
		lost = &l
	}
	return mean, lost
}
