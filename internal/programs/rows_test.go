package programs

import (
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/lda/lost"
)

func TestMissing(t *testing.T) {
	at := time.Date(2024, 1, 2, 3, 4, 5, 6e6, time.UTC).UnixNano()
	d := hoplag.Traffic{Lost: 6, Missing: []lost.Name{
		{ID: 17, Sent: at}, {ID: 0xabc, Packet: 0xabc, Sent: at}, {ID: 18, Sent: at}, {ID: 19, Sent: at}}}
	want := "17 of 03:04:05.006, 0000000000000abc of 03:04:05.006, 18 of 03:04:05.006 and 1 more, 2 not named"
	if got := Missing(&d); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if d.Missing = nil; Missing(&d) != "6 not named" {
		t.Errorf("%q", Missing(&d))
	}
}
