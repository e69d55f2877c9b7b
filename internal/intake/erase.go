package intake

import (
	"context"

	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Person names whom an erasure is about. Exactly one id is set.
type Person = record.Person

// Erase adds an erasure to the project's stream: everything of the person that
// was acknowledged before it will be taken away when the event store comes to
// its position, and what is acknowledged after it stays. It returns that
// position once the erasure is on disk; asking again adds another one, which
// does no harm. The claims of what is taken away stay until their window has
// passed. Errors: 422 validation_failed (not exactly one id of 1 to 200
// characters), else as for Track: 500 internal, 503 unavailable, ErrNoAnswer.
//
// A position alone does not prove that the erasure was applied: a repair may
// have given it up with other lost records, and its position is then somebody
// else's. eventstore.(*Store).ErasureState tells.
func (s *Service) Erase(_ context.Context, project uint32, p Person) (position uint64, err error) {
	if !p.Valid() || !validID(p.UserID+p.AnonID) {
		return 0, fault.Field("user_id", "exactly one of user_id and anon_id must be a string of 1 to %d characters", maxIDRunes)
	}
	it := record.Item{Type: record.ItemErase, EventID: newEventID(), UserID: p.UserID, AnonID: p.AnonID}
	encoded := record.AppendItem(nil, &it)
	sub := &submission{
		header: record.Record{Project: project},
		items:  []intakestore.Item{{EventID: it.EventID, Encoded: encoded}},
		bytes:  len(encoded),
	}
	if err := s.sequencer.submit(sub); err != nil {
		return 0, err
	}
	s.debug.forget(project, sub.received)
	return sub.position, nil
}
