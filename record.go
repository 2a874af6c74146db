package hoplag

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/flows"
)

// An interval is what a point says of the time between two of its cuts, beside what it counted.
type interval struct {
	session        uint64
	step           int64 // by how much the clock was set when the session began, ns
	after, through int64
	late           [2]uint32 // packets of cuts before, by direction
}

// A record is what a point counted between two cuts, signed with the first tagSize bytes of an
// HMAC-SHA256. Section 4.8 of SPEC.md has its bytes.
type record struct {
	interval
	parts [2]part // by direction
	size  int     // of the encoding, and what a cut takes beside it

	fresh bool   // it does not continue the record before
	ahead *least // how far a clock of ours is ahead of the point's in this session
}

// A part is one direction of a checked record.
type part struct {
	packed func(*lda.Aggregator) // adds all packets, nil if there were none
	flows  *flows.Table          // nil without Config.Flows
}

// A tally adds up the packets of one direction between two cuts.
type tally struct {
	all   *lda.Sparse
	flows *flows.Table
	cells lda.Config
}

// borrowed has empty tallies. Few are in use at a time, however many points there are, and the processor's cache has them.
var borrowed sync.Pool

// borrowInto borrows an empty tally, for a Config that was validated, unless there is one. It is to be given back.
func borrowInto(into **tally, c *Config) *tally {
	if *into != nil {
		return *into
	}
	t, ok := borrowed.Get().(*tally)
	if !ok || t.cells != c.Cells {
		t = &tally{must(lda.NewSparse(c.Cells)), flows.NewTable(0), c.Cells}
	}
	t.flows.Reset(c.Flows)
	*into = t
	return t
}

func (t *tally) giveBack() {
	if t == nil {
		return
	}
	t.all.Reset()
	t.flows.Reset(0)
	borrowed.Put(t)
}

// addPart adds what passed in one direction, from a checked record.
func (t *tally) addPart(p part) {
	if p.packed != nil {
		p.packed(&t.all.Aggregator)
	}
	if p.flows != nil {
		t.flows.Merge(p.flows)
	}
}

func (t *tally) shift(by int64) {
	if t == nil || by == 0 {
		return
	}
	t.all.Shift(by)
	t.flows.Shift(by)
}

// sessions are the sessions of both points that an exchange or a clock belongs to.
type sessions [2]*least

// A least is the number with the smallest key. Keys age, because clocks drift: a
// backlog that comes after a silence does not displace what was known before.
type least struct {
	key, x, at int64
	known      bool
	fell       int64 // by how much the key did, less and less of long ago
}

func (l *least) add(key, x, now int64) {
	l.fell -= l.fell / 64
	if !l.known || key <= l.key+int64(mostDrift*float64(now-l.at)) {
		if l.known {
			l.fell += max(0, l.key-key)
		}
		l.key, l.x, l.at, l.known = key, x, now, true
	}
}

const (
	recordMagic   = "HLPC"
	recordVersion = 8
	tagSize       = 16
)

// errForged means that bytes lack the signature of this point's Key, were changed, or answer another request.
var errForged = errors.New("not signed with this point's Key")

// A sealer encodes and signs with a key, and checks and decodes.
type sealer struct {
	config   Config
	identity uint64
	key      []byte
}

func newSealer(c Config) *sealer {
	h := c.hasher()
	return &sealer{c, h.identity(), c.derive("records")}
}

func (s *sealer) tag(message []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(message)
	return mac.Sum(nil)[:tagSize]
}

// open checks a signed message, and returns its body.
func (s *sealer) open(data []byte, magic string) (wire.Reader, error) {
	n := max(0, len(data)-tagSize)
	r, err := s.head(data[:n], magic)
	if err == nil && !hmac.Equal(s.tag(data[:n]), data[n:]) {
		err = errForged
	}
	return r, err
}

// head checks all of a message but its tag, and returns its body.
func (s *sealer) head(message []byte, magic string) (wire.Reader, error) {
	r, err := wire.Open(message, magic, recordVersion)
	if err == nil && r.Uint64() != s.identity {
		err = fmt.Errorf("%w: the other point has another Key, or SipHash is set at one of them", estimate.ErrMismatch)
	}
	return r, err
}

func (s *sealer) begin(message []byte, magic string) []byte {
	return binary.BigEndian.AppendUint64(wire.Begin(message, magic, recordVersion), s.identity)
}

func (s *sealer) seal(message []byte) []byte {
	message = wire.Seal(message, 0)
	return append(message, s.tag(message)...)
}

