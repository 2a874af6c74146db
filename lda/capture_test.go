package lda

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// seen is a packet of a capture pair at one of its points.
type seen struct {
	point trace.Point
	time  int64
	frame hashing.Frame
	other []byte // the whole frame, if it is not IP
}

func (s *seen) digest(seed uint64) hashing.Packet {
	if s.other != nil {
		return hashing.Digest(seed, s.other)
	}
	return s.frame.Digest(seed)
}

// capture reads a pair that is kept beside the project, if it is there.
func capture(t *testing.T, name string) []seen {
	t.Helper()
	var readers [2]*trace.Reader
	for i, file := range []string{"ingress.pcap.gz", "egress.pcap.gz"} {
		file = filepath.Join("..", "..", "shared", "data", "twopoint", name, file)
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			t.Skipf("needs a capture that is not part of the project: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if readers[i], err = trace.NewReader(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	both := trace.NewPair(readers[0], readers[1])
	var all []seen
	for {
		point, record, err := both.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		s := seen{point: point, time: record.Time}
		record.Frame = bytes.Clone(record.Frame)
		if err := s.frame.Parse(record.Link, record.Frame); err != nil {
			s.other = record.Frame
		}
		all = append(all, s)
	}
}

// exact is what remembering every packet tells: the mean over all, identical
// ones matched in order, and the deviation over those that had no identical
// one in flight, which could be mistaken for it.
func exact(packets []seen) (mean, deviation float64, sent, lost int) {
	flying := map[hashing.Packet][]int64{}
	var all, clear estimate.Moments
	for i := range packets {
		p := &packets[i]
		id := p.digest(0x9e3779b97f4a7c15)
		queue := flying[id]
		if p.point == trace.Ingress {
			sent++
			flying[id] = append(queue, p.time)
			continue
		}
		all.Add(float64(p.time - queue[0]))
		if len(queue) == 1 {
			clear.Add(float64(p.time - queue[0]))
		}
		flying[id] = queue[1:]
	}
	return all.Mean(), math.Sqrt(clear.PopulationVariance()), sent, sent - int(all.N())
}

// Real packets through real queues: errors averaged over 8 seeds. The bound
// of the mean is what is asked of it, and three times what the effective
// sample size gives.
func TestRealQueues(t *testing.T) {
	const seeds = 8
	for _, c := range []struct {
		name string
		mean float64 // known beforehand
		lost int
	}{
		{"tbf400m_512k", 513370, 840},
		{"tbf300m_2m", 6657643, 1101},
	} {
		t.Run(c.name, func(t *testing.T) {
			packets := capture(t, c.name)
			mean, deviation, sent, lost := exact(packets)
			if math.Abs(mean-c.mean) > 0.5 || sent != 213228 || lost != c.lost {
				t.Errorf("exact mean %v, %d sent, %d lost; want %v, 213228, %d", mean, sent, lost, c.mean, c.lost)
			}
			var meanError, deviationError float64
			covered := 0
			for seed := range uint64(seeds) {
				config := DefaultConfig
				config.Identity = seed
				points := [2]*Aggregator{mustNewFor(t, config), mustNewFor(t, config)}
				for i := range packets {
					p := &packets[i]
					points[p.point].Update(p.digest(seed), p.time)
				}
				r, err := Estimate(points[0], points[1])
				if err != nil || int(r.Lost) != lost || r.Extra != 0 || r.negative != 0 {
					t.Fatalf("%+v, %v", r, err)
				}
				meanError += estimate.RelativeError(r.Mean, mean) / seeds
				deviationError += estimate.RelativeError(r.StdDev, deviation) / seeds
				if r.MeanInterval(0.98).Contains(mean) {
					covered++
				}
			}
			t.Logf("mean error %.2f %%, deviation error %.2f %%, %d of %d intervals cover",
				100*meanError, 100*deviationError, covered, seeds)
			if meanError > 0.02 || deviationError > 0.04 {
				t.Errorf("mean error %.2f %%, deviation error %.2f %%, want at most 2 and 4", 100*meanError, 100*deviationError)
			}
			if covered < seeds-2 { // three misses of 8 at 2 %: once in 2,500
				t.Errorf("%d of %d intervals cover the mean", covered, seeds)
			}
		})
	}
}
