package actionpulse_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// once are the operations that must not be sent a second time by themselves:
// changes without a key or an identity, those that write a state that another
// may have written since, and questions about this very moment.
var once = []string{
	"ensureCustomer", "changeCustomer", "publishFlow", "pinFlow", "unpinFlow", "archiveFlow", "unarchiveFlow",
	"cancelExecution", "identify", "getHealth", "getReadiness", "login", "refresh", "logout", "changePassword", "acceptInvitation",
	"createOrganization", "renameOrganization", "setMemberRole", "removeMember", "createInvitation", "revokeInvitation",
	"createProject", "updateProject", "createIngestKey", "importIngestKey", "revokeIngestKey", "rotateIngestKey",
	"createProjectKey", "revokeProjectKey", "rotateProjectKey", "createCIToken", "revokeCIToken", "rotateCIToken",
	"createMarker", "deleteMarker", "putModelProvider", "deleteModelProvider",
	"createAlert", "updateAlert", "deleteAlert", "muteAlert", "unmuteAlert", "resolveAlert",
	"createWebhook", "updateWebhook", "deleteWebhook", "rotateWebhookSecret", "testWebhook", "resendWebhookDelivery", "deleteReplay",
	"createPrivacyJob", "cancelPrivacyJob",
}

// TestWhatIsRepeated: after an answer that was lost every operation is sent
// again with the same bytes and the same key, but those of the list above,
// which are sent once and end in an error that says what is not known.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	reads := []string{"getHealth", "getReadiness"}
	for _, group := range methods {
		for operation, calls := range group {
			s := play(t, hangsUp, says(200, answerTo(operation)))
			err := calls[0](t.Context(), hurried(t, s.URL))
			got := s.requests()
			if operation == "followExecution" {
				continue // the answer is no stream; see TestFollow
			}
			if !slices.Contains(once, operation) {
				if err != nil || len(got) != 2 || got[0].body != got[1].body || got[0].path != got[1].path ||
					got[0].header.Get("Idempotency-Key") != got[1].header.Get("Idempotency-Key") {
					t.Errorf("%s: %d requests, %v", operation, len(got), err)
				}
				continue
			}
			e := asError(t, err)
			want := actionpulse.AppliedUnknown
			if slices.Contains(reads, operation) {
				want = actionpulse.AppliedNo
			}
			if len(got) != 1 || e.Applied != want || e.Attempts != 1 || e.Err == nil {
				t.Errorf("%s: %d requests, %+v", operation, len(got), e)
			}
		}
	}
}

// withoutID is a batch of which one event has no id.
var withoutID = api.TrackRequest{Events: []api.TrackItem{
	{EventID: new(one), Event: "e", UserID: "u"}, {Event: "e", UserID: "u"},
}}

// TestBatchesWithoutIDs: a repeat would store the events a second time.
func TestBatchesWithoutIDs(t *testing.T) {
	t.Parallel()
	s := play(t, hangsUp, says(202, oneTaken))
	_, err := hurried(t, s.URL).Intake.Track(t.Context(), withoutID)
	if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown || len(s.requests()) != 1 {
		t.Errorf("%d requests, %v", len(s.requests()), err)
	}
}

// TestCutShort: a success that does not arrive whole is no answer; the movement
// is asked for again with its key, and was made once.
func TestCutShort(t *testing.T) {
	t.Parallel()
	s := play(t, cutsShort, says(200, `{"movement":{"id":"m-1"}}`, "Idempotency-Replayed", "true"))
	moved, err := hurried(t, s.URL).Customers.Charge(t.Context(), "ada", actionpulse.Move{CreditType: "main", Amount: "1"})
	if err != nil || !moved.Replayed || moved.Movement.ID != "m-1" {
		t.Fatalf("%+v, %v", moved, err)
	}
	got := s.requests()
	if len(got) != 2 || got[0].body != got[1].body || got[0].header.Get("Idempotency-Key") != got[1].header.Get("Idempotency-Key") {
		t.Errorf("%+v", got)
	}
}

