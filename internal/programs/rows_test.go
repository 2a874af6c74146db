package programs

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
)

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestRows(t *testing.T) {
	var out bytes.Buffer
	rows := &Rows{W: &out}
	rows.Printf("row\n")
	rows.Object(map[string]int{"A": 1})
	if rows.Err != nil || out.String() != "row\n{\"A\":1}\n" {
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
