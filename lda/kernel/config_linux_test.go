package kernel_test

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda/kernel"
)

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(*kernel.Config){
		"rows":     func(c *kernel.Config) { c.LDA.Banks[0].Rows = 3 },
		"identity": func(c *kernel.Config) { c.LDA.Identity = 1 },
		"clock":    func(c *kernel.Config) { c.Clock = 200 },
		"memory":   func(c *kernel.Config) { c.LDA.Banks[0].Rows = 1 << 24 },
	} {
		config := kernel.DefaultConfig
		spoil(&config)
		if err := config.Validate(); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: error %v, want ErrConfig", name, err)
		}
		if _, err := kernel.New(config); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: New's error %v, want ErrConfig", name, err)
		}
	}
	config := kernel.DefaultConfig
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

// A packet is the same whatever its transport checksum, and another if any other byte of it changes; fragments
// have no checksum.
func TestDigestLeavesOutChecksums(t *testing.T) {
	frame := make([]byte, 20+24)
	frame[0], frame[3] = 0x45, byte(len(frame))
	digest := func() hashing.Packet {
		var f hashing.Frame
		if err := f.ParseWith(hashing.LinkRaw, frame, &hashing.Tunnels{}); err != nil {
			t.Fatal(err)
		}
		return kernel.Digest(7, &f)
	}
	for proto, checksum := range map[byte][2]int{6: {16, 18}, 17: {6, 8}, 136: {6, 8}, 132: {8, 12}, 1: {0, 0}} {
		for _, offset := range []byte{0, 5} { // of a fragment
			frame[9], frame[7] = proto, offset
			before := digest()
			for i := range 24 {
				frame[20+i] ^= 0x40
				same := offset == 0 && i >= checksum[0] && i < checksum[1]
				if (digest() == before) != same {
					t.Errorf("protocol %d, fragment %d, byte %d: same packet %v, want %v", proto, offset, i, !same, same)
				}
				frame[20+i] ^= 0x40
			}
		}
	}
	if kernel.Fingerprint(7) == kernel.Fingerprint(8) ||
		kernel.Fingerprint(7) == (hashing.Tunnels{}).Identity(hashing.Fingerprint(7)) {
		t.Error("fingerprints do not tell identities apart")
	}
}
