package intakestore

import (
	"encoding/binary"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// The key spaces, each under a prefix of one byte. Integers are big-endian, so
// that keys sort by value.
//
//	r position                       → encoded record
//	c segment project kind event_id  → ms since the segment began, fingerprint
//	s segment                        → when and where the segment began and ended
//	f segment                        → the segment's filter, once it is sealed
//	m "identity"                     → identity of the data folder
//	m "state"                        → last position, window time and window
//	m "rebuilding"                   → there while the claims are being rebuilt
const (
	prefixRecord  = 'r'
	prefixClaim   = 'c'
	prefixSegment = 's'
	prefixFilter  = 'f'
	prefixMeta    = 'm'
)

const (
	identitySize   = 4 + 1 + 16
	claimKeySize   = 1 + 4 + identitySize
	claimValueSize = 4 + 4
)

var (
	keyIdentity = []byte("midentity")
	keyState    = []byte("mstate")
	// keyRebuilding is there while the claims are being rebuilt.
	keyRebuilding = []byte("mrebuilding")
)

func recordKey(position uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixRecord}, position)
}

func segmentKey(prefix byte, segment uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefix}, segment)
}

func putIdentity(b []byte, id record.Identity) {
	binary.BigEndian.PutUint32(b, id.Project)
	b[4] = byte(id.KeyKind)
	copy(b[5:], id.EventID[:])
}

func putClaimKey(b []byte, segment uint32, id record.Identity) {
	b[0] = prefixClaim
	binary.BigEndian.PutUint32(b[1:], segment)
	putIdentity(b[5:], id)
}

func parseClaimKey(b []byte) (segment uint32, id record.Identity) {
	segment = binary.BigEndian.Uint32(b[1:])
	id.Project = binary.BigEndian.Uint32(b[5:])
	id.KeyKind = record.KeyKind(b[9])
	copy(id.EventID[:], b[10:])
	return segment, id
}

func putClaimValue(b []byte, segmentStart int64, c dedup.Claim) {
	binary.BigEndian.PutUint32(b, uint32(c.Received-segmentStart))
	binary.BigEndian.PutUint32(b[4:], c.Fingerprint)
}

func parseClaimValue(b []byte, segmentStart int64) dedup.Claim {
	return dedup.Claim{
		Received:    segmentStart + int64(binary.BigEndian.Uint32(b)),
		Fingerprint: binary.BigEndian.Uint32(b[4:]),
	}
}

// prefixEnd is the first key after all keys of a prefix.
func prefixEnd(prefix byte) []byte { return []byte{prefix + 1} }
