package trace

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// unzip decompresses gzip streams, one after another. If something else
// follows them, the error says so after everything before it has been read.
type unzip struct {
	raw *bufio.Reader
	z   *gzip.Reader
}

func newUnzip(raw *bufio.Reader) (*unzip, error) {
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &unzip{raw, z}, nil
}

// Read continues with the next stream when one ends.
func (u *unzip) Read(p []byte) (int, error) {
	for {
		n, err := u.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		magic, err := u.raw.Peek(2)
		if err == io.EOF && len(magic) == 0 {
			return 0, io.EOF
		}
		if string(magic) != "\x1f\x8b" {
			return 0, fmt.Errorf("%w: the compressed data have ended, and what follows them is no gzip", ErrFormat)
		}
		if err := u.z.Reset(u.raw); err != nil {
			return 0, early(err)
		}
		u.z.Multistream(false)
	}
}
