package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// The mean is the sum over the distribution, written out from its definition.
func TestPacketCount(t *testing.T) {
	heavy(t)
	for _, c := range []struct {
		least, most int
		shape       float64
	}{{1, 1, 1.2}, {1, 3, 1.2}, {2, 1000, 1.1}, {10, 5000, 0.7}, {3, 400, 3}} {
		count := newPacketCount(c.least, c.most, c.shape)
		above := func(x int) float64 { return math.Pow(float64(x)/float64(c.least), -c.shape) }
		mean, square := 0.0, 0.0
		for n := c.least; n <= c.most; n++ {
			p := (above(n) - above(n+1)) / (1 - above(c.most+1))
			mean += p * float64(n)
			square += p * float64(n) * float64(n)
		}
		if got := count.mean(); math.Abs(got-mean) > 1e-9*mean {
			t.Errorf("%+v: mean %v, want %v", c, got, mean)
		}
		const draws = 100_000
		within := limit*math.Sqrt(max(square-mean*mean, 0)/draws) + 1e-9
		drawn := func(count packetCount) float64 {
			random := generator(1, 0)
			sum := 0.0
			for range draws {
				n := int(count.draw(random))
				if n < c.least || n > c.most {
					t.Fatalf("%+v: a flow of %d packets", c, n)
				}
				sum += float64(n)
			}
			return sum / draws
		}
		if got := drawn(count); math.Abs(got-mean) > within {
			t.Errorf("%+v: %v packets on average, want %v ± %v", c, got, mean, within)
		}
		if c.least == c.most {
			continue
		}
		if got := drawn(newPacketCount(c.least, c.most, 1.2*c.shape)); math.Abs(got-mean) <= within {
			t.Errorf("negative control: %+v passes with a larger shape, %v packets, want %v ± %v", c, got, mean, within)
		}
	}
}

// rounds splits each flow's packets into rounds, at gaps of a quarter of the mean round-trip time or more, and
// returns their sizes and when they begin.
func rounds(c FlowsConfig, t *testing.T) (sizes [][]int, begins [][]int64) {
	source := must(NewFlows(c))(t)
	index := map[hashing.Flow]int{}
	var last []int64
	var p queue.Packet
	for range 20_000 {
		source.Next(&p)
		i, ok := index[p.Flow]
		if !ok {
			i = len(sizes)
			index[p.Flow] = i
			sizes, begins, last = append(sizes, nil), append(begins, nil), append(last, math.MinInt64/2)
		}
		if p.Time-last[i] > int64(c.RTT/4) {
			sizes[i], begins[i] = append(sizes[i], 0), append(begins[i], p.Time)
		}
		sizes[i][len(sizes[i])-1]++
		last[i] = p.Time
	}
	return sizes, begins
}

func TestWindows(t *testing.T) {
	c := FlowsConfig{
		Load: Load{10e9, 0.05}, Sizes: Mix{{1000, 1}}, Shape: 1.1, Least: 20, Most: 500,
		RTT: 10e6, Access: 10e9, Window: 32, Seed: 1,
	}
	for _, backoff := range []float64{0, 0.3, 1} {
		c.Backoff = backoff
		sizes, begins := rounds(c, t)
		compared, halved, grown := 0, 0, 0
		for i := range sizes {
			avoiding := false
			for r := 0; r+2 < len(sizes[i]); r++ { // the last may be cut short
				now, next := sizes[i][r], sizes[i][r+1]
				rtt, nextRTT := begins[i][r+1]-begins[i][r], begins[i][r+2]-begins[i][r+1]
				if math.Abs(float64(rtt-nextRTT)) > 1 || float64(rtt) < 0.5*c.RTT-1 || float64(rtt) > 1.5*c.RTT+1 {
					t.Fatalf("backoff %v: a flow's rounds take %d and %d ns", backoff, rtt, nextRTT)
				}
				compared++
				switch {
				case r == 0 && now != 2:
					t.Fatalf("backoff %v: a flow begins with %d packets", backoff, now)
				case next == max(now/2, 1) && backoff > 0:
					halved++
					avoiding = true
				case !avoiding && next == min(2*now, 32), avoiding && next == min(now+1, 32):
					grown++
				default:
					t.Fatalf("backoff %v: a window of %d follows one of %d, avoiding %v", backoff, next, now, avoiding)
				}
			}
		}
		want := backoff * float64(compared)
		if deviation := math.Sqrt(want * (1 - backoff)); compared < 500 || math.Abs(float64(halved)-want) > limit*deviation {
			t.Errorf("backoff %v: %d windows halved and %d grown of %d", backoff, halved, grown, compared)
		}
		// Negative control: no other backoff fits.
		const other = 0.5
		if want := other * float64(compared); math.Abs(float64(halved)-want) <= limit*math.Sqrt(want*(1-other)) {
			t.Errorf("backoff %v: %d windows halved of %d also fits one of %v", backoff, halved, compared, other)
		}
	}
}