// TestApplied says of each way to fail what is known of the change.
func TestApplied(t *testing.T) {
	t.Parallel()
	unavailable := func(applied string) http.HandlerFunc {
		return refuses(503, "unavailable", applied, "X-Should-Retry", "false")
	}
	charge := func(ctx context.Context, c *clients) error {
		return of(c.Customers.Charge(ctx, "ada", actionpulse.Move{}))
	}
	create := func(ctx context.Context, c *clients) error { return of(c.app.Markers.Create(ctx, one, marker)) }
	send := func(ctx context.Context, c *clients) error {
		return of(c.Intake.Track(ctx, api.TrackRequest{Events: []api.TrackItem{{EventID: new(one)}}}))
	}
	read := func(ctx context.Context, c *clients) error { return of(c.Customers.Get(ctx, "ada")) }
	no, yes, unknown := actionpulse.AppliedNo, actionpulse.AppliedYes, actionpulse.AppliedUnknown
	for _, c := range []struct {
		name    string
		call    method
		answers []http.HandlerFunc
		want    actionpulse.Applied
		sent    int
	}{
		{"503, unknown", create, []http.HandlerFunc{unavailable(`,"applied":"unknown"`)}, unknown, 1},
		{"503, nothing said", create, []http.HandlerFunc{unavailable("")}, unknown, 1},
		{"503, applied", create, []http.HandlerFunc{unavailable(`,"applied":true`)}, yes, 1},
		{"503, not applied", create, []http.HandlerFunc{unavailable(`,"applied":false`)}, no, 1},
		{"500", create, []http.HandlerFunc{refuses(500, "internal", "")}, unknown, 1},
		{"500 of a proxy", create, []http.HandlerFunc{says(500, "oops")}, unknown, 1},
		{"404 of a proxy", create, []http.HandlerFunc{says(404, "oops")}, no, 1},
		{"unheard of", create, []http.HandlerFunc{refuses(507, "of_the_future", "")}, unknown, 1},
		{"422", create, []http.HandlerFunc{refuses(422, "validation_failed", "")}, no, 1},
		{"of an execution", charge, []http.HandlerFunc{refuses(409, "conflict", `,"execution_id":"x-1"`)}, no, 1},
		{"reads", read, []http.HandlerFunc{says(502, "")}, no, 3},
		{"events, 500", send, []http.HandlerFunc{refuses(500, "internal", "")}, no, 3},
		{"events, lost", send, []http.HandlerFunc{hangsUp}, unknown, 3},
		{"key, lost", charge, []http.HandlerFunc{hangsUp}, unknown, 3},
		{"key, lost and then refused for another reason", charge, []http.HandlerFunc{hangsUp, refuses(401, "unauthenticated", "")}, unknown, 2},
		{"key, lost and then free", charge, []http.HandlerFunc{hangsUp, refuses(402, "insufficient_credits", `,"key":"free"`)}, no, 2},
		{"key, lost and then of other work", charge, []http.HandlerFunc{hangsUp, refuses(409, "idempotency_conflict", `,"key":"taken"`)}, no, 2},
	} {
		s := play(t, c.answers...)
		e := asError(t, c.call(t.Context(), hurried(t, s.URL)))
		if e.Applied != c.want || e.Attempts != c.sent || len(s.requests()) != c.sent {
			t.Errorf("%s: %s after %d attempts of %d, want %s after %d: %v", c.name, e.Applied, e.Attempts, len(s.requests()), c.want, c.sent, e)
		}
		if says := holds(e, "outcome is unknown"); says != (c.want == unknown) {
			t.Errorf("%s: %v", c.name, e)
		}
	}
}

// TestNeverSent: if no connection was there, nothing can have been done.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, something))
	s.Close()
	_, err := hurried(t, s.URL).app.Markers.Create(t.Context(), one, marker)
	if e := asError(t, err); e.Applied != actionpulse.AppliedNo || !e.Retryable {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = hurried(t, s.URL).app.Markers.Create(ctx, one, marker)
	if e := asError(t, err); e.Applied != actionpulse.AppliedNo || !holds(err, context.Canceled.Error()) {
		t.Errorf("%+v", e)
	}
}
