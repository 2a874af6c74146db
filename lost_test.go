package hoplag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda/lost"
)

// With a thousand messages a second each way, lost ones are named in both directions, by number and time,
// whatever the clocks say and however many cuts a report has, and no others are.
func TestMissing(t *testing.T) {
	for _, ahead := range []time.Duration{0, -40 * time.Millisecond, 72 * time.Hour} {
		onLink(t, Config{Key: testKey, ClocksAgree: ahead == 0, Cut: time.Second / 50, Report: time.Second}, ahead, func(t *testing.T, l *link) {
			drop := func(i int) time.Duration {
				if i%29 == 7 || i%1000 > 900 && i%1000 < 950 {
					return -1
				}
				return time.Duration(3+i%5) * time.Millisecond
			}
			l.send(time.Millisecond, drop, func(i int) time.Duration { return 4 * time.Millisecond })
			n, named, ids := 0, uint64(0), map[uint64]bool{}
			for r := range l.b.Follow(l.ctx, l.exchange) {
				named += uint64(len(r.Forth.Missing))
				unnamed := int(r.Forth.Lost) - len(r.Forth.Missing)
				if n++; r.Err != nil || unnamed > 0 && n > 4 || unnamed > 9 || n > 3 && (r.Forth.Lost < 80 || r.Forth.Mean == 0) {
					t.Errorf("%v: report %d: %v; %d not named", ahead, n, r, unnamed)
				}
				for _, m := range r.Forth.Missing {
					if m.ID == uint64(m.Packet) || drop(int(m.ID)) >= 0 || ids[m.ID] || m.Repeated {
						t.Errorf("%v: %+v is not missing", ahead, m)
					}
					ids[m.ID] = true
					age := r.Start.Add(r.Length + ahead).Sub(time.Unix(0, m.Sent))
					if age < -200*time.Millisecond || age > r.Length+200*time.Millisecond {
						t.Errorf("%v: %v is not within %v", ahead, time.Unix(0, m.Sent), r.Start)
					}
				}
				if r.Err == nil && n > 2 && !r.Forth.MeanInterval95.Contains(5e6) && math.Abs(r.Forth.Mean-5e6) > 10e3 { // those that come vary
					t.Errorf("%v: %v", ahead, r)
				}
				if n == 8 {
					break
				}
			}
			if len(ids) < 450 {
				t.Errorf("%v: %d named", ahead, len(ids))
			}
		})
	}
}

// A message is named once, also where it takes two reports until its cell is settled.
func TestNamedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Key: testKey, ClocksAgree: true}
		c.Cells.Banks[0].Rows, c.Cells.SumBits, c.Cells.DigestBits = 256, 64, 32
		l := newLink(t, c, 0)
		defer l.close()
		r := rand.New(rand.NewPCG(80, 1))
		delays := make([]time.Duration, 60_000)
		for i := range delays {
			delays[i] = time.Duration(8e7 * (1 + r.ExpFloat64()))
			if r.IntN(100) == 0 {
				delays[i] = -1
			}
		}
		l.send(500*time.Microsecond, func(i int) time.Duration { return delays[i] }, nil)
		named := map[uint64]int{}
		for n, r := range l.reports(18) {
			for _, m := range r.Forth.Missing {
				if before, is := named[m.ID]; is {
					t.Errorf("report %d names what report %d named: %+v", n, before, m)
				}
				named[m.ID] = n
			}
		}
		if len(named) < 100 {
			t.Errorf("%d named", len(named))
		}
	})
}

// Where one packet in 50 takes longer than packets are waited for, and had been given up when it came, the mean
// of the report is still within its interval.
func TestGivenUpTooSoon(t *testing.T) {
	for seed := range uint64(3) {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			begin, delay := time.Now(), func(i int) time.Duration {
				if i < 2100 || i%3 > 0 { // a while after the follower, 333 a second
					return -1
				}
				if hashing.Word(seed, uint64(i))%50 == 0 {
					return 7500 * time.Millisecond
				}
				return 150 * time.Millisecond
			}
			l.each(time.Millisecond, func(i int) {
				if d := delay(i); d > 0 {
					l.a.Load().PassedNumber(uint64(i))
					time.Sleep(d)
					l.b.PassedNumber(uint64(i))
				}
			})
			for n, r := range l.reports(14) {
				m := r.came(begin, 14_000, func(i int) time.Duration { return time.Duration(i) * time.Millisecond }, delay)
				if n > 3 && !r.Forth.Certain.Contains(m.Mean()) {
					t.Errorf("%d: %v, %d extra, want %s", n, r, r.Forth.Extra, Format(m.Mean()))
				}
			}
		})
	}
}