// rooms are of *[]byte, where records are made.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// record encodes what was counted in each direction in a cut. It is signed when it is handed out.
func (s *sealer) record(of *interval, counted [2]*tally) []byte {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	b := binary.BigEndian.AppendUint64(s.begin((*room)[:0], recordMagic), of.session)
	for _, x := range []int64{of.step, int64(s.config.Cut), of.after, of.through} {
		b = binary.BigEndian.AppendUint64(b, uint64(x))
	}
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, of.late[forth]), of.late[back])
	begin := (of.after + 1) * int64(s.config.Cut)
	for _, t := range counted {
		packed := len(b) + 4
		if b = append(b, 0, 0, 0, 0); t != nil {
			b = t.all.AppendPacked(b, begin)
		}
		table := len(b) + 4
		if b = append(b, 0, 0, 0, 0); t != nil && t.flows.Len() > 0 {
			b = t.flows.Append(b, begin)
		}
		binary.BigEndian.PutUint32(b[packed-4:], uint32(table-4-packed))
		binary.BigEndian.PutUint32(b[table-4:], uint32(len(b)-table))
	}
	*room = wire.Seal(b, 0)
	return bytes.Clone(*room)
}

// decode decodes and checks a record of a point of the same Config. It keeps data.
func (s *sealer) decode(data []byte) (*record, error) {
	return s.parse(s.open(data, recordMagic))
}

// parse decodes a record's body, if there was no error.
func (s *sealer) parse(r wire.Reader, err error) (*record, error) {
	if err != nil {
		return nil, err
	}
	rec := &record{size: storedSize + r.Len(), interval: interval{session: r.Uint64(), step: int64(r.Uint64())}}
	length := time.Duration(r.Uint64())
	rec.after, rec.through = int64(r.Uint64()), int64(r.Uint64())
	rec.late = [2]uint32{r.Uint32(), r.Uint32()}
	var parts [2][2][]byte // packed cells and tables of flows, by direction
	for i := range parts {
		parts[i] = [2][]byte{r.Bytes(r.Size()), r.Bytes(r.Size())}
	}
	if err = r.Close(); err == nil && length != s.config.Cut {
		err = fmt.Errorf("%w: Cut is %v at the other point and %v here", estimate.ErrMismatch, length, s.config.Cut)
	} else if err == nil && (rec.after >= rec.through || rec.after < -farthest || rec.through > farthest) {
		err = fmt.Errorf("%w: from cut %d to %d", estimate.ErrEncoding, rec.after, rec.through)
	}
	for i := range rec.parts {
		if p := parts[i][0]; err == nil && len(p) > 0 {
			rec.parts[i].packed, err = s.config.Cells.CheckPacked(p)
		}
		if f := parts[i][1]; err == nil && len(f) > 0 && s.config.Flows > 0 {
			rec.parts[i].flows, err = flows.Decode(f, (rec.after+1)*int64(s.config.Cut))
		}
	}
	return rec, err
}

// farthest bounds the numbers of cuts: with the shortest, three centuries from 1970.
const farthest = 1 << 43

// A history is the latest cuts of a point. It keeps what any of its readers has not read, and some more for
// readers that are about to begin.
type history struct {
	limit, size int // bytes
	cuts        []stored
	readers     map[uint64]reader // by numbers that they chose
}

type stored struct {
	interval
	mark
	data []byte // the record, nil if nothing passed
}

func (i *interval) end() position { return position{i.session, i.through} }

// A position says up to where a reader has a point's cuts. The zero value means that it has none.
type position struct {
	session uint64
	through int64
}

// A reader is whoever asks for cuts.
type reader struct {
	at   position
	seen int64 // when it asked, ns
}

const (
	storedSize = 64 // what a cut takes beside its record
	keptCuts   = 4  // at least, whoever has read them

	// A reader that has not asked for this long, in ns, is not waited for.
	readerPatience = 300e9
)

func newHistory(limit int) *history { return &history{limit: limit, readers: map[uint64]reader{}} }

// add keeps a cut, and drops the oldest ones if there is no room. What all readers have goes when they read, or before more room is taken.
func (h *history) add(s stored, now int64) {
	h.cuts = append(h.cuts, s)
	h.size += storedSize + len(s.data)
	for h.size > h.limit && len(h.cuts) > 1 {
		h.drop(1)
	}
	if len(h.cuts) == cap(h.cuts) || len(h.readers) == 0 {
		h.forget(now)
	}
}

// drop drops the oldest n cuts.
func (h *history) drop(n int) {
	for i := range h.cuts[:n] {
		h.size -= storedSize + len(h.cuts[i].data)
	}
	clear(h.cuts[:n])
	h.cuts = h.cuts[n:]
}

