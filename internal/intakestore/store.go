// Package intakestore keeps what intake has acknowledged and the event store
// does not hold yet, together with the claims of the deduplication window, in
// one Pebble database: an item and its claim are one atomic write. It never
// judges an item and never reads a clock.
//
// Invariants:
//   - a position is assigned once; records are contiguous from the oldest
//     kept to State.Last;
//   - a claim is written in the same batch as the item it belongs to;
//   - claims and records written by Commit are visible to FindClaim at once,
//     and to readers of records only when they are known to be on disk;
//   - after a write error the process ends: Options.Fatal does not return.
package intakestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/semaphore"
)

// ErrDamaged is returned when the folder is not a whole store: something that
// every store has is missing or cannot be read.
var ErrDamaged = errors.New("the intake store is damaged")

// ErrBehind is returned when the store lacks items that were acknowledged: it
// is an older copy, or the end of its log was damaged.
var ErrBehind = errors.New("the intake store lacks acknowledged items")

// ErrRebuilding is returned when a rebuild of the claims was cut short.
var ErrRebuilding = errors.New("a repair of the intake store was not finished")

// State is what the store knows of the whole stream; it is part of every
// batch.
type State struct {
	// Last is the position assigned last, 0 if none was.
	Last uint64
	// Received is the newest window time, in milliseconds since 1970.
	Received int64
	// Window is the deduplication window in force, in milliseconds.
	Window int64
}

const stateSize = 3*8 + 4

// marshal adds how many claims the newest segment holds.
func (s State) marshal(newest int) []byte {
	b := binary.BigEndian.AppendUint64(nil, s.Last)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Received))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Window))
	return binary.BigEndian.AppendUint32(b, uint32(newest))
}

func unmarshalState(b []byte) (s State, newest int, err error) {
	if len(b) != stateSize {
		return s, 0, fmt.Errorf("%w: its state is malformed", ErrDamaged)
	}
	return State{
		Last:     binary.BigEndian.Uint64(b),
		Received: int64(binary.BigEndian.Uint64(b[8:])),
		Window:   int64(binary.BigEndian.Uint64(b[16:])),
	}, int(binary.BigEndian.Uint32(b[24:])), nil
}

// Store is an open intake store. FindClaim and Commit belong to one goroutine,
// the sequencer; everything else may be called from any.
type Store struct {
	db       *pebble.DB
	dir      string
	files    *files
	log      *slog.Logger
	identity [16]byte
	seed     uint64

	mark mark

	// state and segments are the sequencer's, and so is order, which putClaims
	// uses again and again.
	state    State
	segments []*segment
	order    []claimRef
	// unsaved are sealed segments whose filters are yet to be saved.
	unsaved []*segment

	// durable is the last position known to be on disk, trimmed the last one
	// that the event store holds.
	durable atomic.Uint64
	trimmed atomic.Uint64
	// trimming keeps records in place while a snapshot is being taken.
	trimming sync.Mutex
	// views are held by snapshots and checkpoints, one each, and by Purge, all of them.
	views *semaphore.Weighted

	background sync.WaitGroup
}

// Create makes an empty store in a folder that must not hold one. With
// Options.Repair its claims are yet to be rebuilt: it refuses to open without
// Options.Repair until that has been done, and the mark stays as it is.
func Create(o Options, identity [16]byte, state State) error {
	opts := o.pebble(new(atomic.Bool), newFiles())
	opts.ErrorIfExists = true
	db, err := pebble.Open(o.Dir, opts)
	if err != nil {
		return fmt.Errorf("create intake store: %w", err)
	}
	batch := db.NewBatch()
	err = errors.Join(batch.Set(keyIdentity, identity[:], nil), batch.Set(keyState, state.marshal(0), nil))
	if o.Repair {
		err = errors.Join(err, batch.Set(keyRebuilding, nil, nil))
	}
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err != nil {
		return joinClose(fmt.Errorf("create intake store: %w", err), db)
	}
	if o.Repair {
		return joinClose(nil, db)
	}
	return joinClose(createMark(o.Mark, state.Last), db)
}

