// Package identity owns the rules that say whose event an event is: person
// numbers, and what links between an anon id and users mean over time. It is
// pure: it stores nothing, looks nothing up and knows no clock.
//
// Invariants:
//   - a person number depends on the store, the project, the kind of the id
//     and the id, and on nothing else;
//   - the spans of one anon id are disjoint and, if there is any link, cover
//     all time, so that every event resolves to exactly one person.
package identity

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dchest/siphash"
)

// Numberer gives persons their numbers: a keyed 64-bit hash, so that rows can
// be stored without looking anybody up and nobody outside can choose ids that
// collide. Among ten million persons of a project two share a number with a
// probability of about 3 in a million.
type Numberer struct {
	k0, k1 uint64
}

// The two name spaces of external ids.
const (
	userSpace = 1
	anonSpace = 2
)

// NewNumberer returns the numberer of the store with the given identity.
func NewNumberer(store [16]byte) Numberer {
	sum := sha256.Sum256(append([]byte("actionpulse person numbers\x00"), store[:]...))
	return Numberer{
		k0: binary.LittleEndian.Uint64(sum[:8]),
		k1: binary.LittleEndian.Uint64(sum[8:16]),
	}
}

// User returns the person number of a user id.
func (n Numberer) User(project uint32, userID string) int64 {
	return n.number(userSpace, project, userID)
}

// Anon returns the person number of an anon id.
func (n Numberer) Anon(project uint32, anonID string) int64 {
	return n.number(anonSpace, project, anonID)
}

func (n Numberer) number(space byte, project uint32, id string) int64 {
	var local [256]byte
	buf := append(local[:0], space)
	buf = binary.LittleEndian.AppendUint32(buf, project)
	buf = append(buf, id...)
	return int64(siphash.Hash(n.k0, n.k1, buf))
}