// read returns the cuts after a position, as many as fit the limit but at least one, and whether there are more. A reader
// without any cuts begins with the latest; one whose cuts are gone continues with the oldest there is. now is a time in ns.
func (h *history) read(name uint64, at position, limit int, now int64) (found []stored, more bool) {
	from, size := h.after(at), 0
	if at == (position{}) {
		from = max(from, len(h.cuts)-1)
	}
	to := from
	for ; to < len(h.cuts); to++ {
		if size += storedSize + len(h.cuts[to].data); size > limit && to > from {
			break
		}
	}
	found, more = slices.Clone(h.cuts[from:to]), to < len(h.cuts)
	h.readers[name] = reader{at, now}
	h.forget(now)
	return found, more
}

func (h *history) after(at position) int {
	for i := len(h.cuts) - 1; i >= 0; i-- {
		if h.cuts[i].session == at.session && h.cuts[i].through <= at.through {
			return i + 1
		}
	}
	return 0
}

// forget forgets what all readers have.
func (h *history) forget(now int64) {
	read := len(h.cuts) - keptCuts
	for name, r := range h.readers {
		if read = min(read, h.after(r.at)); now-r.seen > readerPatience {
			delete(h.readers, name)
		}
	}
	h.drop(max(0, read))
}

// A follower asks a point for the cuts after those that it has, or which of the messages that the point sent into some cells
// are missing, and the point answers at once (SPEC.md, section 4.9). The nonce makes every reply an answer to one request, so
// that no reply can be used twice: it is the follower's own random number, and one of the request.
const (
	requestMagic = "HLPQ"
	replyMagic   = "HLPA"
	nonceSize    = 16
)

type request struct {
	nonce  []byte
	at     position
	trails []byte // of cells that lost something, or nothing
}

func randomNumber() uint64 {
	var random [8]byte
	rand.Read(random[:]) // never fails
	return binary.BigEndian.Uint64(random[:])
}

func newRequest(reader uint64, at position, trails []byte) request {
	nonce := binary.BigEndian.AppendUint64(nil, reader)
	return request{binary.BigEndian.AppendUint64(nonce, randomNumber()), at, trails}
}

func (s *sealer) request(q request) []byte {
	b := append(s.begin(nil, requestMagic), q.nonce...)
	b = binary.BigEndian.AppendUint64(b, q.at.session)
	b = binary.BigEndian.AppendUint64(b, uint64(q.at.through))
	return s.seal(append(b, q.trails...))
}

// A reply holds the cuts that a request asked for, or the names.
type reply struct {
	now     int64  // by the point's clock, as in its latest session
	name    string // of the point
	records []*record
	more    bool   // there are more
	names   []byte // of what is missing, encrypted
}

// maxReply bounds the records of a reply, in bytes.
const maxReply = 1 << 20

// of returns the record of a cut, not signed.
func (s *sealer) of(x *stored) []byte {
	if x.data != nil {
		return x.data
	}
	return s.record(&x.interval, [2]*tally{})
}

func (s *sealer) reply(nonce []byte, a reply, cuts []stored) []byte {
	size := 512 + len(a.names)
	for i := range cuts {
		size += len(cuts[i].data) + 2*storedSize
	}
	b := append(s.begin(make([]byte, 0, size), replyMagic), nonce...)
	b = append(append(binary.BigEndian.AppendUint64(b, uint64(a.now)), uint8(len(a.name))), a.name...)
	if b = append(b, 0); a.more {
		b[len(b)-1] = 1
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(cuts)))
	for i := range cuts {
		record := s.of(&cuts[i])
		b = binary.BigEndian.AppendUint32(b, uint32(len(record)))
		b = append(b, record...)
	}
	return s.seal(append(b, a.names...))
}

// answered decodes and checks the reply to a request.
func (s *sealer) answered(q request, data []byte) (reply, error) {
	r, err := s.open(data, replyMagic)
	if err == nil && !bytes.Equal(r.Bytes(nonceSize), q.nonce) {
		err = fmt.Errorf("%w: it answers another request", errForged)
	}
	if err != nil {
		return reply{}, err
	}
	a := reply{now: int64(r.Uint64()), name: string(r.Bytes(int(r.Uint8()))), more: r.Uint8() == 1}
	for range r.Size() {
		record, err := s.parse(s.head(r.Bytes(r.Size()), recordMagic))
		if err != nil {
			return reply{}, err
		}
		a.records = append(a.records, record)
	}
	if q.trails != nil {
		a.names = r.Bytes(r.Len())
	}
	return a, r.Close()
}
