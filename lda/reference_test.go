package lda

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// reference is the update procedure of section III-C, step by step, with numbers that do not overflow.
type reference struct {
	config Config
	t      map[[2]int]*big.Int // T[i, j]: sums of timestamps
	s      map[[2]int]int64    // S[i, j]: packets
	digest map[[2]int]*big.Int // the stream digests
	none   int64               // g(x) = 0: not sampled
}

func newReference(c Config) *reference {
	return &reference{config: c, t: map[[2]int]*big.Int{}, s: map[[2]int]int64{}, digest: map[[2]int]*big.Int{}}
}

// bank is g(x): the last bank whose zeros the hash begins with.
func (r *reference) bank(p hashing.Packet) int {
	zeros := 0
	for bit := 63; bit >= 0 && uint64(p)>>bit&1 == 0; bit-- {
		zeros++
	}
	found := -1
	for j, b := range r.config.Banks {
		if b.Rows > 0 && zeros >= int(b.Shift) {
			found = j
		}
	}
	return found
}

func (r *reference) update(p hashing.Packet, t int64) {
	j := r.bank(p)
	if j < 0 {
		r.none++
		return
	}
	at := [2]int{int(uint64(p) % uint64(r.config.Banks[j].Rows)), j}
	if r.t[at] == nil {
		r.t[at], r.digest[at] = new(big.Int), new(big.Int)
	}
	r.t[at].Add(r.t[at], big.NewInt(t))
	r.digest[at].Add(r.digest[at], new(big.Int).SetUint64(uint64(p)>>32))
	r.s[at]++
}

// compare is section III-D's estimator, by its definition.
func (up *reference) compare(down *reference) (r Result) {
	var total big.Int
	replaced := uint64(0)
	var all estimate.Cells // held to its formulas elsewhere
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(up.config.DigestBits))
	for j, b := range up.config.Banks {
		for i := range b.Rows {
			at := [2]int{i, j}
			ta, tb := zero(up.t[at]), zero(down.t[at])
			sum := new(big.Int).Sub(tb, ta)
			sa, sb := up.s[at], down.s[at]
			if sa == 0 && sb == 0 {
				continue
			}
			r.cells++
			r.Lost += uint64(max(sa-sb, 0))
			r.Extra += uint64(max(sb-sa, 0))
			difference := new(big.Int).Sub(zero(up.digest[at]), zero(down.digest[at]))
			same := difference.Mod(difference, modulus).Sign() == 0
			if sa == sb && !same {
				replaced++
			}
			if sa == sb && same {
				r.usable++
				total.Add(&total, sum)
				r.N += uint64(sa)
				x, _ := new(big.Float).SetInt(sum).Float64()
				all.Add(x, uint64(sa))
			}
		}
	}
	if up.none > down.none {
		r.Lost += uint64(up.none - down.none)
	} else {
		r.Extra += uint64(down.none - up.none)
	}
	for _, side := range []struct {
		from *reference
		to   *uint64
	}{{up, &r.Sent}, {down, &r.Received}} {
		*side.to = uint64(side.from.none)
		for _, n := range side.from.s {
			*side.to += uint64(n)
		}
	}
	sum, _ := new(big.Float).SetInt(&total).Float64()
	r.Mean = sum / float64(r.N)
	r.StdDev = all.StdDev()
	r.spoken = r.Received
	r.strays = r.Extra + replaced
	return r
}

func zero(x *big.Int) *big.Int {
	if x == nil {
		return new(big.Int)
	}
	return x
}

// twoBanks is small enough for cells to be of every kind.
func twoBanks(seed uint64) Config {
	return Config{Identity: seed, Banks: [maxBanks]Bank{{Rows: 64, Shift: 0}, {Rows: 32, Shift: 2}}, SumBits: 40}
}

// configs are of every shape.
func configs() []Config {
	return []Config{
		twoBanks(1),
		{Identity: 2, Banks: [maxBanks]Bank{{Rows: 128, Shift: 1}}, SumBits: 64, DigestBits: 16},
		{Identity: 3, Banks: [maxBanks]Bank{{Rows: 16, Shift: 1}, {Rows: 1, Shift: 3}, {Rows: 32, Shift: 4}, {Rows: 64, Shift: 6}},
			SumBits: 33, DigestBits: 9},
		{Identity: 4, Banks: [maxBanks]Bank{{Rows: 256, Shift: 0}}, SumBits: 48, DigestBits: 32},
		DefaultConfig,
	}
}

// A packet passes both points unless it is lost; at the second, others may join it that were not at the first.
type packet struct {
	id         hashing.Packet
	sent       int64
	received   int64
	lost, born bool
}

