//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
)

// cells count the packets at a place. There are more than in the library's default, because a host has the room. What a
// burst of losses spoils is proportional to the number of packets that share a cell.
var cells = lda.Config{
	Banks:   [4]lda.Bank{{Rows: 16384}, {Rows: 4096, Shift: 4}, {Rows: 4096, Shift: 8}, {Rows: 4096, Shift: 12}},
	SumBits: 64, DigestBits: 32,
}

// A place is where packets are seen: one direction of an interface.
type place struct {
	namespace string // of iproute2; empty for our own
	device    string
	out       bool
}

// parsePlace reads [NAMESPACE/]INTERFACE[:in|:out].
func parsePlace(s string, out bool) (place, error) {
	p := place{device: s, out: out}
	if name, ok := strings.CutSuffix(p.device, ":in"); ok {
		p.device, p.out = name, false
	} else if name, ok := strings.CutSuffix(p.device, ":out"); ok {
		p.device, p.out = name, true
	}
	if namespace, name, ok := strings.Cut(p.device, "/"); ok {
		p.namespace, p.device = namespace, name
		if namespace == "" || strings.Contains(namespace, "..") {
			return p, errors.New("want NAMESPACE/INTERFACE as ip netns list prints it")
		}
	}
	if p.device == "" || len(p.device) > 15 || strings.ContainsAny(p.device, "/ \t") {
		return p, errors.New("want an interface of 1 to 15 characters, as in eth0, eth0:out or namespace/eth0:in")
	}
	return p, nil
}

// String names the place as parsePlace reads it.
func (p place) String() string {
	s := p.device + ":in"
	if p.out {
		s = p.device + ":out"
	}
	if p.namespace != "" {
		s = p.namespace + "/" + s
	}
	return s
}

// permitted adds to an error which permissions the program needs.
func permitted(err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, kernel.ErrPrivilege) {
		return fmt.Errorf("%w; run it as root", err)
	}
	return err
}

// turned says that packets pass the first place last: on a single clock there is no other explanation.
func turned(from, to place) error {
	return fmt.Errorf("packets pass %v before %v: are the places the wrong way round?", to, from)
}
