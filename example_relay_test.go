package hoplag_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hoplag/hoplag"
)

// A relay of datagrams with a goroutine for each sender, and the receiver
// behind it: the relay is the first point, and answers over UDP, too. A
// datagram is its own id.
func Example_udpRelay() {
	relay, _ := hoplag.NewPoint(fast)
	sink, _ := hoplag.NewPoint(fast)
	defer relay.Close()
	defer sink.Close()

	receiver, reports := socket(), socket()
	go relay.ServePacket(reports)
	go func() {
		for datagram := range datagrams(receiver) {
			sink.Passed(datagram)
		}
	}()
	for sender := range 200 {
		go func() {
			for datagram := range traffic(sender) {
				relay.Passed(datagram)
				receiver.WriteTo(datagram, receiver.LocalAddr())
			}
		}()
	}

	for r := range sink.FollowOver(context.Background(), hoplag.Dial("udp", reports.LocalAddr().String())) {
		if r.Forth.Err == nil {
			p99, _ := r.Forth.Quantile(0.99)
			fmt.Println("within a second:", r.Forth.MeanDuration() < time.Second, p99 < time.Second)
			break
		}
	}
	// Output: within a second: true true
}

// What follows is not about measuring.

func socket() net.PacketConn {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return conn
}

// traffic yields a sender's datagrams: who sends, and a number.
func traffic(sender int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		b := binary.BigEndian.AppendUint32(nil, uint32(sender))
		for i := range uint32(100) {
			if !yield(binary.BigEndian.AppendUint32(b, i)) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// datagrams yields what a socket receives.
func datagrams(conn net.PacketConn) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var b [1500]byte
		for {
			n, _, err := conn.ReadFrom(b[:])
			if err != nil || !yield(b[:n]) {
				return
			}
		}
	}
}

// talk sends bytes to an echo service, and returns what comes back.
func talk(address string) io.Reader {
	conn := dial(address)
	go func() {
		for range 500 {
			conn.Write(make([]byte, 1500))
			time.Sleep(5 * time.Millisecond)
		}
		conn.Close()
	}()
	return conn
}
