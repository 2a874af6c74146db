package mplane

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/estimate"
)

// ReadWeights reads a map in Rocketfuel's weights.intra format. Each link has
// a line with the two routers' names and the link's weight, separated by white
// space. A plus in a name stands for a space. ReadWeights skips empty lines and
// those that begin with #. The error wraps [estimate.ErrEncoding] and names the
// line.
func ReadWeights(r io.Reader) (*Network, error) {
	n := NewNetwork()
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		if err := n.readLink(lines.Text()); err != nil {
			return nil, fmt.Errorf("mplane: %w: line %d: %v", estimate.ErrEncoding, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("mplane: reading weights: %w", err)
	}
	return n, nil
}

// readLink adds the link of a line.
func (n *Network) readLink(line string) error {
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	if len(fields) != 3 {
		return fmt.Errorf("%d fields, want two names and a weight", len(fields))
	}
	weight, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return fmt.Errorf("weight %q is not a number", fields[2])
	}
	return n.AddLink(strings.ReplaceAll(fields[0], "+", " "), strings.ReplaceAll(fields[1], "+", " "), weight)
}
