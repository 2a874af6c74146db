package hoplag

import (
	"crypto/aes"
	"crypto/cipher"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda/lost"
)

const mostMissing = 4096 // messages that a report names

// cipher encrypts and decrypts names by a key of their own, so that nobody else learns an id (SPEC.md, section 4.10).
func (s *sealer) cipher() cipher.AEAD {
	return must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(s.config.derive("names")))))
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
	return p.seal.cipher().Seal(nil, nil, names.Append(nil, trails), nil), nil
}

// names decrypts what which returned.
func (s *sealer) names(data []byte, trails []areas.Trail, d *Direction) (lost.Names, error) {
	names, err := s.cipher().Open(nil, nil, data, nil)
	if err != nil {
		return lost.Names{}, err
	}
	return lost.DecodeNames(names, trails, d.hash.number)
}
