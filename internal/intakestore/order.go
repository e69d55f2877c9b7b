package intakestore

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// claimRef names an item of a group by the beginning of its id.
type claimRef struct {
	prefix      uint64
	entry, item int32
}

// putClaims writes the claims of a group in the order of their ids. The
// engine's memory table is an ordered list: inserting neighbours one after the
// other visits the same few nodes, while random ids miss the processor's caches
// at each step.
func (s *Store) putClaims(batch *pebble.Batch, g Group) error {
	s.sortClaims(g)
	seg := s.segments[len(s.segments)-1]
	for _, ref := range s.order {
		e := &g.Entries[ref.entry]
		it := &e.Items[ref.item]
		id := record.Identity{Project: e.Header.Project, KeyKind: e.Header.KeyKind, EventID: it.EventID}
		if err := putClaim(batch, seg, id, dedup.Claim{Received: g.Received, Fingerprint: it.Fingerprint}); err != nil {
			return err
		}
		seg.filter.add(identityHash(s.seed, id))
	}
	return nil
}

// sortClaims fills order with the group's claims. Eight bytes of the id order
// them well enough: nothing but speed depends on it.
func (s *Store) sortClaims(g Group) {
	s.order = s.order[:0]
	for i := range g.Entries {
		items := g.Entries[i].Items
		for j := range items {
			if items[j].Claimed {
				s.order = append(s.order, claimRef{binary.BigEndian.Uint64(items[j].EventID[:]), int32(i), int32(j)})
			}
		}
	}
	slices.SortFunc(s.order, func(a, b claimRef) int { return cmp.Compare(a.prefix, b.prefix) })
}
