package hoplag

import (
	"encoding/json"
	"strings"

	"github.com/hoplag/hoplag/estimate"
)

// MarshalJSON encodes the whole report. Durations and delays are in
// nanoseconds, and errors are text.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	return json.Marshal(struct {
		plain
		Err string `json:",omitempty"`
	}{plain(r), text(r.Err)})
}

// UnmarshalJSON decodes what MarshalJSON encoded. Errors keep their text, and
// [errors.Is] recognizes those of this package.
func (r *Report) UnmarshalJSON(data []byte) error {
	type plain Report
	var j struct {
		plain
		Err string
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*r = Report(j.plain)
	r.Err = known(j.Err)
	return nil
}

// MarshalJSON encodes the whole delay, with its error as text.
func (d Delay) MarshalJSON() ([]byte, error) {
	type plain Delay
	return json.Marshal(struct {
		plain
		Err string `json:",omitempty"`
	}{plain(d), text(d.Err)})
}

// UnmarshalJSON decodes what MarshalJSON encoded.
func (d *Delay) UnmarshalJSON(data []byte) error {
	type plain Delay
	var j struct {
		plain
		Err string
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*d = Delay(j.plain)
	d.Err = known(j.Err)
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A told is an error that was received as text.
type told struct {
	text string
	is   []error
}

func (t *told) Error() string   { return t.text }
func (t *told) Unwrap() []error { return t.is }

// known returns an error with a text, or nil if there is none.
func known(text string) error {
	if text == "" {
		return nil
	}
	t := &told{text: text}
	for _, err := range []error{ErrIdle, ErrSilent, ErrForged, estimate.ErrNoSamples, estimate.ErrMismatch, estimate.ErrEncoding} {
		if strings.Contains(text, err.Error()) {
			t.is = append(t.is, err)
		}
	}
	return t
}
