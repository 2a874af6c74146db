package main

import (
	"errors"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// packet is what identifies a frame at both points: an IP packet by what does
// not change in transit, any other frame by all its bytes.
type packet struct {
	frame hashing.Frame
	other []byte // the frame, if it carries no IP packet or a broken one
	noIP  bool   // it carries none, whole or broken
	cut   bool   // the capture ends within the bytes that distinguish IP packets
}

// parse sets p to the record's packet, valid as long as the record. The only
// error is an unknown link type.
func (p *packet) parse(rec trace.Record) error {
	err := p.frame.Parse(rec.Link, rec.Frame)
	if errors.Is(err, hashing.ErrLink) {
		return err
	}
	p.other = nil
	if err != nil {
		p.other = rec.Frame
	}
	p.noIP = errors.Is(err, hashing.ErrNotIP)
	p.cut = p.frame.Cut || errors.Is(err, hashing.ErrTruncated)
	return nil
}

func (p *packet) isIP() bool { return p.other == nil }

func (p *packet) digest(seed uint64) hashing.Packet {
	if p.isIP() {
		return p.frame.Digest(seed)
	}
	return hashing.Digest(seed, p.other)
}
