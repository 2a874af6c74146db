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
	dirs    [2]string
	points  [2]*colate.Store
	epochs  [2]*colate.Recorder
	started int64 // epochs
}

// kept is how many bytes each of them keeps.
const kept = 1 << 20

// small is for a recorder in which many packets meet in a counter.
var small = colate.Config{Counters: 2000, PerFlow: 10, Bits: 64, CountBits: 14, DigestBits: 20, Period: 1e9}

func newStores() (machine, error) {
	dir, err := os.MkdirTemp("", "hoplag-soak")
	if err != nil {
		return machine{}, err
	}
	s := new(stores)
	for i := range s.epochs {
		s.dirs[i] = filepath.Join(dir, fmt.Sprint("point", i))
		var wrong error
		s.epochs[i], wrong = colate.New(small)
		err = errors.Join(err, wrong, os.Mkdir(s.dirs[i], 0o755), s.open(i))
	}
	return machine{round: s.round, close: func() error {
		return errors.Join(s.points[0].Close(), s.points[1].Close(), os.RemoveAll(dir))
	}}, err
}

func (s *stores) open(i int) (err error) {
	s.points[i], err = colate.OpenStore(s.dirs[i], colate.StoreOptions{Bytes: kept})
	return err
}

// round keeps an epoch and asks for flows. Now and then it damages a file of a
// closed store and opens the store again.
func (s *stores) round(random *rand.Rand, n *tally) error {
	start := s.started * small.Period
	s.started++
	for _, r := range s.epochs {
		r.Reset()
	}
	for i := range 2000 {
		f, p := hashing.Flow(hashing.Word(2, random.Uint64N(300))), hostilePacket(random)
		for _, r := range s.epochs[random.IntN(20)/19:] {
			r.Update(f, p, hostileTime(random, start+int64(i)*1000))
		}
	}
	for i, point := range s.points {
		n.count(point.Append(s.epochs[i]))
	}
	if s.started%8 == 0 {
		if err := s.ask(random, n, start-20*small.Period, start+small.Period); err != nil {
			return err
		}
	}
	if s.started%50 == 0 {
		return s.damage(random, n, random.IntN(2))
	}
	return nil
}

// ask asks for flows, with records that may be wrong.
func (s *stores) ask(random *rand.Rand, n *tally, from, to int64) error {
	var records []joint.FlowRecord
	for k := range uint64(30) {
		f := hashing.Flow(hashing.Word(2, k))
		records = append(records, joint.FlowRecord{Flow: f, Packets: float64(random.IntN(100)), Doubt: float64(random.IntN(3))})
	}
	path := colate.Path{Up: s.points[0], Down: s.points[1]}
	answers, _, wrong := path.EstimateAll(context.Background(), records, from, to)
	n.count(wrong)
	for i := range answers {
		n.count(answers[i].Err)
		if err := finite(answers[i].Delay); err != nil && answers[i].Err == nil {
			return err
		}
	}
	return nil
}

// damage damages a file of a store.
func (s *stores) damage(random *rand.Rand, n *tally, i int) error {
	if err := s.points[i].Close(); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.dirs[i], "*.colate"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, s.open(i))
	}
	file := files[random.IntN(len(files))]
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, damage(random, data), 0o644)
	}
	if err := errors.Join(err, s.open(i)); err != nil {
		return fmt.Errorf("a damaged store: %w", err)
	}
	if n.count(nil); len(s.points[i].Summary().Missing) > 0 {
		n.refused++
	}
	return nil
}
