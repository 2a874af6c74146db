package traffic

import (
	"math"
	"testing"
)

// The truth about a flow is what its packets say, of flows that are large enough.
func TestTruths(t *testing.T) {
	all := []Passage{{Flow: 9, Sent: 10, At: 20}, {Flow: 2, Sent: 1, At: 2}, {Flow: 9, Sent: 20, At: 50}, {Flow: 4, At: 5}, {Flow: 4, At: 5}}
	got := Truths(all, 2)
	if len(got) != 2 || got[0] != (Truth{4, 2, 5, 0}) || got[1].Flow != 9 || got[1].Mean != 20 || math.Abs(got[1].Deviation-10) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

// The same seed makes the same packets, in the order of their sending, and other
// seeds make others.
func TestFlows(t *testing.T) {
	a, b, c := Flows(1, 100), Flows(1, 100), Flows(2, 100)
	for i := range a {
		if a[i] != b[i] || a[i].At <= a[i].Sent || i > 0 && a[i].Sent <= a[i-1].Sent {
			t.Fatalf("packet %d: %+v, %+v", i, a[i], b[i])
		}
	}
	if len(a) < 100 || a[0] == c[0] {
		t.Errorf("%d packets, the first %+v and %+v", len(a), a[0], c[0])
	}
}
