// Package e2e_test asks the whole server, over HTTP and with real stores, what
// the field reported as going wrong elsewhere.
package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// rows returns every stored event, newest first, once everything acknowledged
// is stored.
func rows(t *testing.T, r *apptest.Running) []map[string]any {
	t.Helper()
	var all []map[string]any
	cursor := ""
	for {
		body := `{"type":"events","limit":200}`
		if cursor != "" {
			body = fmt.Sprintf(`{"type":"events","limit":200,"cursor":%q}`, cursor)
		}
		answer := query(t, r, body)
		items, ok := answer["items"].([]any)
		if !ok {
			t.Fatalf("got %v", answer)
		}
		for _, it := range items {
			all = append(all, it.(map[string]any)) //nolint:forcetypeassert // a panic says as much
		}
		next, more := answer["next_cursor"].(string)
		if !more {
			return all
		}
		cursor = next
	}
}

// query asks until everything acknowledged before the call is in the answer.
func query(t *testing.T, r *apptest.Running, body string) map[string]any {
	t.Helper()
	began := time.Now()
	var answer map[string]any
	eventually(t, func() bool {
		var status int
		status, answer = r.Post("/api/v1/projects/"+r.Setup.Project.ID+"/query", r.Setup.AccessToken, body)
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		through, err := time.Parse(time.RFC3339, answer["stored_through"].(string)) //nolint:forcetypeassert // as above
		if err != nil {
			t.Fatal(err)
		}
		return !through.Before(began)
	})
	return answer
}

func countOf(rows []map[string]any, member string, value any) int {
	n := 0
	for _, row := range rows {
		if row[member] == value {
			n++
		}
	}
	return n
}

func expect(t *testing.T, status int, answer map[string]any, accepted, duplicates float64, rejected int) {
	t.Helper()
	list, ok := answer["rejected"].([]any)
	if status != http.StatusAccepted || !ok || answer["accepted"] != accepted || answer["duplicates"] != duplicates || len(list) != rejected {
		t.Fatalf("%d %v, want accepted %v, duplicates %v, rejected %d", status, answer, accepted, duplicates, rejected)
	}
}

func TestUUIDForms(t *testing.T) {
	r := apptest.New(t).MustServe()
	const id = "8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f"
	plain := strings.ReplaceAll(id, "-", "")
	item := func(eventID string) string {
		return `{"events":[{"event_id":` + eventID + `,"event":"e","anon_id":"a"}]}`
	}
	for i, form := range []string{id, plain, "{" + id + "}", "urn:uuid:" + id, strings.ToUpper(id), "URN:UUID:" + strings.ToUpper(id), "{" + strings.ToUpper(id) + "}"} {
		duplicates := 1.0
		if i == 0 {
			duplicates = 0
		}
		status, answer := r.Post("/v1/track", r.Setup.ServerKey, item(fmt.Sprintf("%q", form)))
		expect(t, status, answer, 1, duplicates, 0)
	}
	for _, bad := range []string{
		`"x` + id + `y"`, `" ` + id + ` "`, `"` + uuid.Nil.String() + `"`, `"` + uuid.Max.String() + `"`, `"` + id[:35] + `"`,
		`"` + id + `\n"`, `"` + strings.ReplaceAll(id, "-", "_") + `"`, `""`, `42`,
	} {
		status, answer := r.Post("/v1/track", r.Setup.ServerKey, item(bad))
		expect(t, status, answer, 0, 0, 1)
		if code := answer["rejected"].([]any)[0].(map[string]any)["code"]; code != "invalid_event_id" { //nolint:forcetypeassert // a panic says as much
			t.Errorf("%s: %v", bad, code)
		}
	}
	for range 2 {
		status, answer := r.Post("/v1/track", r.Setup.ServerKey, item("null"))
		expect(t, status, answer, 1, 0, 0)
	}
	stored := rows(t, r)
	if len(stored) != 3 || countOf(stored, "event_id", id) != 1 {
		t.Errorf("stored %v", stored)
	}
}

