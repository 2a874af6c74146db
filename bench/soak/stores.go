package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// stores are those of two points, in a directory that is removed at the end.
type stores struct {
	dir     string
	points  [2]*colate.Store
	epochs  [2]*colate.Recorder
	started int64 // epochs
}

// kept is how many bytes each of them keeps.
const kept = 1 << 20

func newStores() (machine, error) {
	dir, err := os.MkdirTemp("", "hoplag-soak")
	if err != nil {
		return machine{}, err
	}
	s := &stores{dir: dir}
	for i := range s.epochs {
		if s.epochs[i], err = colate.New(small); err == nil {
			err = errors.Join(os.Mkdir(s.path(i), 0o755), s.open(i))
		}
		if err != nil {
			return machine{}, errors.Join(err, s.close())
		}
	}
	return machine{round: s.round, close: s.close}, nil
}

func (s *stores) path(i int) string { return filepath.Join(s.dir, fmt.Sprint("point", i)) }

func (s *stores) open(i int) (err error) {
	s.points[i], err = colate.OpenStore(s.path(i), colate.StoreOptions{Bytes: kept})
	return err
}

func (s *stores) close() error {
	for _, point := range s.points {
		if point != nil {
			point.Close()
		}
	}
	return os.RemoveAll(s.dir)
}

// round keeps an epoch and asks for flows. Now and then it damages a file of a
// closed store and opens the store again.
func (s *stores) round(random *rand.Rand) (tried, refused int, err error) {
	start := s.started * small.Period
	s.started++
	for _, r := range s.epochs {
		r.Reset()
	}
	fill(random, s.epochs, start)
	for i, point := range s.points {
		tried++
		if point.Append(s.epochs[i]) != nil {
			refused++
		}
	}
	path := colate.Path{Up: s.points[0], Down: s.points[1]}
	if s.started%8 == 0 {
		answers, _, wrong := path.EstimateAll(context.Background(), flows(random), start-20*small.Period, start+small.Period)
		if wrong != nil {
			tried, refused = tried+1, refused+1
		}
		n, no, err := delays(answers)
		tried, refused = tried+n, refused+no
		if err != nil {
			return tried, refused, err
		}
	}
	if s.started%50 == 0 {
		n, found, err := s.damage(random, random.IntN(2))
		return tried + n, refused + found, err
	}
	return tried, refused, nil
}

// damage damages a file of a store.
func (s *stores) damage(random *rand.Rand, i int) (tried, found int, err error) {
	if err := s.points[i].Close(); err != nil {
		return 0, 0, err
	}
	files, err := filepath.Glob(filepath.Join(s.path(i), "*.colate"))
	if err != nil || len(files) == 0 {
		return 0, 0, errors.Join(err, s.open(i))
	}
	file := files[random.IntN(len(files))]
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	if err := os.WriteFile(file, damage(random, data), 0o644); err != nil {
		return 0, 0, err
	}
	if err := s.open(i); err != nil {
		return 1, 1, fmt.Errorf("a damaged store does not open: %w", err)
	}
	if len(s.points[i].Summary().Missing) > 0 {
		found = 1
	}
	return 1, found, nil
}

// small is for a recorder in which many packets meet in a counter.
var small = colate.Config{Counters: 2000, PerFlow: 10, Bits: 64, CountBits: 14, DigestBits: 20, Period: 1e9}

// flows are those in a query, with records that may be wrong.
func flows(random *rand.Rand) (records []joint.FlowRecord) {
	for k := range uint64(30) {
		f := hashing.Flow(hashing.Word(2, k))
		records = append(records, joint.FlowRecord{Flow: f, Packets: float64(random.IntN(100)), Doubt: float64(random.IntN(3))})
	}
	return records
}

// fill lets two recorders count, mostly, the packets of an epoch.
func fill(random *rand.Rand, points [2]*colate.Recorder, start int64) {
	for i := range 2000 {
		f, p := hashing.Flow(hashing.Word(2, random.Uint64N(300))), hostilePacket(random)
		for _, r := range points[random.IntN(20)/19:] {
			r.Update(f, p, hostileTime(random, start+int64(i)*1000))
		}
	}
}

// delays checks answers.
func delays(answers []colate.Result) (tried, refused int, err error) {
	for i := range answers {
		tried++
		if answers[i].Err != nil {
			refused++
		} else if err := finite(answers[i].Delay); err != nil {
			return tried, refused, err
		}
	}
	return tried, refused, nil
}
