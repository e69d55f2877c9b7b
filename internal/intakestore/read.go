package intakestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// ErrGap is returned when a record that must be there is not.
var ErrGap = errors.New("records are missing from the intake store")

// First returns the position of the oldest record kept, or the next position
// to be assigned if there is none.
func (s *Store) First() (uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixRecord}, UpperBound: prefixEnd(prefixRecord)})
	if err != nil {
		return 0, fmt.Errorf("find first record: %w", err)
	}
	first := s.durable.Load() + 1
	if it.First() {
		first = binary.BigEndian.Uint64(it.Key()[1:])
	}
	return first, joinClose(it.Error(), it)
}

// Records returns the records from a position on that are known to be on
// disk, in order, until they hold at least maxItems items. If the position
// lies within a record, the first one returned is the rest of it. It returns
// none if there are none yet, and an error that wraps ErrGap if something is
// missing.
func (s *Store) Records(from uint64, maxItems int) ([]record.Record, error) {
	durable := s.durable.Load()
	if from > durable {
		return nil, nil
	}
	var out []record.Record
	err := scanRecords(s.db, from, durable, func(r record.Record) (bool, error) {
		out = append(out, r)
		maxItems -= len(r.Items)
		return maxItems > 0, nil
	})
	return out, err
}

// scanRecords calls fn for the items from … through, record by record, until
// it returns false.
func scanRecords(db pebble.Reader, from, through uint64, fn func(record.Record) (bool, error)) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixRecord}, UpperBound: recordKey(through + 1)})
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	next, more := from, true
	for valid := it.SeekLT(recordKey(from + 1)); valid && more; valid = it.Next() {
		r, err := record.Decode(binary.BigEndian.Uint64(it.Key()[1:]), it.Value())
		if err != nil {
			return joinClose(err, it)
		}
		if r.Position > next || r.Last() < next {
			return joinClose(fmt.Errorf("%w: expected position %d, found %d to %d", ErrGap, next, r.Position, r.Last()), it)
		}
		r.Items, r.Position = r.Items[next-r.Position:], next
		next = r.Last() + 1
		if more, err = fn(r); err != nil {
			return joinClose(err, it)
		}
	}
	if err := joinClose(it.Error(), it); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	if more && next <= through {
		return fmt.Errorf("%w: expected position %d, found none", ErrGap, next)
	}
	return nil
}

// Trim forgets the records up to a position that the event store holds for
// good. A record that goes on after it is kept whole. It need not be durable:
// a record that comes back is skipped by its position.
func (s *Store) Trim(through uint64) error {
	s.trimming.Lock()
	defer s.trimming.Unlock()
	end, err := s.recordEnd(through)
	if err != nil {
		return fmt.Errorf("trim records: %w", err)
	}
	if err := s.db.DeleteRange(recordKey(0), recordKey(end), pebble.NoSync); err != nil {
		return fmt.Errorf("trim records: %w", err)
	}
	s.trimmed.Store(max(s.trimmed.Load(), end-1))
	return nil
}

// recordEnd returns the position after a position, or the first one of the
// record that holds both.
func (s *Store) recordEnd(position uint64) (uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixRecord}, UpperBound: recordKey(position + 1)})
	if err != nil {
		return 0, err
	}
	end := position + 1
	if it.Last() {
		r, err := record.Decode(binary.BigEndian.Uint64(it.Key()[1:]), it.Value())
		if err != nil {
			return 0, joinClose(err, it)
		}
		if r.Last() > position {
			end = r.Position
		}
	}
	return end, joinClose(it.Error(), it)
}

// Snapshot is a view of the store at one moment. It can be read from any
// goroutine and must be closed.
type Snapshot struct {
	store    *Store
	snap     *pebble.Snapshot
	State    State
	segments []*segment
}

// Snapshot returns a view of the store. before is called while no record can
// be trimmed, so that a view of the event store taken by it and this one
// overlap: whatever the one lacks, the other has. It waits while Purge works.
func (s *Store) Snapshot(before func() error) (*Snapshot, error) {
	// The context has no end, so this cannot fail.
	_ = s.views.Acquire(context.Background(), 1)
	s.trimming.Lock()
	defer s.trimming.Unlock()
	if err := before(); err != nil {
		s.views.Release(1)
		return nil, err
	}
	out := &Snapshot{store: s, snap: s.db.NewSnapshot()}
	if err := out.load(); err != nil {
		return nil, joinClose(err, out)
	}
	return out, nil
}

func (v *Snapshot) load() error {
	value, closer, err := v.snap.Get(keyState)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	v.State, _, err = unmarshalState(value)
	if err := joinClose(err, closer); err != nil {
		return err
	}
	v.segments, err = readSegments(v.snap)
	return err
}

// Claims calls fn for every claim received at or after since, in no order.
func (v *Snapshot) Claims(since int64, fn func(record.Identity, dedup.Claim) error) error {
	for _, seg := range v.segments {
		err := scanSegment(v.snap, seg, func(id record.Identity, c dedup.Claim) error {
			if c.Received < since {
				return nil
			}
			return fn(id, c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Records calls fn for every record from a position to the last.
func (v *Snapshot) Records(from uint64, fn func(record.Record) error) error {
	if from > v.State.Last {
		return nil
	}
	return scanRecords(v.snap, from, v.State.Last, func(r record.Record) (bool, error) { return true, fn(r) })
}

// Close releases the view.
func (v *Snapshot) Close() error {
	defer v.store.views.Release(1)
	if err := v.snap.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return nil
}

func scanSegment(db pebble.Reader, seg *segment, fn func(record.Identity, dedup.Claim) error) error {
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: segmentKey(prefixClaim, seg.id), UpperBound: segmentKey(prefixClaim, seg.id+1),
	})
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		if len(it.Key()) != claimKeySize || len(it.Value()) != claimValueSize {
			return joinClose(fmt.Errorf("%w: a claim is malformed", ErrDamaged), it)
		}
		_, id := parseClaimKey(it.Key())
		if err := fn(id, parseClaimValue(it.Value(), seg.start)); err != nil {
			return joinClose(err, it)
		}
	}
	return joinClose(it.Error(), it)
}
