package queue

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func TestRefused(t *testing.T) {
	link := must(NewLink(LinkConfig{Rate: 1e9}))(t)
	link.Send(100, 1000)
	want := link.Backlog(100)
	for _, c := range []struct {
		t     int64
		bytes int
	}{{99, 40}, {200, 0}, {200, -1}} {
		if at, fate := link.Send(c.t, c.bytes); fate != Refused || at != c.t {
			t.Errorf("Send(%d, %d) = %d, %v", c.t, c.bytes, at, fate)
		}
	}
	if got := link.Backlog(100); got != want {
		t.Errorf("backlog %d, want %d", got, want)
	}
}

// A Link that NewLink did not make panics instead of dropping everything.
func TestZeroLinkPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the zero Link takes packets")
		}
	}()
	new(Link).Send(1, 1)
}

func TestConfigErrors(t *testing.T) {
	red := lossyLink.Queue.RED
	bad := func(change func(*LinkConfig)) LinkConfig {
		c := lossyLink
		change(&c)
		return c
	}
	for name, c := range map[string]LinkConfig{
		"rate 0":        bad(func(c *LinkConfig) { c.Rate = 999 }),
		"rate":          bad(func(c *LinkConfig) { c.Rate = 1e15 + 1 }),
		"negative":      bad(func(c *LinkConfig) { c.Queue.Packets = -1 }),
		"thresholds":    bad(func(c *LinkConfig) { c.Queue.RED.Max = red.Min }),
		"threshold NaN": bad(func(c *LinkConfig) { c.Queue.RED.Min = math.NaN() }),
		"weight 0":      bad(func(c *LinkConfig) { c.Queue.RED.Weight = 0 }),
		"weight":        bad(func(c *LinkConfig) { c.Queue.RED.Weight = 1.5 }),
		"probability":   bad(func(c *LinkConfig) { c.Queue.RED.Probability = 2 }),
		"typical":       bad(func(c *LinkConfig) { c.Queue.RED.Typical = 0 }),
	} {
		if _, err := NewLink(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"loss":        loss(LossConfig{Probability: 1.1}),
		"loss NaN":    loss(LossConfig{Probability: math.NaN()}),
		"loss burst":  loss(LossConfig{Probability: 0.5, Burst: -1}),
		"burst 0.5":   loss(LossConfig{Probability: 0.5, Burst: 0.5}),
		"burst short": loss(LossConfig{Probability: 0.9, Burst: 2}),
	} {
		if !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func loss(c LossConfig) error { return second(NewLoss(c, 0)) }

func second[T any](_ T, err error) error { return err }
