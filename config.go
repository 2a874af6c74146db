// Package hoplag measures how long packets or messages take between two points, how many are lost, and how far the points' clocks
// disagree. Packets carry no timestamp, and a packet costs nanoseconds: each point adds up times in a few thousand counters, and one
// point fetches the other's. Only a sender that is followed remembers its latest packets, to name what was lost ([Traffic.Missing]).
//
//	config := hoplag.Config{Key: key} // the same in both processes
//	a, err := hoplag.NewPoint(config)    b, err := hoplag.NewPoint(config)
//	http.Handle("/hoplag", a)            ask := hoplag.HTTP(nil, "http://a/hoplag")
//	a.Passed(id) // before it leaves     b.Passed(id) // after it has come, in any goroutine
//	                                     for r := range b.Follow(ctx, ask) {
//	                                         slog.Info("delay", "a→b", r)
//	                                     }
//
// Each second there is a [Report] with the mean delay, an interval that holds it, quantiles and the loss. The id is whatever
// both points know a message by; [Direction] says what makes a good one. Package hashing identifies packets and frames.
//
// # Clocks
//
// If the points are on one host, or PTP synchronises their clocks, say so ([Config.ClocksAgree]). Otherwise
// every delay is off by the difference of the clocks, and the interval of a mean allows for it. The exchanges
// of a follower bound it to a round trip. If something travels back, tell the points:
//
//	b.Back.Passed(id) // the response leaves B
//	a.Back.Passed(id) // and arrives at A
//
// Then the same counters give the clocks' offset and drift, even if the clocks are days apart, and delays are
// right to half the difference between the least delays of the two paths ([Config.Asymmetry]). Nothing that the
// points can measure tells more. The round trip needs no clocks.
//
// # Flows, stores, fleets
//
// With [Config.Flows] and a [Point.Flow] in [Direction.Passed] each report has the delay of every flow, slowest
// first. To ask for a flow's delay months later, also record the same Flow and [Direction.Packet] with package
// colate. A [Pair] compares two points by the records that a message bus carries ([Point.Records]). [Metrics]
// shows reports to Prometheus. Followers need not ask over HTTP: any bus will do ([Point.Answer]).
//
// # When not to use it
//
// If you own the message and trust both clocks, put a timestamp into it and keep a histogram at the receiver: that is
// simpler, and knows every delay. Use hoplag for what you forward unchanged, for many flows, for loss, which a timestamp that
// never arrives does not show, and for clocks that disagree. A packet that changes on the way is a different packet.
//
// If you have one goroutine and your own clock, as a switch does, use the synopses themselves: packages lda for all
// packets together, rli for each flow from reference packets, lds for each flow without state per flow, and colate for
// each flow months later. The example Sizes plans them.
package hoplag

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
	"unique"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// A Config says how a [Point] measures. The zero value is good except for the
// Key. Points that are compared need the same Key, SipHash, Cut and Cells.
type Config struct {
	// Key is the secret that the points share, 16 bytes or more. It never travels; what hashes packets and
	// signs records is derived from it. Use random bytes: whoever has a record can check guesses at others.
	Key Key

	// SipHash hashes packets with SipHash-2-4, so that nobody without the Key can aim them at a counter. Hashing 8 to 40 bytes takes four to
	// six times as long as without, 13 to 24 ns (BenchmarkHash in bench/peers). Without it, keep [Point.Seed] as secret as the Key.
	SipHash bool

	// Name is what reports call this point, at most 255 bytes.
	Name string

	// Cut is how often the point cuts off what it counted and keeps it for followers to fetch: 1 ms to an hour,
	// or 0 for 100 ms. Cuts are aligned to the point's clock. The shorter they are, the less a lost packet
	// spoils, and the more there is to send. Between 1 and 10 times the delay is good; at a hundred times the
	// delay, a few losses leave the mean hardly known. Delays of more than 60 cuts are an error.
	Cut time.Duration

	// Report is the length of the intervals of reports: a multiple of Cut of at most 24 hours, or 0 for ten cuts.
	Report time.Duration

	// ClocksAgree says that the clocks of the points need no correction: both points are on one host, or PTP
	// synchronises them. More than one message in a hundred that arrives before it was sent is an error. A step
	// that leaves all delays positive looks like slower messages; no interval allows for clocks that differ.
	ClocksAgree bool

	// Asymmetry is how much the least delays of the two directions may differ. 0 stands for half of the shortest round trip
	// of packets: one way takes no more than three times as long as the other. If a follower's exchanges say otherwise, as
	// where a queue stands on one path only, intervals hold what half of their round trip says, too. Nothing shows queues
	// on both paths: of 49 ms there and 9 ms back, hardly any interval holds the mean, unless Asymmetry is 40 ms. A
	// mean corrected for the clocks is known to within half of Asymmetry. Within a building, 10 µs will do.
	Asymmetry time.Duration

	// Clock is a clock to use in place of the system's, such as that of a network card. It may drift by up to 0.1 %. One that is seen to
	// stand still between ticks is an error; the system's clock, which ticks in milliseconds on some systems, is not checked for that.
	Clock interface{ Now() time.Time }

	// Cells are the sizes of the counters, with sums of 64 bits and digests; the zero value stands for those of [lda.DefaultConfig]
	// with digests of 32 bits and banks at shifts of 0, 2, 4 and 8: among up to half a million messages on their way one is sparse.
	Cells lda.Config

	// Flows is how many flows to tell apart in a report, up to 2^20, or 0 for none.
	Flows int

	// History is the number of bytes of cuts to keep for followers that come late, and of records of a point that wait for the other's:
	// up to 1 GiB, or 0 for 4 MiB. What all followers of the last five minutes have fetched is not kept. It must hold the cuts of a
	// second: with default Cells each takes 0.8 KiB, 4.4 KiB with 500 packets and 36 KiB with 50,000 (TestCutsAreSmall).
	History int
}

