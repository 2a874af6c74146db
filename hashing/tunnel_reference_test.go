package hashing_test

import (
	"github.com/hoplag/hoplag/hashing"
)

var errNone = hashing.ErrNotIP

// slowInner parses what a tunnel's packet carries.
func slowInner(f slowFrame) (slowFrame, error) {
	b := f.payload
	if f.fragment {
		return slowFrame{}, errNone
	}
	switch f.tuple.Proto {
	case 4:
		return slowIP(b, 4)
	case 41:
		return slowIP(b, 6)
	case 137:
		return slowMPLS(b)
	case 47:
		return slowGRE(b)
	case 97:
		return slowAfter(b, 2, func() (slowFrame, error) {
			if b[0] != 0x30 {
				return slowFrame{}, errNone
			}
			return slowOuter(hashing.LinkEthernet, b[2:])
		})
	case 17:
		tunnels := map[uint16]func([]byte) (slowFrame, error){
			4789: slowVXLAN, 8472: slowVXLAN, 4790: slowVXLANGPE, 6081: slowGeneve, 2152: slowGTP, 6635: slowMPLS,
		}
		if next := tunnels[f.tuple.DstPort]; next != nil {
			return slowAfter(b, 12, func() (slowFrame, error) { return next(b[8:]) })
		}
	}
	return slowFrame{}, errNone
}

func slowVXLAN(b []byte) (slowFrame, error) {
	return slowAfter(b, 8, func() (slowFrame, error) {
		if b[0]>>3&1 == 0 {
			return slowFrame{}, errNone
		}
		return slowOuter(hashing.LinkEthernet, b[8:])
	})
}

func slowVXLANGPE(b []byte) (slowFrame, error) {
	return slowAfter(b, 8, func() (slowFrame, error) {
		switch {
		case b[0]>>3&1 == 0:
			return slowFrame{}, errNone
		case b[0]>>2&1 == 0:
			return slowVXLAN(b)
		}
		return slowService(int(b[3]), b[8:])
	})
}

func slowService(next int, b []byte) (slowFrame, error) {
	switch next {
	case 1:
		return slowIP(b, 4)
	case 2:
		return slowIP(b, 6)
	case 3:
		return slowOuter(hashing.LinkEthernet, b)
	case 4:
		return slowNSH(b)
	case 5:
		return slowMPLS(b)
	}
	return slowFrame{}, errNone
}

func slowNSH(b []byte) (slowFrame, error) {
	return slowAfter(b, 8, func() (slowFrame, error) {
		words := int(b[1] % 64)
		if words < 2 {
			return slowFrame{}, hashing.ErrMalformed
		}
		return slowAfter(b, 4*words, func() (slowFrame, error) {
			if b[3] == 4 {
				return slowFrame{}, errNone
			}
			return slowService(int(b[3]), b[4*words:])
		})
	})
}

func slowGeneve(b []byte) (slowFrame, error) {
	return slowAfter(b, 8, func() (slowFrame, error) {
		if b[0] >= 64 {
			return slowFrame{}, errNone
		}
		size := 8 + 4*int(b[0]%64)
		return slowAfter(b, size, func() (slowFrame, error) { return slowBridged(number(b[2:4]), b[size:]) })
	})
}

func slowBridged(etherType int, b []byte) (slowFrame, error) {
	if etherType == 0x6558 {
		return slowOuter(hashing.LinkEthernet, b)
	}
	return slowEther(etherType, b)
}

func slowGTP(b []byte) (slowFrame, error) {
	return slowAfter(b, 8, func() (slowFrame, error) {
		if b[0]>>5 != 1 || b[0]>>4&1 != 1 || b[1] != 255 {
			return slowFrame{}, errNone
		}
		if b[0]%8 == 0 {
			return slowIP(b[8:], 0)
		}
		return slowAfter(b, 12, func() (slowFrame, error) {
			if b[0]>>2&1 == 0 {
				return slowIP(b[12:], 0)
			}
			return slowExtensions(b[11], b[12:])
		})
	})
}

func slowExtensions(kind byte, b []byte) (slowFrame, error) {
	if kind == 0 {
		return slowIP(b, 0)
	}
	return slowAfter(b, 1, func() (slowFrame, error) {
		size := 4 * int(b[0])
		if size == 0 {
			return slowFrame{}, hashing.ErrMalformed
		}
		return slowAfter(b, size, func() (slowFrame, error) { return slowExtensions(b[size-1], b[size:]) })
	})
}

func slowGRE(b []byte) (slowFrame, error) {
	return slowAfter(b, 4, func() (slowFrame, error) {
		has := func(bit int) int { return int(number(b[0:2]) >> (15 - bit) & 1) }
		version, etherType := int(b[1]%8), number(b[2:4])
		ppp := version == 1 && etherType == 0x880b
		if has(1) == 1 || version != 0 && !ppp {
			return slowFrame{}, errNone
		}
		size := 4 + 4*has(0) + 4*has(2) + 4*has(3)
		if ppp {
			size += 4 * has(8)
		}
		if etherType == 0x88be && has(3) == 1 {
			size += 8
		}
		if etherType == 0x22eb {
			size += 12
			if len(b) >= size && b[size-1]%2 == 1 {
				size += 8
			}
		}
		return slowAfter(b, size, func() (slowFrame, error) {
			switch etherType {
			case 0x88be, 0x22eb:
				return slowOuter(hashing.LinkEthernet, b[size:])
			case 0x880b:
				return slowPPP(b[size:])
			}
			return slowBridged(etherType, b[size:])
		})
	})
}

func slowPPP(b []byte) (slowFrame, error) {
	return slowAfter(b, 1, func() (slowFrame, error) {
		size := 2 - int(b[0]%2)
		return slowAfter(b, size, func() (slowFrame, error) {
			switch number(b[:size]) {
			case 0x21:
				return slowIP(b[size:], 4)
			case 0x57:
				return slowIP(b[size:], 6)
			case 0x281, 0x283:
				return slowMPLS(b[size:])
			}
			return slowFrame{}, errNone
		})
	})
}

// slowRare parses the link types that few captures have.
func slowRare(link hashing.Link, b []byte) (slowFrame, error) {
	skip := func(size int, next func([]byte) (slowFrame, error)) (slowFrame, error) {
		return slowAfter(b, size, func() (slowFrame, error) { return next(b[size:]) })
	}
	ether := func(b []byte) (slowFrame, error) {
		return slowAfter(b, 2, func() (slowFrame, error) { return slowEther(number(b[:2]), b[2:]) })
	}
	switch link {
	case 9, 50:
		return slowSerial(b)
	case 51:
		return slowEther(0x8864, b)
	case 104:
		return skip(2, ether)
	case 204:
		return skip(1, slowSerial)
	case 205:
		return skip(3, ether)
	case 242:
		return slowAfter(b, 44, func() (slowFrame, error) { return slowEther(number(b[40:42]), b[44:]) })
	case 281, 282, 284:
		return skip(16, ether)
	case 285:
		return skip(20, ether)
	}
	return slowFrame{}, hashing.ErrLink
}

func slowSerial(b []byte) (slowFrame, error) {
	return slowAfter(b, 2, func() (slowFrame, error) {
		switch {
		case b[0] == 255 && b[1] == 3:
			return slowPPP(b[2:])
		case b[0]&0x7f == 0x0f:
			return slowAfter(b, 4, func() (slowFrame, error) { return slowEther(number(b[2:4]), b[4:]) })
		}
		return slowPPP(b)
	})
}