// traffic has packets with exponential delays around 20 µs, some of which are lost and some appear.
func traffic(seed, hashSeed uint64, n int, loss, birth float64) []packet {
	rng := rand.New(rand.NewPCG(seed, 1))
	all := make([]packet, n)
	now := int64(1_700_000_000_000_000_000)
	for i := range all {
		now += 1 + int64(rng.Uint64N(1000))
		all[i] = packet{
			id:       hashing.Word(hashSeed, uint64(i)),
			sent:     now,
			received: now + int64(20_000*rng.ExpFloat64()),
			lost:     rng.Float64() < loss,
			born:     rng.Float64() < birth,
		}
	}
	return all
}

// feed updates the points with the packets, each at its own.
func feed(packets []packet, up, down func(hashing.Packet, int64)) {
	for i := range packets {
		p := &packets[i]
		if !p.born {
			up(p.id, p.sent)
		}
		if !p.lost {
			down(p.id, p.received)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mustNewFor(t testing.TB, c Config) *Aggregator {
	t.Helper()
	return must(New(c))
}

// pair returns the two points' aggregators after the packets, which something between them changes.
func pair(t testing.TB, c Config, packets []packet, change func(hashing.Packet) hashing.Packet) (up, down *Aggregator) {
	t.Helper()
	up, down = mustNewFor(t, c), mustNewFor(t, c)
	feed(packets, up.Update, func(p hashing.Packet, at int64) { down.Update(change(p), at) })
	return up, down
}

func same(p hashing.Packet) hashing.Packet { return p }

func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*math.Abs(want)
}

func TestEqualsReference(t *testing.T) {
	kinds := map[string]int{}
	for _, c := range configs() {
		for seed := range uint64(8) {
			packets := traffic(seed, c.Identity, 3000, 0.01, 0.004*float64(min(seed%2, uint64(c.DigestBits))))
			up, down := pair(t, c, packets, same)
			slowUp, slowDown := newReference(c), newReference(c)
			feed(packets, slowUp.update, slowDown.update)
			want := slowUp.compare(slowDown)

			got := must(Estimate(up, down))
			// The delays of 3,000 packets are exact in float64: what is left
			// is the rounding of a few hundred additions.
			const rounding = 1e-11
			if !near(got.Mean, want.Mean, rounding) || !near(got.StdDev, want.StdDev, rounding) || got.strays < want.strays {
				t.Errorf("%+v: mean %v, deviation %v, want %v, %v", c, got.Mean, got.StdDev, want.Mean, want.StdDev)
			}
			kinds["replaced"] += int(want.strays - want.Extra)
			kinds["unsampled"] += int(up.unsampledCount())
			kinds["unusable"] += got.cells - got.usable
			got.Mean, got.StdDev, got.least, got.greatest = want.Mean, want.StdDev, 0, 0
			got.MeanError, got.sampling, got.meanDegrees, got.deviationDegrees, got.hidden = 0, 0, 0, 0, 0
			got.length, got.crossing, got.strays = 0, 0, want.strays
			if got != want {
				t.Errorf("%+v:\ngot  %+v\nwant %+v", c, got, want)
			}
		}
	}
	for _, kind := range []string{"replaced", "unsampled", "unusable"} {
		if kinds[kind] == 0 {
			t.Errorf("no cell was %s: that case was not tried", kind)
		}
	}
}

// Figure 2: four rows, one loss.
func TestPapersExample(t *testing.T) {
	c := Config{Banks: [maxBanks]Bank{{Rows: 4}}, SumBits: 40}
	up, down := mustNewFor(t, c), mustNewFor(t, c)
	for i, row := range []struct{ sent, nSent, received, nReceived uint64 }{
		{120, 5, 180, 5}, {234, 10, 348, 9}, {15, 2, 37, 2}, {6, 1, 14, 1},
	} {
		up.cells[i] = cell{sum: row.sent, tally: row.nSent}
		down.cells[i] = cell{sum: row.received, tally: row.nReceived}
	}
	r, err := Estimate(up, down)
	if err != nil || r.Mean != 11.25 || r.N != 8 || r.usable != 3 || r.Lost != 1 {
		t.Errorf("%+v, %v; want mean 11.25 over 8 packets in 3 cells, 1 lost", r, err)
	}
}

func TestNothingUsable(t *testing.T) {
	up, down := pair(t, twoBanks(1), traffic(1, 1, 3000, 1, 0), same)
	r, err := Estimate(up, down)
	if !errors.Is(err, estimate.ErrNoSamples) || r.Sent != 3000 || r.Lost != 3000 || r.Received != 0 {
		t.Errorf("all lost: %+v, %v; want ErrNoSamples and right counts", r, err)
	}
	empty := mustNewFor(t, twoBanks(1))
	if _, err := Estimate(empty, empty); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("empty: %v, want ErrNoSamples", err)
	}
	if !math.IsInf(r.MeanInterval(0.98).High, 1) || !math.IsInf(r.DeviationInterval(0.98).High, 1) {
		t.Error("intervals of nothing are bounded")
	}
}

// filled returns the cells of two points after n packets with delays about the mean, of which none is lost. It
// does not pass them one by one: counts of cells and sums of delays are normal approximations.
func filled(t *testing.T, c Config, n, mean, deviation float64, seed uint64) (up, down *Aggregator) {
	t.Helper()
	up, down = mustNewFor(t, c), mustNewFor(t, c)
	rng := rand.New(rand.NewPCG(seed, 7))
	base := 0
	for j, b := range c.Banks[:c.banks()] {
		for i := range b.Rows {
			expected := c.rate(j) * n / float64(b.Rows)
			k := math.Round(max(0, expected+math.Sqrt(expected)*rng.NormFloat64()))
			if expected < 10 {
				k = poisson(rng, expected)
			}
			total := math.Round(k*mean + math.Sqrt(k)*deviation*rng.NormFloat64())
			sent, digest := rng.Uint64(), rng.Uint64()<<32
			// Float64 holds the part of the sum that is not a multiple of k.
			delays := uint64(int64(mean))*uint64(k) + uint64(int64(total-k*mean))
			up.cells[base+i] = cell{sum: sent, tally: digest | uint64(k)}
			down.cells[base+i] = cell{sum: sent + delays, tally: digest | uint64(k)}
		}
		base += b.Rows
	}
	return up, down
}

func poisson(rng *rand.Rand, mean float64) float64 {
	k, product := 0.0, rng.Float64()
	for limit := math.Exp(-mean); product > limit; product *= rng.Float64() {
		k++
	}
	return k
}

// Sums of 40 bits wrap after 1,100 s: 10^7 packets of 80 ms wrap in every cell
// of the first bank, and clocks that are far apart in those of one packet.
func TestWrappedSumsAreUnwrapped(t *testing.T) {
	narrow := Config{Banks: [maxBanks]Bank{{Rows: 1024, Shift: 0}, {Rows: 1024, Shift: 3}, {Rows: 1024, Shift: 10}}, SumBits: 40}
	one := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	const ms, s, day = 1e6, 1e9, 86400e9
	misled := 0
	for _, c := range []struct {
		name                     string
		config                   Config
		packets, mean, deviation float64
	}{
		{"80 ms", narrow, 1e7, 80 * ms, 20 * ms},
		{"1 s", narrow, 1e6, s, 0.3 * s},
		{"offset of 5 s", narrow, 1e7, 5*s + 100, 0.1 * ms},
		{"offset of -5 s", narrow, 1e7, -5*s + 100, 0.1 * ms},
		{"80 ms, one bank", one, 1e7, 80 * ms, 20 * ms},
		{"a year behind", DefaultConfig, 1e4, -365*day + 100, ms},
		{"280 years apart", DefaultConfig, 1e6, 102200 * day, ms},
		{"10 s", DefaultConfig, 1e7, 10 * s, 10 * s},
		{"nothing", DefaultConfig, 1e5, 0, 0},
	} {
		for seed := range uint64(4) {
			up, down := filled(t, c.config, c.packets, c.mean, c.deviation, seed)
			r, err := Estimate(up, down)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			tolerance := 6*c.deviation/math.Sqrt(float64(r.N)) + math.Abs(c.mean)*1e-15
			if math.Abs(r.Mean-c.mean) > tolerance || math.Abs(r.StdDev-c.deviation) > 0.15*c.deviation {
				t.Errorf("%s: mean %v, deviation %v, want %v ± %v, %v", c.name, r.Mean, r.StdDev, c.mean, tolerance, c.deviation)
			}
			// Negative control: sums are taken for what their bits say.
			var total, packets float64
			for i := range up.sampled() {
				total += float64(estimate.SignExtend(down.cells[i].sum-up.cells[i].sum, int(c.config.SumBits)))
				packets += float64(up.cells[i].count())
			}
			if math.Abs(total/packets-c.mean) > 10*tolerance {
				misled++
			}
		}
	}
	if misled < 18 {
		t.Errorf("sums that are not unwrapped mislead only %d times of 36", misled)
	}
}

// Where nothing tells how often sums have wrapped, there is no mean.
func TestHopelessWrapping(t *testing.T) {
	one := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	for _, c := range []struct{ packets, mean, deviation float64 }{{1e7, 80e9, 80e9}, {1e7, 1e9, 5e9}, {1e6, 1e12, 1e12}} {
		for seed := range uint64(5) {
			up, down := filled(t, one, c.packets, c.mean, c.deviation, seed)
			r, err := Estimate(up, down)
			if !errors.Is(err, ErrContradiction) || r.Mean != 0 || r.Sent == 0 {
				t.Errorf("%+v: %+v, %v; want counts and ErrContradiction", c, r, err)
			}
		}
	}
}