// Open opens the store in a folder that must hold one. It returns an error
// that wraps ErrDamaged if a part of it is missing or malformed, ErrRebuilding
// if a rebuild was cut short, unless Options.Repair is set, ErrBehind if it
// lacks what was acknowledged, and the engine's own error if it finds damage.
func Open(o Options) (*Store, error) {
	whole, err := checkManifest(o.Dir)
	if err != nil {
		return nil, err
	}
	ready, seen := new(atomic.Bool), newFiles()
	opts := o.pebble(ready, seen)
	opts.ErrorIfNotExists = true
	db, err := pebble.Open(o.Dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open intake store: %w", err)
	}
	s := &Store{db: db, dir: o.Dir, files: seen, log: o.Log, views: semaphore.NewWeighted(maxViews)}
	if err := s.check(o, opts, whole); err != nil {
		s.background.Wait()
		return nil, joinClose(err, db)
	}
	ready.Store(true)
	return s, nil
}

// check goes from the outside in: no table is used before its checksums have
// been compared. whole says that the list of tables is whole.
func (s *Store) check(o Options, opts *pebble.Options, whole bool) error {
	if err := s.checkTables(o.Dir, opts); err != nil {
		return err
	}
	if err := s.load(o.Repair); err != nil {
		return err
	}
	if !whole || o.Repair {
		if err := s.checkRecords(); err != nil {
			return err
		}
	}
	if !whole && !o.Repair {
		if err := s.checkSealed(); err != nil {
			return err
		}
	}
	return s.openMark(o.Mark, o.Repair)
}

// openMark compares the store with the mark of what was acknowledged. In a
// repair the mark is not compared, and kept as long as it can be read: if the
// repair is cut short, the store still refuses to open, and the next repair
// still knows what was lost. Rebuild brings it in line.
func (s *Store) openMark(path string, repair bool) error {
	m, acknowledged, err := openMark(path)
	if repair && errors.Is(err, ErrDamaged) {
		if err := createMark(path, s.state.Last); err != nil {
			return err
		}
		m, acknowledged, err = openMark(path)
	}
	if err != nil {
		return err
	}
	if acknowledged > s.state.Last && !repair {
		return joinClose(fmt.Errorf("%w: position %d was acknowledged, the last one in the store is %d",
			ErrBehind, acknowledged, s.state.Last), m)
	}
	s.mark = m
	return nil
}

func (s *Store) load(repair bool) error {
	switch _, err := s.meta(keyRebuilding); {
	case err == nil && !repair:
		return ErrRebuilding
	case err != nil && !errors.Is(err, ErrDamaged):
		return err
	}
	identity, err := s.meta(keyIdentity)
	if err != nil {
		return err
	}
	if len(identity) != len(s.identity) {
		return fmt.Errorf("%w: its identity is malformed", ErrDamaged)
	}
	copy(s.identity[:], identity)
	s.seed = binary.BigEndian.Uint64(identity)
	state, err := s.meta(keyState)
	if err != nil {
		return err
	}
	var newest int
	if s.state, newest, err = unmarshalState(state); err != nil {
		return err
	}
	s.durable.Store(s.state.Last)
	first, err := s.First()
	if err != nil {
		return err
	}
	s.trimmed.Store(first - 1)
	if err := s.loadSegments(); err != nil {
		return err
	}
	if repair {
		return nil
	}
	return s.checkNewest(newest)
}

func (s *Store) meta(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("%w: it has no %s", ErrDamaged, key[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key[1:], err)
	}
	return append([]byte(nil), value...), closer.Close()
}

// Identity returns the identity of the data folder the store belongs to.
func (s *Store) Identity() [16]byte { return s.identity }

// State returns what the sequencer has decided so far. Only the sequencer may
// call it while it runs.
func (s *Store) State() State { return s.state }

// Durable returns the last position known to be on disk.
func (s *Store) Durable() uint64 { return s.durable.Load() }

// Trimmed returns the last position whose record is no longer needed.
func (s *Store) Trimmed() uint64 { return s.trimmed.Load() }

// ClaimBytes returns about how many bytes of disk the claims take.
func (s *Store) ClaimBytes() (uint64, error) {
	n, err := s.db.EstimateDiskUsage([]byte{prefixClaim}, prefixEnd(prefixClaim))
	if err != nil {
		return 0, fmt.Errorf("estimate claims: %w", err)
	}
	return n, nil
}

// Compact rewrites the store in its densest form. It may take long.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush intake store: %w", err)
	}
	if err := s.db.Compact(ctx, []byte{0}, []byte{math.MaxUint8}, true); err != nil {
		return fmt.Errorf("compact intake store: %w", err)
	}
	return nil
}

// Close waits for background work, makes everything durable and closes the
// engine.
func (s *Store) Close() error {
	s.background.Wait()
	if err := errors.Join(s.db.Flush(), s.mark.Close(), s.db.Close()); err != nil {
		return fmt.Errorf("close intake store: %w", err)
	}
	return nil
}

func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }
