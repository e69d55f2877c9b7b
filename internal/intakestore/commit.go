package intakestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Item is an item that was judged new, encoded by record.AppendItem.
type Item struct {
	EventID     record.EventID
	Fingerprint uint32
	// Claimed says that EventID is to be claimed.
	Claimed bool
	Encoded []byte
}

// Entry is the new part of one request. Header carries everything but
// Position, Received, Window, Store and Items, which Commit fills in.
type Entry struct {
	Header record.Record
	Items  []Item
}

// Group is what is written together.
type Group struct {
	Received int64
	Window   int64
	Entries  []Entry
}

// Pending is a group that was applied and is on its way to disk.
type Pending struct {
	store *Store
	batch *pebble.Batch
	last  uint64
}

// Commit assigns positions and applies records and claims as one atomic batch.
// On return both are visible to FindClaim, but not yet on disk: nobody may be
// told before Wait has returned. An error means that nothing was applied.
func (s *Store) Commit(g Group) (*Pending, error) {
	batch := s.db.NewBatch()
	state, err := s.fill(batch, g)
	if err != nil {
		return nil, joinClose(err, batch)
	}
	crash.Point("intake.decided")
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		return nil, joinClose(fmt.Errorf("apply group: %w", err), batch)
	}
	crash.Point("intake.applied")
	s.state = state
	s.saveFilters()
	return &Pending{store: s, batch: batch, last: state.Last}, nil
}

// Wait returns once the group is on disk. An error means that this is unknown
// and the process must end without answering.
func (p *Pending) Wait() error {
	if err := p.batch.SyncWait(); err != nil {
		return fmt.Errorf("sync group: %w", err)
	}
	crash.Point("intake.synced")
	if err := p.store.mark.write(p.last); err != nil {
		return err
	}
	p.store.durable.Store(p.last)
	if err := p.batch.Close(); err != nil {
		return fmt.Errorf("close batch: %w", err)
	}
	return nil
}

func (s *Store) fill(batch *pebble.Batch, g Group) (State, error) {
	if err := s.roll(batch, g.Received, g.Window); err != nil {
		return State{}, err
	}
	state := State{Last: s.state.Last, Received: g.Received, Window: g.Window}
	for i := range g.Entries {
		e := &g.Entries[i]
		e.Header.Position = state.Last + 1
		e.Header.Received, e.Header.Window, e.Header.Store = g.Received, g.Window, s.identity
		if err := s.putRecord(batch, e); err != nil {
			return State{}, err
		}
		state.Last += uint64(len(e.Items))
	}
	if err := s.putClaims(batch, g); err != nil {
		return State{}, err
	}
	newest := s.segments[len(s.segments)-1].count
	if err := batch.Set(keyState, state.marshal(newest), nil); err != nil {
		return State{}, fmt.Errorf("write state: %w", err)
	}
	return state, nil
}

func (s *Store) putRecord(batch *pebble.Batch, e *Entry) error {
	var scratch [64]byte
	header := record.AppendHeader(scratch[:0], &e.Header, len(e.Items))
	size := len(header)
	for i := range e.Items {
		size += len(e.Items[i].Encoded)
	}
	op := batch.SetDeferred(1+8, size)
	copy(op.Key, recordKey(e.Header.Position))
	n := copy(op.Value, header)
	for i := range e.Items {
		n += copy(op.Value[n:], e.Items[i].Encoded)
	}
	if err := op.Finish(); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func putClaim(batch *pebble.Batch, seg *segment, id record.Identity, c dedup.Claim) error {
	op := batch.SetDeferred(claimKeySize, claimValueSize)
	putClaimKey(op.Key, seg.id, id)
	putClaimValue(op.Value, seg.start, c)
	if err := op.Finish(); err != nil {
		return fmt.Errorf("write claim: %w", err)
	}
	seg.count++
	seg.end = max(seg.end, c.Received)
	return nil
}

// FindClaim returns the newest claim of an identity, expired or not.
func (s *Store) FindClaim(id record.Identity) (dedup.Claim, bool, error) {
	hash := identityHash(s.seed, id)
	for _, seg := range slices.Backward(s.segments) {
		if !seg.filter.mayContain(hash) {
			continue
		}
		var key [claimKeySize]byte
		putClaimKey(key[:], seg.id, id)
		value, closer, err := s.db.Get(key[:])
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return dedup.Claim{}, false, fmt.Errorf("look up claim: %w", err)
		}
		if len(value) != claimValueSize {
			return dedup.Claim{}, false, joinClose(fmt.Errorf("%w: a claim is malformed", ErrDamaged), closer)
		}
		return parseClaimValue(value, seg.start), true, joinClose(nil, closer)
	}
	return dedup.Claim{}, false, nil
}