// A Key is a secret that does not reveal itself when it is printed, logged or encoded, alone or within other
// values. Keys of one secret are equal.
type Key struct {
	secret unique.Handle[string] // printers show a pointer within a value as an address
}

// NewKey returns the Key of a secret, such as 16 random bytes.
func NewKey(secret string) Key { return Key{unique.Make(secret)} }

func (k Key) text() string {
	if k == (Key{}) {
		return ""
	}
	return k.secret.Value()
}

// withDefaults returns the Config with zeros replaced. Its Cells have no identity, so that
// points of many Keys can share room: records say whose they are.
func (c Config) withDefaults() Config {
	c.Cut = cmp.Or(c.Cut, 100*time.Millisecond)
	c.Report = cmp.Or(c.Report, 10*c.Cut)
	c.History = cmp.Or(c.History, 4<<20)
	if c.Cells == (lda.Config{}) {
		c.Cells = lda.DefaultConfig
		c.Cells.DigestBits = 32
		c.Cells.Banks[1].Shift, c.Cells.Banks[2].Shift, c.Cells.Banks[3].Shift = 2, 4, 8
	}
	c.Cells.Identity = 0
	return c
}

// validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c Config) validate() error {
	c = c.withDefaults()
	bad := func(field string, got any, want string) error { return estimate.Invalid("hoplag", field, got, want) }
	least := 1024 * int(max(4, time.Second/max(c.Cut, time.Millisecond))) // what nearly empty cuts of a second take
	switch key := len(c.Key.text()); {
	case key < 16: // what is derived from a shorter one could be found by trial
		return bad("Key", fmt.Sprintf("%d bytes long", key), "at least 16")
	case len(c.Name) > 255:
		return bad("Name", fmt.Sprintf("%d bytes long", len(c.Name)), "at most 255")
	case c.Cut < time.Millisecond || c.Cut > time.Hour:
		return bad("Cut", c.Cut, "1ms to 1h, or 0 for 100ms")
	case c.Report < c.Cut || c.Report%c.Cut != 0 || c.Report > 24*time.Hour:
		return bad("Report", c.Report, fmt.Sprintf("a multiple of Cut, which is %v, of at most 24h, or 0 for ten cuts", c.Cut))
	case c.Asymmetry < 0:
		return bad("Asymmetry", c.Asymmetry, "0 or more")
	case c.Clock != nil && standsStill(c.Clock):
		return bad("Clock", "one that stands still for microseconds", "one that ticks more often")
	case c.Flows < 0 || c.Flows > 1<<20:
		return bad("Flows", c.Flows, "0 to 1048576")
	case c.History < least || c.History > 1<<30:
		return bad("History", c.History, fmt.Sprintf("%d to 1073741824 bytes, or 0 for 4194304", least))
	}
	if err := c.Cells.Validate(); err != nil {
		return fmt.Errorf("hoplag: Cells: %w", err)
	} else if c.Cells.SumBits < 64 { // nobody knows beforehand how long packets wait
		return bad("Cells.SumBits", c.Cells.SumBits, "64: narrower sums wrap")
	} else if c.Cells.DigestBits == 0 {
		return bad("Cells.DigestBits", 0, "1 to 32: counts alone cannot tell a lost packet from one on its way")
	}
	return nil
}

// standsStill reports whether a clock shows the same time for microseconds, once in three times.
// It does not sleep, because on a busy host that takes longer than a tick.
func standsStill(clock interface{ Now() time.Time }) bool {
	const still = 5 * time.Microsecond
	for range 3 {
		before, start := clock.Now(), time.Now()
		for reads := 0; reads < 1000 && time.Since(start) < still; reads++ {
		}
		if time.Since(start) >= still && clock.Now().Equal(before) {
			return true
		}
	}
	return false
}

