package figreal

import "testing"

func TestCapture(t *testing.T) {
	t.Chdir("../..")
	if c := load(); len(c.packets) != 7830 || len(c.leaving) != 7830-370 {
		t.Errorf("%d packets, of which %d left, want 7830 and 370 fewer", len(c.packets), len(c.leaving))
	}
}
