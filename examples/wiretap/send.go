package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// A sender sends numbered datagrams of a few flows.
type sender struct {
	batch  *batch
	drain  *net.UDPConn
	number uint64
}

const (
	senderFlows = 8
	sinkPort    = 7000
	firstPort   = 7001 // of the flows
	maxBurst    = 63
	payloadAt   = 14 + 20 + 8 // behind Ethernet, IPv4 and UDP
	frameSize   = 14 + 200
)

func newSender(n *lab) (s *sender, err error) {
	s = new(sender)
	err = in(n.receiver, func() (err error) {
		s.drain, err = net.ListenUDP("udp4", &net.UDPAddr{IP: receiverAddress, Port: sinkPort})
		return err
	})
	var router net.HardwareAddr
	err = errors.Join(err, in(n.router, func() error {
		nic, err := net.InterfaceByName("in")
		if err == nil {
			router = nic.HardwareAddr
		}
		return err
	}))
	err = errors.Join(err, in(n.sender, func() (err error) {
		s.batch, err = newBatch("eth0")
		return err
	}))
	if err != nil {
		s.close()
		return nil, err
	}
	for i := range s.batch.frames {
		fill(&s.batch.frames[i], router)
	}
	// The first one makes the neighbours known to each other, before anybody
	// watches.
	err = s.burst(1, rand.New(rand.NewPCG(0, 0)))
	time.Sleep(200 * time.Millisecond)
	return s, err
}

var (
	senderAddress   = net.IPv4(10, 97, 1, 1).To4()
	receiverAddress = net.IPv4(10, 97, 2, 1).To4()
)

// fill prepares a frame to the receiver by way of a router. The frame lacks a
// number and the ports, and has no UDP checksum, which IPv4 does not require.
func fill(frame *[frameSize]byte, router net.HardwareAddr) {
	copy(frame[:], router)
	copy(frame[6:], []byte{2, 0, 0, 0, 0, 1, 8, 0}) // from whomever; IPv4
	ip := frame[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 17 // no options; hops; UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], senderAddress)
	copy(ip[16:], receiverAddress)
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum>>16+sum))
	binary.BigEndian.PutUint16(ip[22:], sinkPort)
	binary.BigEndian.PutUint16(ip[24:], uint16(len(ip)-20))
}

func (s *sender) close() {
	if s.batch != nil {
		s.batch.close()
	}
	if s.drain != nil {
		s.drain.Close()
	}
}

// send sends bursts of 1 to 63 datagrams at exponential distances. Nobody
// reads them, so it does not matter that they are dropped at the end.
func (s *sender) send(ctx context.Context, rate float64) error {
	const behind = 100 * time.Millisecond // do not make up for what a busy machine delayed by more than this
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for next := time.Now(); ctx.Err() == nil; {
		time.Sleep(time.Until(next))
		n := 1 + random.IntN(maxBurst)
		if err := s.burst(n, random); err != nil {
			return err
		}
		next = next.Add(time.Duration(float64(n) / rate * random.ExpFloat64() * float64(time.Second)))
		if least := time.Now().Add(-behind); next.Before(least) {
			next = least
		}
	}
	return nil
}

// burst sends the next datagrams, of random flows; the first flows get the
// most.
func (s *sender) burst(n int, random *rand.Rand) error {
	for i := range n {
		frame := &s.batch.frames[i]
		flow := min(random.IntN(senderFlows), random.IntN(senderFlows))
		binary.BigEndian.PutUint16(frame[payloadAt-8:], uint16(firstPort+flow))
		binary.BigEndian.PutUint64(frame[payloadAt:], s.number)
		s.number++
	}
	return s.batch.send(n)
}
