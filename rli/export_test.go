package rli

// Trusted reports whether packets are estimated within busy periods at present.
func (r *Receiver) Trusted() bool { return r.bridging() }
