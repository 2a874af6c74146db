package lda

import "github.com/hoplag/hoplag/hashing"

// A Classifier sorts packets into classes by their headers, as a switch does
// (section V): the class of a packet is the index of the first rule that it
// matches. For [Classes.Update]:
//
//	classes.Update(classifier.Class(&tuple), packet, now)
type Classifier []Rule

// A Rule matches the tuples that equal Value in the bits set in Mask. The zero
// Rule matches all tuples.
type Rule struct {
	Value, Mask hashing.Tuple
}

// Class returns the index of the first rule that the tuple matches. If there is
// none, it returns the number of rules: the class of all other packets.
func (c Classifier) Class(t *hashing.Tuple) int {
	for i := range c {
		if c[i].matches(t) {
			return i
		}
	}
	return len(c)
}

// matches reports whether the tuple matches the rule.
func (r *Rule) matches(t *hashing.Tuple) bool {
	v, m := &r.Value, &r.Mask
	different := (t.Proto^v.Proto)&m.Proto | uint8((t.SrcPort^v.SrcPort)&m.SrcPort>>8) | uint8((t.SrcPort^v.SrcPort)&m.SrcPort) |
		uint8((t.DstPort^v.DstPort)&m.DstPort>>8) | uint8((t.DstPort^v.DstPort)&m.DstPort)
	for i := range t.Src {
		different |= (t.Src[i]^v.Src[i])&m.Src[i] | (t.Dst[i]^v.Dst[i])&m.Dst[i]
	}
	return different == 0
}
