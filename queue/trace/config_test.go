package trace

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func TestSourceConfigErrors(t *testing.T) {
	poisson := func(change func(*PoissonConfig)) error {
		c := poissonOf(0.5, 1)
		change(&c)
		_, err := NewPoisson(c)
		return err
	}
	onoff := func(change func(*OnOffConfig)) error {
		c := onOffOf(0.5, 1)
		change(&c)
		_, err := NewOnOff(c)
		return err
	}
	flows := func(change func(*FlowsConfig)) error {
		c := flowsOf(0.5, 1)
		change(&c)
		_, err := NewFlows(c)
		return err
	}
	for name, err := range map[string]error{
		"rate":        poisson(func(c *PoissonConfig) { c.Load.Rate = 0 }),
		"utilisation": poisson(func(c *PoissonConfig) { c.Load.Utilisation = 0 }),
		"NaN":         poisson(func(c *PoissonConfig) { c.Load.Utilisation = math.NaN() }),
		"no load":     poisson(func(c *PoissonConfig) { c.Load.Utilisation = 1e-300 }),
		"weights":     poisson(func(c *PoissonConfig) { c.Sizes[0].Weight = 1e305 }),
		"no sizes":    poisson(func(c *PoissonConfig) { c.Sizes = Mix{} }),
		"size 0":      poisson(func(c *PoissonConfig) { c.Sizes = Mix{{0, 1}} }),
		"size":        poisson(func(c *PoissonConfig) { c.Sizes = Mix{{65536, 1}} }),
		"weight":      poisson(func(c *PoissonConfig) { c.Sizes[0].Weight = -1 }),
		"flows":       poisson(func(c *PoissonConfig) { c.Flows = 0 }),
		"onoff rate":  onoff(func(c *OnOffConfig) { c.Load.Rate = -1 }),
		"onoff sizes": onoff(func(c *OnOffConfig) { c.Sizes = Mix{} }),
		"senders":     onoff(func(c *OnOffConfig) { c.Senders = 0 }),
		"peak":        onoff(func(c *OnOffConfig) { c.Peak = 0 }),
		"on":          onoff(func(c *OnOffConfig) { c.On = 0 }),
		"short on":    onoff(func(c *OnOffConfig) { c.On = 1e-9 }),
		"long off":    onoff(func(c *OnOffConfig) { c.Load.Rate, c.Load.Utilisation, c.Peak, c.On = 1, 0.01, 1e15, 1e6 }),
		"on shape":    onoff(func(c *OnOffConfig) { c.OnShape = 1 }),
		"off shape":   onoff(func(c *OnOffConfig) { c.OffShape = math.NaN() }),
		"too few":     onoff(func(c *OnOffConfig) { c.Senders = 5 }),
		"flows rate":  flows(func(c *FlowsConfig) { c.Load.Rate = 0 }),
		"flows sizes": flows(func(c *FlowsConfig) { c.Sizes = Mix{} }),
		"flows load":  flows(func(c *FlowsConfig) { c.Load.Rate, c.Load.Utilisation, c.Least, c.Most = 1, 0.01, 1<<20, 1<<20 }),
		"flows shape": flows(func(c *FlowsConfig) { c.Shape = 0 }),
		"least":       flows(func(c *FlowsConfig) { c.Least = 0 }),
		"most":        flows(func(c *FlowsConfig) { c.Most = 1 }),
		"RTT":         flows(func(c *FlowsConfig) { c.RTT = 0 }),
		"access":      flows(func(c *FlowsConfig) { c.Access = 0 }),
		"window":      flows(func(c *FlowsConfig) { c.Window = 0 }),
		"backoff":     flows(func(c *FlowsConfig) { c.Backoff = -0.1 }),
		"warm-up":     flows(func(c *FlowsConfig) { c.Warmup = -1 }),
	} {
		if !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
