package intakestore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// A segment holds the claims of a stretch of time: at most maxSegmentSpan and
// about as many ids as its filter was sized for. Only the newest is written
// to; the others are sealed, keep their filter on disk, and are dropped as a
// whole once their newest claim has expired.
type segment struct {
	id uint32
	// start is the window time of the first claim, end of the newest one.
	start, end int64
	// endPosition is the last position assigned while the segment was open.
	endPosition uint64
	capacity    int
	count       int
	sealed      bool
	filter      *filter
}

const segmentValueSize = 8 + 8 + 8 + 4 + 4 + 1

func (s *segment) marshal() []byte {
	b := make([]byte, 0, segmentValueSize)
	b = binary.BigEndian.AppendUint64(b, uint64(s.start))
	b = binary.BigEndian.AppendUint64(b, uint64(s.end))
	b = binary.BigEndian.AppendUint64(b, s.endPosition)
	b = binary.BigEndian.AppendUint32(b, uint32(s.capacity))
	b = binary.BigEndian.AppendUint32(b, uint32(s.count))
	if s.sealed {
		return append(b, 1)
	}
	return append(b, 0)
}

func unmarshalSegment(id uint32, b []byte) (*segment, error) {
	if len(b) != segmentValueSize {
		return nil, fmt.Errorf("%w: segment %d is malformed", ErrDamaged, id)
	}
	return &segment{
		id:          id,
		start:       int64(binary.BigEndian.Uint64(b)),
		end:         int64(binary.BigEndian.Uint64(b[8:])),
		endPosition: binary.BigEndian.Uint64(b[16:]),
		capacity:    int(binary.BigEndian.Uint32(b[24:])),
		count:       int(binary.BigEndian.Uint32(b[28:])),
		sealed:      b[32] == 1,
	}, nil
}

// full says whether a claim at a window time belongs into a new segment.
func (s *segment) full(received int64, span time.Duration) bool {
	return s.count >= s.capacity || received-s.start >= span.Milliseconds()
}

// nextCapacity sizes the segment after this one: small stores stay small, busy
// ones grow to maxSegmentIDs.
func (s *segment) nextCapacity() int {
	switch {
	case s.count >= s.capacity:
		return min(s.capacity*2, maxSegmentIDs)
	case s.count < s.capacity/4:
		return max(s.capacity/2, minSegmentIDs)
	default:
		return s.capacity
	}
}

func segmentSpan(window int64) time.Duration {
	quarter := time.Duration(window) * time.Millisecond / 4
	return min(max(quarter, minSegmentSpan), maxSegmentSpan)
}

// readSegments returns what a store, or a view of it, knows of its segments,
// oldest first and without their filters.
func readSegments(db pebble.Reader) ([]*segment, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixSegment}, UpperBound: prefixEnd(prefixSegment)})
	if err != nil {
		return nil, fmt.Errorf("read segments: %w", err)
	}
	var out []*segment
	for valid := it.First(); valid; valid = it.Next() {
		seg, err := unmarshalSegment(binary.BigEndian.Uint32(it.Key()[1:]), it.Value())
		if err != nil {
			return nil, joinClose(err, it)
		}
		out = append(out, seg)
	}
	if err := joinClose(it.Error(), it); err != nil {
		return nil, fmt.Errorf("read segments: %w", err)
	}
	return out, nil
}

