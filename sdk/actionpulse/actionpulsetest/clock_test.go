package actionpulsetest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const oneEvent = `{"events":[{"event":"e","user_id":"u","event_id":"0197d6a4-5f0e-7cc2-9d33-2f5b0f0c1a01"}]}`

// demand sends a request and demands a status and a part of the body.
func demand(t *testing.T, s *actionpulsetest.Server, request, credential, body string, want int, part string) {
	t.Helper()
	if status, answer := ask(t, s, request, credential, body); status != want || !strings.Contains(answer, part) {
		t.Errorf("%s: %d %s, want %d with %s", request, status, answer, want, part)
	}
}

// TestTheWindow: an id is known for 48 hours from its first acceptance, which
// repeats do not extend, and at their very end.
func TestTheWindow(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t, actionpulsetest.WithTime(noon))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, `"duplicates":0`},
		{time.Hour, `"duplicates":1`},
		{47*time.Hour + 59*time.Minute, `"duplicates":1`},
		{48 * time.Hour, `"duplicates":1`},
		{48*time.Hour + time.Minute, `"duplicates":0`},
		{96 * time.Hour, `"duplicates":1`},
	} {
		s.SetTime(noon.Add(c.after))
		demand(t, s, "POST /v1/track", s.ServerKey, oneEvent, http.StatusAccepted, c.want)
	}
	events := s.Events()
	if len(events) != 2 || !events[0].ReceivedAt.Equal(noon) || events[0].KeyKind != "server" || events[0].UserID != "u" {
		t.Errorf("%+v", events)
	}
}

// TestTimesOfEvents: what the server's clock makes of what a client says.
func TestTimesOfEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, request, item, want, status string }{
		{"none", ``, ``, "2026-05-01T12:00:00Z", "absent"},
		{"transit", `"sent_at":"2026-05-01T11:56:00Z",`, `,"ts":"2026-05-01T11:55:00Z"`, "2026-05-01T11:55:00Z", "ok"},
		{"skew", `"sent_at":"2026-05-01T13:00:00Z",`, `,"ts":"2026-05-01T12:59:00Z"`, "2026-05-01T11:59:00Z", "skew_corrected"},
		{"48 hours", ``, `,"ts":"2026-04-29T12:00:00Z"`, "2026-04-29T12:00:00Z", "ok"},
		{"longer", ``, `,"ts":"2026-04-29T11:59:59Z"`, "2026-05-01T12:00:00Z", "clamped_past"},
		{"5 minutes ahead", ``, `,"ts":"2026-05-01T12:05:00Z"`, "2026-05-01T12:05:00Z", "ok"},
		{"further ahead", ``, `,"ts":1777637101000`, "2026-05-01T12:00:00Z", "clamped_future"},
		{"historical", `"historical":true,"sent_at":"2026-05-01T13:00:00Z",`, `,"ts":"2019-01-01T00:00:00Z"`, "2019-01-01T00:00:00Z", "ok"},
		{"historical, ahead", `"historical":true,`, `,"ts":"2027-01-01T00:00:00Z"`, "2026-05-01T12:00:00Z", "clamped_future"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := actionpulsetest.NewServer(t, actionpulsetest.WithTime(noon))
			body := `{` + c.request + `"events":[{"event":"e","user_id":"u"` + c.item + `}]}`
			demand(t, s, "POST /v1/track", s.ServerKey, body, http.StatusAccepted, `"accepted":1`)
			if e := s.Events()[0]; e.TS.Format(time.RFC3339) != c.want || e.TSStatus != c.status {
				t.Errorf("%s %s, want %s %s", e.TS.Format(time.RFC3339), e.TSStatus, c.want, c.status)
			}
		})
	}
}

// TestTokensEnd: an access token works for an hour, a refresh token for 30 days.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	list := "GET /api/v1/projects/" + s.ProjectID + "/release-markers"
	s.Advance(59 * time.Minute)
	demand(t, s, list, s.AccessToken, "", http.StatusOK, `"items":[]`)
	s.Advance(time.Minute)
	demand(t, s, list, s.AccessToken, "", http.StatusUnauthorized, `"token_expired"`)
	s.Advance(29 * 24 * time.Hour)
	refresh := `{"refresh_token":"` + s.RefreshToken + `"}`
	s.Advance(23 * time.Hour)
	s.Advance(time.Hour)
	demand(t, s, "POST /api/v1/auth/refresh", "", refresh, http.StatusUnauthorized, `"unauthenticated"`)
	s.Advance(-24 * time.Hour)
	demand(t, s, "POST /api/v1/auth/refresh", "", refresh, http.StatusOK, `"access_token"`)
}

// TestWhatTimeTakes: holds let go, and what is left of grants goes, but for what
// is held.
func TestWhatTimeTakes(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t, actionpulsetest.WithTime(noon))
	demand(t, s, "POST /v1/customers/ada/topup t1", s.ProjectKey,
		`{"credit_type":"main","amount":"10","expires_at":"2026-05-02T12:00:00Z"}`, http.StatusOK, `"posted":"10"`)
	demand(t, s, "PUT /v1/customers/ada/holds/h", s.ProjectKey,
		`{"credit_type":"main","amount":"4","expires_at":"2026-05-03T12:00:00Z"}`, http.StatusCreated, `"available":"6"`)
	s.Advance(24*time.Hour - time.Millisecond)
	if b := s.Balance("ada", "main"); b.Available != "6" {
		t.Errorf("%+v before anything expires", b)
	}
	s.Advance(time.Millisecond)
	if b := s.Balance("ada", "main"); b.Posted != "4" || b.Held != "4" {
		t.Errorf("%+v when the grant has expired", b)
	}
	s.Advance(24 * time.Hour)
	if b := s.Balance("ada", "main"); b.Posted != "0" || b.Held != "0" {
		t.Errorf("%+v when the hold has expired", b)
	}
	demand(t, s, "GET /v1/customers/ada/holds/h", s.ProjectKey, "", http.StatusOK, `"state":"expired"`)
	demand(t, s, "POST /v1/customers/ada/holds/h/capture", s.ProjectKey, "", http.StatusConflict, `"state":"expired"`)
	if m := s.Movements("ada"); len(m) != 3 || m[1].Kind != "expiry" || m[1].Delta != "-6" || m[2].Delta != "-4" || m[2].BalanceAfter != "0" {
		t.Errorf("%+v", m)
	}
}

// TestAnswersAreKeptForADay: then a repeat gets the movement and the present
// balance.
func TestAnswersAreKeptForADay(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	charge := `{"credit_type":"main","amount":"1"}`
	s.Give("ada", "main", "10")
	demand(t, s, "POST /v1/customers/ada/charge c", s.ProjectKey, charge, http.StatusOK, `"posted":"9"`)
	demand(t, s, "POST /v1/customers/ada/charge c2", s.ProjectKey, charge, http.StatusOK, `"posted":"8"`)
	s.Advance(23 * time.Hour)
	demand(t, s, "POST /v1/customers/ada/charge c", s.ProjectKey, charge, http.StatusOK, `"posted":"9"`)
	s.Advance(time.Hour)
	demand(t, s, "POST /v1/customers/ada/charge c", s.ProjectKey, charge, http.StatusOK, `"response_expired":true`)
	if b := s.Balance("ada", "main"); b.Posted != "8" {
		t.Errorf("%+v", b)
	}
}
