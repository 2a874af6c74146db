package figreal

import "github.com/hoplag/hoplag/hashing"

// A Passing is a packet of a pair of captures.
type Passing struct {
	ID      hashing.Packet
	In, Out int64 // ns; Out is 0 if it was lost
	Lost    bool
}

// Reordered returns the packets of the pair whose queue reorders, in the order
// they came. The error wraps fs.ErrNotExist if it does not lie beside the
// project.
func Reordered() ([]Passing, error) {
	c, err := beside("htb2_reorder", "", 0, 0).load()
	if err != nil {
		return nil, err
	}
	all := make([]Passing, len(c.packets))
	for i, p := range c.packets {
		all[i] = Passing{ID: p.id, In: p.in, Out: p.out, Lost: p.lost}
	}
	return all, nil
}
