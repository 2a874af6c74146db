package programs

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
)

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestRows(t *testing.T) {
	var out bytes.Buffer
	rows := &Rows{W: &out}
	for range headingEvery + 1 {
		rows.Heading("heading")
		rows.Printf("row\n")
	}
	rows.Object(map[string]int{"A": 1})
	if rows.Err != nil || strings.Count(out.String(), "heading\nrow\n") != 2 || !strings.HasSuffix(out.String(), "{\"A\":1}\n") {
		t.Errorf("%v\n%s", rows.Err, &out)
	}
	rows.W = full{}
	rows.Printf("lost")
	if rows.W = &out; !errors.Is(rows.Err, io.ErrShortWrite) {
		t.Errorf("a full disk: %v", rows.Err)
	}
	before := out.Len()
	if rows.Object(1); out.Len() != before {
		t.Error("it prints after an error")
	}
}

func TestFormats(t *testing.T) {
	r := pageReport(1, "")
	for _, c := range []struct {
		d    hoplag.Delay
		want string
	}{
		{r.Forth, "25.00 ms|24.00 ms – 26.00 ms|31.00 ms"},
		{hoplag.Delay{Err: hoplag.ErrIdle}, "idle||"}, {hoplag.Delay{Err: io.EOF}, "unknown||"},
	} {
		mean, within, p99 := Columns(&c.d)
		if got := mean + "|" + within + "|" + p99; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{Off(99.9999999, 100), "0.00 %"}, {Off(90, 100), "-10.00 %"}, {Off(1, 0), ""}, {Off(0, 0), ""},
		{Thousands(-1234567), "-1,234,567"}, {Thousands(uint64(999)), "999"}, {Thousands(int64(1000)), "1,000"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if Finite(math.NaN()) != nil || Finite(math.Inf(-1)) != nil || *Finite(2) != 2 {
		t.Error("Finite")
	}
}

func TestMissing(t *testing.T) {
	at := time.Date(2024, 1, 2, 3, 4, 5, 6e6, time.UTC)
	d := hoplag.Delay{Unnamed: 2, Missing: []hoplag.Missing{
		{ID: 17, Number: true, Sent: at}, {ID: 0xabc, Sent: at}, {ID: 18, Number: true, Sent: at}, {ID: 19, Number: true, Sent: at}}}
	want := "17 of 03:04:05.006, 0000000000000abc of 03:04:05.006, 18 of 03:04:05.006 and 1 more, 2 not named"
	if got := Missing(&d); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.Missing = nil
	if got := Missing(&d); got != "2 not named" {
		t.Errorf("%q", got)
	}
}
