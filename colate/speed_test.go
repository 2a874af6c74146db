package colate

import (
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/estimate/joint"
)

// BenchmarkQuery is the answer about one flow from an epoch at each point, in
// memory; and from stores of an hour, of which all is in the system's cache.
func BenchmarkQuery(b *testing.B) {
	flows, packets := speed.Flows(), speed.Packets()
	c := DefaultConfig
	up, _ := New(c)
	down, _ := New(c)
	for i, f := range flows {
		up.Update(f, packets[i], int64(i)*20_000)
		down.Update(f, packets[i], int64(i)*20_000+100_000)
	}
	record := func(i int, minutes float64) joint.FlowRecord {
		return joint.FlowRecord{Flow: flows[i&(speed.StreamLength-1)], Packets: minutes} // of one packet each
	}
	b.Run("epoch", func(b *testing.B) {
		for i := range b.N {
			if _, err := Estimate(up, down, record(i, 1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hour", func(b *testing.B) {
		var path Path
		for point, r := range []*Recorder{up, down} {
			files := dir(b.TempDir())
			s := openStore(b, files, StoreOptions{})
			for minute := range int64(60) {
				r.start = minute * c.Period
				if err := s.Append(r); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			*[]**Store{&path.Up, &path.Down}[point] = s
		}
		b.ResetTimer()
		for i := range b.N {
			_, coverage, err := path.Estimate(b.Context(), record(i, 60), 0, 60*c.Period-1)
			if err != nil || coverage.Epochs != 60 {
				b.Fatal(err, coverage)
			}
			b.ReportMetric(float64(coverage.Bytes)/1e6, "MB-read/op")
		}
	})
}
