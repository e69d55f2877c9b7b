package intake

import (
	"github.com/cespare/xxhash/v2"

	"github.com/actionpulse/actionpulse/internal/record"
)

// fingerprint is a short hash of what an item says. Transport is not part of
// it: neither the spelling of the JSON nor sent_at nor the key. Two items of
// one identity with different fingerprints are reported as conflicting; the
// first write wins either way, so a chance collision costs a count, no data.
func fingerprint(it *record.Item, properties, context uint64) uint32 {
	h := xxhash.Sum64String(it.Event)
	for _, s := range []string{it.AnonID, it.UserID, it.SessionID} {
		h = mix(h, xxhash.Sum64String(s))
	}
	if it.HasTS {
		h = mix(h, uint64(it.ClientTS))
	}
	h = mix(mix(h, properties), context)
	return uint32(h ^ h>>32)
}