// A question about more trails than a request has room for is about some of them.
func TestLongQuestion(t *testing.T) {
	p, asked := must(NewPoint(Config{Key: testKey})), 0
	defer p.Close()
	f := follower{ctx: t.Context(), point: p, compare: newComparison(p.config), ask: func(_ context.Context, q []byte) ([]byte, error) {
		asked = len(q)
		return nil, ErrSilent
	}}
	f.compare.begin(p.number(p.clock.now()))
	trails := slices.Repeat([]areas.Trail{{Steps: []areas.TrailStep{{Cut: 1, Sent: 1, Outstanding: 1}}}}, 30_000)
	if some, _ := f.which(forth, trails); len(some) == 0 || asked == 0 || asked > maxRequest {
		t.Errorf("%d trails take %d bytes", len(some), asked)
	}
}

// What went back is remembered by the point that follows. Ids that are no numbers come back as hashes.
func TestMissingBack(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		id := func(i int) []byte { return fmt.Appendf(nil, "message %d", i) }
		l.all.Go(func() {
			for i := 0; l.ctx.Err() == nil; i++ {
				l.b.Back.Passed(id(i))
				time.Sleep(time.Millisecond)
				if i%50 != 3 {
					l.a.Load().Back.Passed(id(i))
				}
			}
		})
		gone := map[uint64]bool{}
		for i := 3; i < 8000; i += 50 {
			gone[uint64(l.b.Back.Packet(id(i)))] = true
		}
		lost, named := 0, 0
		for i, r := range l.reports(6) {
			if i < 2 {
				continue
			}
			lost += int(r.Back.Lost)
			named += len(r.Back.Missing)
			for _, m := range r.Back.Missing {
				if m.ID != uint64(m.Packet) || !gone[m.ID] {
					t.Errorf("%+v", m)
				}
			}
		}
		if lost < 60 || named != lost {
			t.Errorf("%d lost, %d named", lost, named)
		}
	})
}

// A point answers those who have the Key, in time, and nobody else learns an id.
func TestWhichIsSecret(t *testing.T) {
	p := must(NewPoint(Config{Key: testKey, Cut: time.Hour}))
	defer p.Close()
	p.Direction.remember()
	const id = 0x0123456789abcdef
	at := time.Unix(3600*400_000, 5)
	p.pool.Put(p.shards[0].newHandle())
	h := p.shards[0].newHandle()
	*h.log.next() = entry{packet: p.hash.number(id), not: ^uint64(id), time: at.UnixNano()}
	h.log.append()
	p.rotate(farthest)
	config := p.config.Cells
	cell := config.Cell(p.hash.number(id))
	end := at.Truncate(time.Hour).Add(time.Hour).UnixNano()
	trails := []areas.Trail{{Cell: cell, From: end - int64(time.Hour), Until: end,
		Steps: []areas.TrailStep{{End: end, Sent: 1, Outstanding: 1, Digest: uint32(p.hash.number(id) >> 32)}}}}
	q := newRequest(1, position{}, lost.AppendTrails(nil, trails, int64(time.Hour)))
	question := p.seal.request(q)
	answer, err := p.Answer(question)
	must0(t, err)
	reply, err := p.seal.answered(q, answer)
	must0(t, err)
	names, err := p.seal.names(reply.names, trails, p.Direction)
	if err != nil || len(names.Names) != 1 || names.Names[0].ID != id || names.Names[0].Sent != at.UnixNano() {
		t.Errorf("%+v, %v", names, err)
	}
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		if bytes.Contains(answer, order.AppendUint64(nil, id)) || bytes.Contains(answer, order.AppendUint64(nil, uint64(p.hash.number(id)))) {
			t.Error("the answer shows an id")
		}
	}
	if _, err := p.seal.answered(newRequest(1, position{}, q.trails), answer); !errors.Is(err, errForged) {
		t.Errorf("an answer to another question: %v", err)
	}
	for i := range question {
		b := bytes.Clone(question)
		b[i] ^= 1
		if _, err := p.Answer(b); err == nil {
			t.Fatalf("a question with byte %d changed is answered", i)
		}
	}
	stranger := must(NewPoint(Config{Key: NewKey("another key of 16")}))
	defer stranger.Close()
	if _, err := p.Answer(stranger.seal.request(q)); err == nil {
		t.Error("a stranger is answered")
	}
}

