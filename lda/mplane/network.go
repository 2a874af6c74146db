package mplane

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// mostRouters is the largest number of routers in a Network.
const mostRouters = 1 << 20

// A Router is the number of a router in its Network, from 0.
type Router int32

// A link leads from one router to another. Its opposite, if there is one, is a separate link.
type link struct {
	from, to Router
	weight   float64 // the routing cost, more than 0
}

// A Network is a map of routers and weighted links, as in the routers' own link-state protocol. Make one with
// [ReadWeights], or by AddLink from the zero value, which is empty; after that any number of goroutines may read it.
type Network struct {
	names   []string
	numbers map[string]Router
	links   [][]link // by the router that they leave, then by the router that they lead to
	into    [][]link // by the router that they lead to, in any order
}

// addRouter adds a router, if it is new, and returns its number. The error wraps [estimate.ErrConfig].
func (n *Network) addRouter(name string) (Router, error) {
	if r, ok := n.numbers[name]; ok {
		return r, nil
	}
	if name == "" {
		return 0, invalid("router's name", `""`, "at least one character")
	}
	if len(n.names) == mostRouters {
		return 0, invalid("number of routers", mostRouters+1, fmt.Sprintf("at most %d", mostRouters))
	}
	if n.numbers == nil {
		n.numbers = map[string]Router{}
	}
	r := Router(len(n.names))
	n.names = append(n.names, name)
	n.numbers[name] = r
	n.links, n.into = append(n.links, nil), append(n.into, nil)
	return r, nil
}

// AddLink adds a link of a finite weight above 0, and routers that are new. The error wraps [estimate.ErrConfig].
func (n *Network) AddLink(from, to string, weight float64) error {
	if from == to {
		return invalid("link", fmt.Sprintf("from %q to itself", from), "two routers")
	}
	if !(weight > 0) || math.IsInf(weight, 1) {
		return invalid("weight", weight, "a finite number above 0")
	}
	f, err := n.addRouter(from)
	t, err2 := n.addRouter(to)
	if err = cmp.Or(err, err2); err != nil {
		return err
	}
	at, found := n.find(f, t)
	if found {
		return invalid("link", fmt.Sprintf("from %q to %q twice", from, to), "one")
	}
	l := link{f, t, weight}
	n.links[f] = slices.Insert(n.links[f], at, l)
	n.into[t] = append(n.into[t], l)
	return nil
}

// find returns where a link is, or would be, among those of its router.
func (n *Network) find(from, to Router) (int, bool) {
	return slices.BinarySearchFunc(n.links[from], to, func(l link, to Router) int { return cmp.Compare(l.to, to) })
}

func (n *Network) has(r Router) bool { return r >= 0 && int(r) < len(n.names) }

// Routers returns the number of routers.
func (n *Network) Routers() int { return len(n.names) }

// Name returns a router's name, or "" if the network has no such router.
func (n *Network) Name(r Router) string {
	if !n.has(r) {
		return ""
	}
	return n.names[r]
}

// Router returns the router with a name.
func (n *Network) Router(name string) (Router, bool) {
	r, ok := n.numbers[name]
	return r, ok
}

// Weight returns the routing cost of the link between two routers, or 0 if there is none.
func (n *Network) Weight(from, to Router) float64 {
	if n.has(from) {
		if at, found := n.find(from, to); found {
			return n.links[from][at].weight
		}
	}
	return 0
}

// neighbours returns the routers with a link to or from r, in order.
func (n *Network) neighbours(r Router) []Router {
	var all []Router
	for _, l := range slices.Concat(n.links[r], n.into[r]) {
		all = append(all, l.from+l.to-r) // the other end
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// invalid returns the error for a value out of range.
func invalid(field string, got any, want string) error {
	return estimate.Invalid("mplane", field, got, want)
}

// fingerprint returns a digest of the routers' names in order. It distinguishes networks that number routers
// differently. Links do not matter.
func (n *Network) fingerprint() uint64 {
	var b []byte
	for _, name := range n.names {
		b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
		b = append(b, name...)
	}
	return uint64(hashing.Digest(0, b))
}

// ReadWeights reads a map in Rocketfuel's weights.intra format. Each link has a line with the two routers'
// names and the link's weight, separated by white space. A plus in a name stands for a space. ReadWeights skips
// empty lines and those that begin with #. The error wraps [estimate.ErrEncoding] and names the line.
func ReadWeights(r io.Reader) (*Network, error) {
	n := new(Network)
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
