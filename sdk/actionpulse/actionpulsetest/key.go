package actionpulsetest

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// keyRefusal is the refusal that stands for one by the key layer.
func keyRefusal(e *idempotency.Error) *refusal {
	f := refuse(api.Code(e.Refusal.Code), e.Refusal.Message).with("header", idempotency.Header)
	f.status = e.Refusal.Status
	if e.Problem != idempotency.Mismatch {
		return f
	}
	f = f.with("differs", e.Differs).with("unit", api.Unit{Kind: e.Record.Resource.Kind, ID: e.Record.Resource.ID})
	if e.SameJSON {
		f = f.with("same_json", true)
	}
	return f
}

// asked is what the key layer knows of a request.
func (s *Server) asked(x *exchange, policy *idempotency.Policy, facts ...idempotency.Fact) *idempotency.Request {
	return &idempotency.Request{Policy: policy, Scope: s.ProjectID, Key: x.key, Facts: facts, Body: x.body}
}

// judge returns what the request's key names, nil if it is free. It refuses when
// the key names other work. What comes is counted.
func (s *Server) judge(x *exchange, r *idempotency.Request) (*idempotency.Result, error) {
	record := s.keys[r.Ref()]
	if record == nil {
		x.fate = api.KeyFree
		return nil, nil //nolint:nilnil // a free key is no error
	}
	j := idempotency.Judge(r, record, s.time())
	result, err := j.Resolve(r, *record)
	if err != nil {
		record.Conflicts++
		x.fate = api.KeyTaken
		f := keyRefusal(err.(*idempotency.Error)) //nolint:errorlint,forcetypeassert // Resolve returns no other
		if status := s.statusOf(record.Resource); status != "" {
			f = f.with("unit", api.Unit{Kind: record.Resource.Kind, ID: record.Resource.ID, Status: status})
		}
		return nil, f
	}
	record.Repeats++
	x.replayed()
	return &result, nil
}

// take notes that a request's key names what was made. answer is what is kept
// for repeats, nil if they get the resource as it is.
func (s *Server) take(r *idempotency.Request, made idempotency.Resource, answer *idempotency.Answer) {
	now := s.time()
	record := &idempotency.Record{
		Ref: r.Ref(), State: idempotency.Done, Print: r.Policy.Compare.Print(r), Answer: answer, Resource: made, CreatedAt: now,
	}
	if r.Policy.Retention.Tombstone != nil {
		record.Tombstone = r.Policy.Retention.Tombstone.Print(r)
	}
	if answer != nil && r.Policy.Retention.Answer > 0 {
		record.AnswerExpiresAt = now.Add(r.Policy.Retention.Answer)
	}
	s.keys[r.Ref()] = record
}

// statusOf is the state of a unit of keyed work; empty for a marker.
func (s *Server) statusOf(r idempotency.Resource) string {
	if r.Kind == markerKind {
		return ""
	}
	if e := s.runsOf.byID[r.ID]; e != nil {
		return e.wire.Status
	}
	if m := s.ledger.movement(r.ID); m != nil && m.undo != nil {
		return "reversed"
	}
	return "succeeded"
}

// known is what is said of a key.
func known(r *idempotency.Record, status string) api.IdempotencyKey {
	return api.IdempotencyKey{
		Key: r.Key, Unit: api.Unit{Kind: r.Resource.Kind, ID: r.Resource.ID, Status: status},
		FirstSeenAt: api.TimeText(r.CreatedAt), Repeats: r.Repeats, Conflicts: r.Conflicts,
		ResponseExpiresAt: api.OptionalTime(r.AnswerExpiresAt),
	}
}

var errNeverUsed = refuse(api.CodeNotFound, "this Idempotency-Key has never been used")

// findKey says what a key of keyed work names.
func (s *Server) findKey(x *exchange) (reply, error) {
	key, err := x.text("key")
	if err != nil {
		return reply{}, err
	}
	if key == "" {
		return reply{}, invalidField("key", "is required")
	}
	record := s.keys[idempotency.Ref{Scope: s.ProjectID, Namespace: executePolicy.Namespace, Key: key}]
	if record == nil {
		return reply{}, errNeverUsed
	}
	return jsonReply(http.StatusOK, known(record, s.statusOf(record.Resource)))
}
