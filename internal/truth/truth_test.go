package truth

import "testing"

// Three packets, counted by hand.
func TestBetween(t *testing.T) {
	packets := []Packet{
		{Sent: 5, Received: 15, Flow: 1}, // crosses the window's beginning
		{Sent: 12, Received: 14, Flow: 2},
		{Sent: 13, Lost: true, Flow: 2},
		{Sent: 18, Received: 30, Flow: 1}, // crosses its end
		{Sent: 1, Received: 40, Flow: 3},  // is on its way throughout
	}
	want := map[uint64]Window{
		1: {Sent: 1, Received: 1, Way: 5 + 2, Delays: 10},
		2: {Sent: 2, Received: 1, Lost: 1, Way: 2, Delays: 2},
		3: {Way: 10},
	}
	got := Between(packets, 10, 20, ByFlow)
	for flow, w := range want {
		if got[flow] != w {
			t.Errorf("flow %d: %+v, want %+v", flow, got[flow], w)
		}
	}
	all := Of(packets, 10, 20)
	if want := (Window{Sent: 3, Received: 2, Lost: 1, Way: 19, Delays: 12}); all != want || all.PerPacket() != 9.5 || all.MeanDelay() != 6 {
		t.Errorf("%+v, want %+v", all, want)
	}
}