func TestTenantsAndKinds(t *testing.T) {
	r := apptest.New(t).MustServe()
	id := uuid.NewString()
	body := `{"events":[{"event_id":"` + id + `","event":"e","anon_id":"a|b","user_id":"1:server:` + id + `"}]}`
	for _, key := range []string{r.Setup.ServerKey, r.Setup.BrowserToken, r.Setup.LegacyKey} {
		status, answer := r.Post("/v1/track", key, body)
		expect(t, status, answer, 1, 0, 0)
		status, answer = r.Post("/v1/track", key, body)
		expect(t, status, answer, 1, 1, 0)
	}
	stored := rows(t, r)
	for _, kind := range []string{"server", "browser", "legacy"} {
		if countOf(stored, "key_kind", kind) != 1 {
			t.Errorf("%s: %v", kind, stored)
		}
	}
}

func TestOnlyTheRightCredentialsMaySend(t *testing.T) {
	r := apptest.New(t).MustServe()
	body := `{"events":[{"event":"e","anon_id":"a"}]}`
	for _, secret := range []string{r.Setup.ProjectKey, r.Setup.CIToken, r.Setup.AccessToken} {
		if status, answer := r.Post("/v1/track", secret, body); status != http.StatusForbidden {
			t.Errorf("%d %v", status, answer)
		}
	}
	if status, answer := r.Post("/v1/track", "aps_nonsense", body); status != http.StatusUnauthorized {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := r.Post("/v1/alias", r.Setup.BrowserToken, `{"anon_id":"a","user_id":"u"}`); status != http.StatusForbidden {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := r.Post("/v1/track", r.Setup.BrowserToken, `{"historical":true,"events":[{"event":"e","anon_id":"a"}]}`); status != http.StatusForbidden {
		t.Errorf("%d %v", status, answer)
	}
	if stored := rows(t, r); len(stored) != 0 {
		t.Errorf("something was stored: %v", stored)
	}
}

// A beacon cannot set headers: text/plain, the token in the query, and the
// same events again by fetch are stored once.
func TestBeacons(t *testing.T) {
	r := apptest.New(t).MustServe()
	beacon := func() string {
		var items []string
		for len(strings.Join(items, ",")) < 35<<10 {
			items = append(items, fmt.Sprintf(`{"event_id":%q,"event":"page_hide","anon_id":"a","properties":{"pad":%q}}`, uuid.NewString(), strings.Repeat("x", 500)))
		}
		return `{"events":[` + strings.Join(items, ",") + `]}`
	}
	sent := 0
	for range 2 {
		body := beacon()
		response, err := http.Post(r.URL+"/v1/track?key="+r.Setup.BrowserToken, "text/plain;charset=UTF-8", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); errors.Join(err, response.Body.Close()) != nil || response.StatusCode != http.StatusAccepted {
			t.Fatalf("%d %v", response.StatusCode, err)
		}
		n := strings.Count(body, "event_id")
		sent += n
		status, answer := r.Post("/v1/track", r.Setup.BrowserToken, body)
		expect(t, status, answer, float64(n), float64(n), 0)
	}
	if stored := rows(t, r); len(stored) != sent {
		t.Errorf("%d stored, %d sent", len(stored), sent)
	}
	if status, _ := r.Post("/v1/track?key="+r.Setup.ServerKey, "", `{}`); status != http.StatusUnauthorized {
		t.Errorf("a server key in a URL was taken: %d", status)
	}
}

func TestIdentifyFiveTimes(t *testing.T) {
	r := apptest.New(t).MustServe()
	for range 5 {
		if status, answer := r.Post("/v1/identify", r.Setup.ServerKey, `{"anon_id":"a","user_id":"u","traits":{"plan":"pro"}}`); status != http.StatusAccepted {
			t.Fatalf("%d %v", status, answer)
		}
		if status, answer := r.Post("/v1/alias", r.Setup.ServerKey, `{"anon_id":"a","user_id":"u"}`); status != http.StatusAccepted {
			t.Fatalf("%d %v", status, answer)
		}
	}
	status, answer := r.Post("/v1/track", r.Setup.ServerKey, `{"events":[{"event":"e","anon_id":"a"}]}`)
	expect(t, status, answer, 1, 0, 0)
	stored := rows(t, r)
	if countOf(stored, "event", "identify") != 5 || countOf(stored, "event", "e") != 1 || len(stored) != 6 {
		t.Fatalf("stored %v", stored)
	}
	if countOf(stored, "person", "u") != 6 {
		t.Errorf("the anonymous event is not the user's: %v", stored)
	}
}

// Times as clients send them, wrong ones too: one rule each, and a repeat gets
// the same verdict.
func TestUnitsOfTime(t *testing.T) {
	r := apptest.New(t).MustServe()
	now := time.Now().UTC()
	ahead := func(d time.Duration) string { return fmt.Sprintf("%q", now.Add(d).Format(time.RFC3339)) }
	tests := []struct{ name, ts, sentAt, status string }{
		{"seconds", fmt.Sprint(now.Unix()), "", "invalid_timestamp"},
		{"year 5138", "100000000000000", "", "clamped_future"},
		{"1970", `"1970-01-01T00:00:00Z"`, "", "clamped_past"},
		{"23 h ahead", ahead(23 * time.Hour), "", "clamped_future"},
		{"7 years ago", ahead(-7 * 365 * 24 * time.Hour), "", "clamped_past"},
		{"a clock 7 days behind", ahead(-169 * time.Hour), ahead(-168 * time.Hour), "skew_corrected"},
		{"a clock 7 days ahead", ahead(167 * time.Hour), ahead(168 * time.Hour), "skew_corrected"},
		{"none", "null", "", "absent"},
		{"now", ahead(0), ahead(0), "ok"},
	}
	for _, tt := range tests {
		id := uuid.NewString()
		body := `{"events":[{"event_id":"` + id + `","event":"e","anon_id":"a","ts":` + tt.ts + `}]}`
		if tt.sentAt != "" {
			body = `{"sent_at":` + tt.sentAt + `,` + body[1:]
		}
		for repeat := range 2 {
			status, answer := r.Post("/v1/track", r.Setup.ServerKey, body)
			if tt.status == "invalid_timestamp" {
				expect(t, status, answer, 0, 0, 1)
			} else {
				expect(t, status, answer, 1, float64(repeat), 0)
			}
		}
		for _, row := range rows(t, r) {
			if row["event_id"] == id && row["ts_status"] != tt.status {
				t.Errorf("%s: %v", tt.name, row)
			}
		}
	}
}

// The window is a setting of the server, so a short one shows all of it.
func TestWindowOverHTTP(t *testing.T) {
	t.Parallel()
	const window = 5 * time.Minute
	clock := &still{wall: time.Now()}
	site := apptest.New(t, "--intake.window", window.String())
	site.Clock = clock
	r := site.MustServe()
	id := uuid.NewString()
	mustBe := func(duplicates float64) {
		t.Helper()
		if a := r.Track(id); a["duplicates"] != duplicates {
			t.Fatalf("after %v: %v", clock.Elapsed(), a)
		}
	}
	mustBe(0)
	mustBe(1)
	clock.pass(window / 2)
	mustBe(1) // which does not extend it
	r.MustStop()
	r = site.MustServe()
	clock.pass(window / 2) // its end is within
	mustBe(1)
	clock.pass(time.Millisecond)
	mustBe(0)
	mustBe(1)
	r.MustStop()
	if report := site.Verify(); !report.OK || report.Rows != 2 {
		t.Errorf("got %+v", report)
	}
}

// still is a clock that goes when a test says so.
type still struct {
	wall    time.Time
	elapsed atomic.Int64
}

func (c *still) Wall() time.Time { return c.wall.Add(c.Elapsed()) }

func (c *still) Elapsed() time.Duration { return time.Duration(c.elapsed.Load()) }

func (c *still) pass(d time.Duration) { c.elapsed.Add(int64(d)) }

// inTime does what must be done before a time that is over soon, and again with
// a later one while it says that it came too late.
func inTime(do func(end time.Time) bool) {
	wait := 400 * time.Millisecond
	for !do(time.Now().Add(wait).UTC()) {
		wait *= 2
	}
}