// A hasher hashes packets with a seed, or with SipHash if that is not nil. Flows are hashed with the seed.
type hasher struct {
	seed  uint64
	words hashing.Identifier
	sip   *hashing.SipHash
}

func (c Config) hasher() (h hasher) {
	h.seed = binary.BigEndian.Uint64(c.derive("packets"))
	h.words = *hashing.NewIdentifier(h.seed, hashing.LinkRaw, hashing.Tunnels{})
	if c.SipHash {
		s := hashing.SipHashFromKey([16]byte(c.derive("siphash")))
		h.sip = &s
	}
	return h
}

// packet returns the identity of the message with an id.
func (h *hasher) packet(id []byte) hashing.Packet {
	if h.sip != nil {
		return h.sip.Packet(id)
	}
	return hashing.Digest(h.seed, id)
}

// number returns the digest of a message whose id is a number.
func (h *hasher) number(id uint64) hashing.Packet {
	if h.sip != nil {
		return hashing.Packet(h.sip.Word(id))
	}
	return h.words.Word(id)
}

// identity is what records reveal of the secret that packets are hashed with.
func (h *hasher) identity() uint64 {
	if h.sip != nil {
		return h.sip.Fingerprint()
	}
	return hashing.Fingerprint(h.seed)
}

// derive derives 32 bytes from the Key that reveal nothing of those for other purposes.
func (c Config) derive(purpose string) []byte {
	sum := sha256.Sum256([]byte("hoplag 1 " + purpose + "\x00" + c.Key.text()))
	return sum[:]
}

// floorDiv returns a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// mostDrift is how far the rates of clocks may differ. Trackers look further, to notice when they differ by more.
const mostDrift = 1e-3

// A timeline tells the time in nanoseconds since 1970. Of the system's clocks it reads the monotonic one, which
// is cheaper than the wall clock and never steps, and notices when the wall clock is set.
type timeline struct {
	base time.Time
	wall atomic.Int64 // what the clock said, as far as is known, at base
	user interface{ Now() time.Time }
	next int64 // when the clock was last followed, since base
}

// stepLimit is how far a clock may be from where it was, and the time since then, before that counts as a step.
const stepLimit = 100 * time.Microsecond

func newTimeline(user interface{ Now() time.Time }) *timeline {
	t := &timeline{base: time.Now(), user: user}
	t.wall.Store(t.set())
	return t
}

// set returns what the clock says that the time at base was.
func (t *timeline) set() int64 {
	now := time.Now()
	wall := now
	if t.user != nil {
		wall = t.user.Now()
	}
	return wall.UnixNano() - int64(now.Sub(t.base))
}

func (t *timeline) now() int64 {
	if t.user != nil {
		return t.user.Now().UnixNano()
	}
	return t.wall.Load() + t.elapsed()
}

// of returns the timeline's time for a time.Time; if that came from time.Now, by the monotonic clock as well.
func (t *timeline) of(at time.Time) int64 {
	if t.user != nil || at == at.Round(0) { // it has no monotonic reading
		return at.UnixNano()
	}
	return t.wall.Load() + int64(at.Sub(t.base))
}

// A mark is what a timeline was when a cut was made.
type mark struct{ wall, at int64 } // timeline.wall and timeline.next

// nowAs returns the time, how long ago the timeline began, and whether the clock is surely the one that a cut
// was made with: it may have been set since, and the point has not noticed yet, or makes its first cut.
func (t *timeline) nowAs(of mark) (now, elapsed int64, sure bool) {
	now, elapsed = t.now(), t.elapsed()
	was := of.wall + elapsed
	return now, elapsed, max(now-was, was-now) <= t.strays(elapsed-of.at)
}

// strays returns how far a clock may stray in a time, in ns, before that counts as a step.
func (t *timeline) strays(since int64) int64 {
	if t.user == nil {
		return int64(stepLimit)
	}
	return int64(stepLimit) + int64(5*mostDrift*float64(since))
}

// elapsed returns the time since the timeline began, whatever the clock says.
func (t *timeline) elapsed() int64 { return int64(time.Since(t.base)) }

// follow sets the timeline to the clock if that was stepped, and returns by how much, or 0. Two clocks are read
// one after the other, so a single reading may be off because of the scheduler.
func (t *timeline) follow() (step int64) {
	at := t.elapsed()
	limit := t.strays(at - t.next)
	t.next = at
	for range 5 {
		set := t.set()
		if step = set - t.wall.Load(); max(step, -step) <= limit {
			if t.user != nil {
				t.wall.Store(set)
			}
			return 0
		}
	}
	t.wall.Add(step)
	return step
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