// Remembering allocates nothing once the memory has its size.
func TestRememberAllocates(t *testing.T) {
	if raceEnabled() {
		t.Skip("the race detector makes a sync.Pool drop what it holds")
	}
	p := must(NewPoint(Config{Key: testKey, Cut: time.Hour}))
	defer p.Close()
	p.Direction.memory.Store(lost.NewMemory(1000, math.MaxInt64))
	for i := range uint64(5000) {
		p.PassedNumber(i)
	}
	if n := testing.AllocsPerRun(5000, func() { p.PassedNumber(7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Messages that are kept while their receiver is down count as lost, and as extra when they come.
func TestReceiverDown(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		l.each(5*time.Millisecond, func(i int) {
			if down := i >= 2000 && i < 13000; !down || i < 4000 {
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(5 * time.Millisecond * time.Duration(1+map[bool]int{true: 13000 - i}[down]))
				l.b.PassedNumber(uint64(i))
			}
		})
		lost, extra := 0, 0
		for _, r := range l.reports(75) {
			lost, extra = lost+int(r.Forth.Lost), extra+int(r.Forth.Extra)
			if errors.Is(r.Forth.Err, ErrUnlike) {
				t.Error(r)
			}
		}
		if lost < 1990 || lost > 2000 || lost-extra > 1 {
			t.Errorf("%d lost, %d extra, want 2000", lost, extra)
		}
	})
}

// Messages that join on the way are extra, and spoil no mean, also where as many are lost, as their ids are rewritten.
// They are not taken for slow ones for longer than any packet may be on its way.
func TestJoiners(t *testing.T) {
	for _, lost := range []bool{false, true} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.each(3*time.Millisecond, func(i int) {
				if i%12 > 0 || lost {
					l.a.Load().PassedNumber(uint64(i) + map[bool]uint64{true: 1e9}[i%12 == 0])
				}
				time.Sleep(time.Duration(10+i%7*10) * time.Millisecond)
				l.b.PassedNumber(uint64(i))
			})
			for i, r := range l.reports(16) {
				d, w := &r.Forth, r.Forth.MeanInterval95.High-r.Forth.MeanInterval95.Low
				if (i > 11 || i > 1 && !lost) && (d.Err != nil || !d.Certain.Contains(40e6) || w > d.Mean || d.Extra == 0 || lost && d.Lost == 0) {
					t.Errorf("report %d: %v", i, r)
				}
			}
		})
	}
}

// A point that is silent just after a session's beginning spoils no report once it is heard again.
func TestSilentAtFirst(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, both(20), nil)
		begin, n := time.Now(), 0
		for r := range l.b.Follow(l.ctx, func(ctx context.Context, request []byte) ([]byte, error) {
			if at := time.Since(begin); at > 500*time.Millisecond && at < 6*time.Second {
				return nil, io.ErrUnexpectedEOF
			}
			return l.exchange(ctx, request)
		}) {
			if n++; n > 5 && (r.Forth.Err != nil || r.Forth.Extra > 0) {
				t.Error(r)
			}
			if n == 10 {
				return
			}
		}
	})
}

// Names that no report tells, as where points see different packets for days, are no more than a report may have.
func TestNamesAreForgotten(t *testing.T) {
	c := Config{Key: testKey, ClocksAgree: true}.withDefaults()
	w := &way{config: &c, missing: make([]lost.Name, mostMissing+5)}
	w.open(false)
	if d := w.tell(newMeeting(c), 0, 10, false, false); len(d.Missing) > 0 || len(w.missing) != mostMissing {
		t.Errorf("%d names told, and %d kept", len(d.Missing), len(w.missing))
	}
}

// Ids of all messages, or half, stop being the same at both points, at a rate at which cells have some in every cut. No
// report tells a mean, and soon each says why.
func TestIdsStopMatching(t *testing.T) {
	long(t)
	for _, every := range []uint64{1, 2} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			l.each(50*time.Microsecond, func(i int) {
				id := uint64(i)
				l.a.Load().PassedNumber(id)
				if time.Sleep(5 * time.Millisecond); i > 70_000 && id%every == 0 {
					id += 1 << 40
				}
				l.b.PassedNumber(id)
			})
			for n, r := range l.reports(8) {
				if d := &r.Forth; n > 4 && d.Err == nil || n > 6 && !errors.Is(d.Err, ErrUnlike) {
					t.Errorf("every %d: %d: %v", every, n, r)
				}
			}
		})
	}
}

// A loop passes one message in a hundred eight times in a row. Of 36 intervals of 95 %, six or more miss in one run of 100, and nine did.
func TestLoopOfAFew(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		begin, outside := time.Now(), 0
		sent := func(i int) time.Duration { return time.Duration(i) * 2433 * time.Microsecond }
		delay := func(i int) time.Duration { return time.Duration(2e6 + 6e6*float64(hashing.Word(3, uint64(i)))*0x1p-64) }
		l.each(sent(1), func(i int) {
			l.a.Load().PassedNumber(uint64(i))
			time.Sleep(delay(i))
			for range 1 + map[bool]int{true: 7}[hashing.Word(4, uint64(i))%100 == 0] {
				l.b.PassedNumber(uint64(i))
				time.Sleep(2 * time.Millisecond)
			}
		})
		for _, r := range l.reports(36) {
			if m := r.came(begin, 20_000, sent, delay); r.Forth.Err != nil || !r.Forth.MeanInterval95.Contains(m.Mean()) {
				outside++
			}
		}
		if outside > 5 {
			t.Errorf("%d of 36 intervals do not hold the mean", outside)
		}
	})
}

// long leaves a test of very many messages out of short runs, as those of the race detector are.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("very many messages")
	}
}
