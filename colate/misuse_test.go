package colate

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A Recorder that New did not make panics, and a Store that is not open is an error.
func TestZeroValues(t *testing.T) {
	ctx, flow := t.Context(), joint.FlowRecord{Flow: 1}
	good, _ := New(testConfig)
	store := openStore(t, newMemory(), StoreOptions{})
	for _, r := range []*Recorder{nil, {}} {
		for name, use := range map[string]func(){
			"Estimate":     func() { Estimate(good, r, flow) },
			"Estimate, up": func() { Estimate(r, good, flow) },
			"Decode":       func() { Decode(ctx, r, good, records(1), joint.Options{}) },
			"Merge":        func() { good.Merge(r) },
			"AppendBinary": func() { r.AppendBinary(nil) },
			"Append":       func() { store.Append(r) },
		} {
			func() {
				defer func() {
					if why := recover(); why == nil {
						t.Errorf("%s of %v does not panic", name, r)
					}
				}()
				use()
			}()
		}
	}
	for _, p := range []Path{{}, {Up: store}, {Down: store}, {Up: store, Down: new(Store)}} {
		_, _, err := p.Estimate(ctx, flow, 0, 1)
		_, _, other := p.Decode(ctx, records(1), 0, 1, joint.Options{})
		if !errors.Is(err, estimate.ErrConfig) || !errors.Is(other, estimate.ErrConfig) {
			t.Errorf("%+v: %v, %v", p, err, other)
		}
	}
	unopened := new(Store)
	if err := unopened.Append(good); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("appending to a store that is not open: %v", err)
	}
	if _, err := unopened.DropBefore(0); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("dropping from a store that is not open: %v", err)
	}
	if unopened.Summary().Epochs != 0 || unopened.Close() != nil {
		t.Error("a store that is not open has epochs, or can't be closed")
	}
	if i := new(Result).MeanInterval(0.95); !math.IsInf(i.High, 1) {
		t.Errorf("no answer has a mean in %v", i)
	}
}
