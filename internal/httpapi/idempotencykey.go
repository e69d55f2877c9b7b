package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

var findKeyOperation = operation{
	id: "findIdempotencyKey", tag: tagKeyedWork, summary: "Look up what an Idempotency-Key names",
	description: "The unit of work that a key of keyed work names in the project, and how often it was seen again. " +
		"Keys of release markers are looked up in the list of markers.",
	params:  []param{requiredText("key", "The Idempotency-Key, percent-encoded.")},
	replies: replyOK("What is known of the key.", api.IdempotencyKey{}),
	errors:  codes(api.CodeNotFound, api.CodeValidationFailed),
}

// findKey says what a key of keyed work names.
func (s *service) findKey(x *exchange) (answer, error) {
	key, err := x.text("key")
	if err != nil {
		return answer{}, err
	}
	unit, err := s.Work.Find(x.r.Context(), x.caller.ProjectID, key)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, keyOf(&unit.Record, unit.Status))
}

// keyOf is what is said of a key that names a unit of work in a state.
func keyOf(r *idempotency.Record, status string) *api.IdempotencyKey {
	return &api.IdempotencyKey{
		Key: r.Key, Unit: api.Unit{Kind: r.Resource.Kind, ID: r.Resource.ID, Status: status},
		FirstSeenAt: api.TimeText(r.CreatedAt), Repeats: r.Repeats, Conflicts: r.Conflicts,
		ResponseExpiresAt: api.OptionalTime(r.AnswerExpiresAt),
	}
}