// loadSegments reads the segments and makes sure that each has a filter,
// scanning the claims of those that were not sealed in time.
func (s *Store) loadSegments() (err error) {
	if s.segments, err = readSegments(s.db); err != nil {
		return err
	}
	for _, seg := range s.segments {
		if err := s.loadFilter(seg); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadFilter(seg *segment) error {
	if !seg.sealed {
		// A filter on disk is of a sealing that did not come to pass, and lacks
		// what was claimed since.
		return s.scanFilter(seg)
	}
	value, closer, err := s.db.Get(segmentKey(prefixFilter, seg.id))
	if err == nil {
		seg.filter, err = unmarshalFilter(value)
		if err != nil {
			return joinClose(fmt.Errorf("%w: filter of segment %d: %w", ErrDamaged, seg.id, err), closer)
		}
		return joinClose(nil, closer)
	}
	if err != pebble.ErrNotFound { //nolint:errorlint // documented to be returned as it is
		return fmt.Errorf("read filter of segment %d: %w", seg.id, err)
	}
	if err := s.scanFilter(seg); err != nil {
		return err
	}
	s.saveFilter(seg)
	return nil
}

// scanFilter makes the filter of a segment from its claims, and counts them.
func (s *Store) scanFilter(seg *segment) error {
	seg.filter = newFilter(seg.capacity)
	seg.count, seg.end = 0, seg.start
	return scanSegment(s.db, seg, func(id record.Identity, c dedup.Claim) error {
		seg.filter.add(identityHash(s.seed, id))
		seg.count++
		seg.end = max(seg.end, c.Received)
		return nil
	})
}

// saveFilters saves the filters of the segments that were sealed lately. It
// must be called after the sealing batch was applied and not before: a filter
// that is found must be of a segment that takes no more claims.
func (s *Store) saveFilters() {
	for _, seg := range s.unsaved {
		s.saveFilter(seg)
	}
	s.unsaved = nil
}

// saveFilter writes a sealed segment's filter. It need not be durable: a
// filter that is missing is built again from the claims.
func (s *Store) saveFilter(seg *segment) {
	s.background.Go(func() {
		if err := s.db.Set(segmentKey(prefixFilter, seg.id), seg.filter.marshal(), pebble.NoSync); err != nil {
			s.log.Error("intake store: filter not saved; it will be rebuilt at the next start", "segment", seg.id, "error", err)
		}
	})
}

// roll makes sure, as part of batch, that the newest segment can take claims
// at a window time, and drops the segments that have expired.
func (s *Store) roll(batch *pebble.Batch, received, window int64) error {
	if n := len(s.segments); n == 0 || s.segments[n-1].full(received, segmentSpan(window)) {
		if err := s.addSegment(batch, received); err != nil {
			return err
		}
	}
	for len(s.segments) > 1 {
		old := s.segments[0]
		if received-old.end <= window || old.endPosition > s.trimmed.Load() {
			return nil
		}
		if err := dropSegment(batch, old.id); err != nil {
			return err
		}
		s.segments = s.segments[1:]
	}
	return nil
}

func (s *Store) addSegment(batch *pebble.Batch, received int64) error {
	next := &segment{start: received, end: received, capacity: minSegmentIDs}
	if n := len(s.segments); n > 0 {
		last := s.segments[n-1]
		last.sealed, last.endPosition = true, s.state.Last
		if err := batch.Set(segmentKey(prefixSegment, last.id), last.marshal(), nil); err != nil {
			return fmt.Errorf("seal segment: %w", err)
		}
		s.unsaved = append(s.unsaved, last)
		next.id, next.capacity = last.id+1, last.nextCapacity()
	}
	next.filter = newFilter(next.capacity)
	s.segments = append(s.segments, next)
	if err := batch.Set(segmentKey(prefixSegment, next.id), next.marshal(), nil); err != nil {
		return fmt.Errorf("begin segment: %w", err)
	}
	return nil
}

func dropSegment(batch *pebble.Batch, id uint32) error {
	if err := batch.DeleteRange(segmentKey(prefixClaim, id), segmentKey(prefixClaim, id+1), nil); err != nil {
		return fmt.Errorf("drop claims of segment %d: %w", id, err)
	}
	for _, prefix := range []byte{prefixSegment, prefixFilter} {
		if err := batch.Delete(segmentKey(prefix, id), nil); err != nil {
			return fmt.Errorf("drop segment %d: %w", id, err)
		}
	}
	return nil
}
