package traffic

import (
	"math"
	"testing"
)

// The truth about a flow that is large enough is what its packets say.
func TestTruths(t *testing.T) {
	all := []Passage{{Flow: 9, Sent: 10, At: 20}, {Flow: 2, Sent: 1, At: 2}, {Flow: 9, Sent: 20, At: 50}, {Flow: 4, At: 5}, {Flow: 4, At: 5}}
	got := Truths(all, 2)
	if len(got) != 2 || got[0] != (Truth{4, 2, 5, 0}) || got[1].Flow != 9 || got[1].Mean != 20 || math.Abs(got[1].Deviation-10) > 1e-9 {
		t.Errorf("%+v", got)
	}
}
