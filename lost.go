package hoplag

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda/lost"
)

const mostMissing = 4096 // messages that a report names

// crypt encrypts names, or decrypts them, with AES-256 in counter mode, by a key of their own, so that nobody
// else learns an id (SPEC.md, section 4.10).
func (s *sealer) crypt(data, counter []byte) {
	cipher.NewCTR(must(aes.NewCipher(s.config.derive("names"))), counter).XORKeyStream(data, data)
}

// which returns the names, encrypted, of what is missing of the messages that the point sent.
func (p *Point) which(question []byte) ([]byte, error) {
	trails, err := lost.DecodeTrails(question, int64(p.config.Cut))
	if err != nil {
		return nil, err
	}
	names, err := p.Direction.find(trails)
	if err != nil {
		return nil, err
	}
	data := make([]byte, aes.BlockSize)
	rand.Read(data) // never fails
	data = names.Append(data, trails)
	p.seal.crypt(data[aes.BlockSize:], data[:aes.BlockSize])
	return data, nil
}

// names decrypts what which returned.
func (s *sealer) names(data []byte, trails []areas.Trail, d *Direction) (lost.Names, error) {
	if len(data) < aes.BlockSize {
		return lost.Names{}, fmt.Errorf("hoplag: %w: %d bytes of names", estimate.ErrEncoding, len(data))
	}
	names := slices.Clone(data[aes.BlockSize:])
	s.crypt(names, data[:aes.BlockSize])
	return lost.DecodeNames(names, trails, d.hash.number)
}
