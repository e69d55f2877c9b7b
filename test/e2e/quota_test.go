package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

// plans are those of a server with quotas. By default there is none.
var plans = []string{"--plans", `{"trial": {"events": 1, "trial": true}, "one": {"events": 1}, "three": {"events": 3}, "hundred": {"events": 100}, "kilobyte": {"storage": "1KB"}, "two kilobytes": {"storage": "2KB"}, "recordings": {"storage": "20KB"}, "trials": {"storage": "20KB", "trial": true}, "paid": {}}`}

// give gives an organization a plan, as the operator does.
func give(t *testing.T, r *apptest.Running, organization, plan string) {
	t.Helper()
	operate(t, r, func(p app.OrganizationParams) error {
		return app.SetOrganizationPlan(t.Context(), p, organization, plan)
	})
}

// exhausted uses up a plan of an organization of its own, and asks for more.
func exhausted(plan string) cause {
	return func(t *testing.T, r *apptest.Running) refusal {
		there, theirs := elsewhere(t, r)
		key := theirs.must(t, 201, "POST", "/api/v1/projects/"+there.project+"/ingest-keys", `{"name":"k","kind":"server"}`).text(t, "token")
		give(t, r, there.organization, plan)
		caller{r, key}.must(t, 202, "POST", "/v1/track", goodBatch)
		return send(t, "POST", r.URL+"/v1/track", key, strings.NewReader(goodBatch))
	}
}

// usage is what the usage of an organization is, by name.
type usage struct {
	Month  string
	Plan   *struct{ Name string }
	Events struct {
		Used  int
		Limit *int
	}
	Storage struct {
		Used  int
		Limit *int
	}
	ResetsAt string `json:"resets_at"`
	Projects []struct {
		Name            string
		Events, Storage int
	}
}

func usageOf(t *testing.T, c caller, query string) (u usage) {
	t.Helper()
	s := c.must(t, 200, "GET", own(c.r)+"/usage"+query, "")
	content, err := json.Marshal(s.body)
	if err == nil {
		err = json.Unmarshal(content, &u)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestQuota: it is spent exactly, the answer is lost, and the repeat costs
// nothing. What was refused is new under another plan, which counts at once.
func TestQuota(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, plans, func(t *testing.T, r *apptest.Running) {
		key := caller{r, r.Setup.ServerKey}
		r.TrackNew(1)
		if u := usageOf(t, owner(r), ""); u.Plan != nil || u.Events.Used != 1 || u.Events.Limit != nil || u.Storage.Limit != nil || u.Storage.Used < 20 {
			t.Errorf("without a plan: %+v", u)
		}
		give(t, r, r.Setup.OrganizationID, "three")
		key.mustTrack(t, event1, false)
		key.must(t, 202, "POST", "/v1/identify", `{"anon_id":"a","user_id":"u"}`)
		for range 3 {
			key.mustTrack(t, event1, true)
		}
		refused := key.refused(t, "quota_exceeded", "POST", "/v1/track", trackBody(event1, event2))
		month := time.Now().UTC().Format("2006-01")
		next, err := time.Parse(time.RFC3339, fmt.Sprint(refused.detail("resets_at")))
		if err != nil || next.UTC().Format("2006-01") == month || next.AddDate(0, 0, -1).Format("2006-01") != month || next.Day() != 1 {
			t.Errorf("resets_at %v in %s", refused.detail("resets_at"), month)
		}
		if refused.status != 429 || refused.header.Get("Retry-After") != "" || refused.header.Get("X-Should-Retry") != "false" ||
			refused.detail("retryable") != false || refused.detail("resource") != "events" || refused.detail("limit") != 3.0 {
			t.Errorf("%d %v %v", refused.status, refused.header, refused.body)
		}
		key.refused(t, "quota_exceeded", "POST", "/v1/identify", `{"anon_id":"a","user_id":"u"}`)
		key.must(t, 202, "POST", "/v1/alias", `{"anon_id":"a","user_id":"v"}`)
		u := usageOf(t, owner(r), "?month="+month)
		if u.Plan == nil || u.Plan.Name != "three" || u.Events.Used != 3 || *u.Events.Limit != 3 || u.ResetsAt != refused.detail("resets_at") ||
			len(u.Projects) != 1 || u.Projects[0].Events != 3 || u.Projects[0].Storage != u.Storage.Used {
			t.Errorf("used up: %+v", u)
		}
		give(t, r, r.Setup.OrganizationID, "paid")
		if s := key.must(t, 202, "POST", "/v1/track", trackBody(event1, event2)); s.body["accepted"] != 2.0 || s.body["duplicates"] != 1.0 {
			t.Errorf("%v", s.body)
		}
		if entries := auditLog(t, owner(r), own(r)); entries[0]["action"] != "organization.plan_changed" {
			t.Errorf("%v", entries[0])
		}
		r.MustStop()
		quotaAfterRestart(t, r)
	})
}

// quotaAfterRestart: what TestQuota has used still counts, and a plan that the
// settings have lost means the default one.
func quotaAfterRestart(t *testing.T, r *apptest.Running) {
	t.Helper()
	again := r.MustServe()
	if u := usageOf(t, owner(again), ""); u.Events.Used != 4 || u.Plan.Name != "paid" || len(rows(t, again)) != 4 {
		t.Errorf("after a restart: %+v", u)
	}
	owner(again).refused(t, "validation_failed", "GET", own(r)+"/usage?month=2026-13", "")
	owner(again).refused(t, "validation_failed", "GET", own(r)+"/usage?month=", "")
	if u := usageOf(t, owner(again), "?month=2024-02"); u.Events.Used != 0 || u.Month != "2024-02" || u.ResetsAt != "2024-03-01T00:00:00.000Z" {
		t.Errorf("long ago: %+v", u)
	}
	again.MustStop()
	again.Flags = slices.Concat(again.Flags, []string{"--plans", `{"other": {"events": 1}}`, "--default_plan", "other"})
	dropped := again.MustServe()
	caller{dropped, r.Setup.ServerKey}.refused(t, "quota_exceeded", "POST", "/v1/track", goodBatch)
}

func trackBody(ids ...string) string {
	items := make([]string, len(ids))
	for i, id := range ids {
		items[i] = fmt.Sprintf(`{"event_id":%q,"event":"e","user_id":"u"}`, id)
	}
	return `{"events":[` + strings.Join(items, ",") + `]}`
}

// TestStorageQuota: bytes of events are a quota of their own.
func TestStorageQuota(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, plans...).MustServe()
	give(t, r, r.Setup.OrganizationID, "kilobyte")
	body := fmt.Sprintf(`{"events":[{"event":"e","user_id":"u","properties":{"text":%q}}]}`, strings.Repeat("x", 600))
	key := caller{r, r.Setup.ServerKey}
	key.must(t, 202, "POST", "/v1/track", body)
	key.must(t, 202, "POST", "/v1/track", body)
	if s := key.refused(t, "quota_exceeded", "POST", "/v1/track", goodBatch); s.detail("resource") != "storage" || s.detail("limit") != 1000.0 {
		t.Errorf("%v", s.body)
	}
	if u := usageOf(t, owner(r), ""); *u.Storage.Limit != 1000 || u.Storage.Used < 1200 || u.Storage.Used > 1500 || u.Events.Used != 2 {
		t.Errorf("%+v", u)
	}
}

// TestReplaysUseStorageUp, together with events: what is known costs nothing,
// what is new is refused, and so are events then.
func TestReplaysUseStorageUp(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, plans...).MustServe()
	give(t, r, r.Setup.OrganizationID, "kilobyte")
	key := caller{r, r.Setup.ServerKey}
	chunk := func(n int) string {
		return fmt.Sprintf(`{"session_id":"s","chunk":%d,"anon_id":"a","events":[{"type":3,"timestamp":1790000000000,"data":{"text":%q}}]}`, n, strings.Repeat("x", 450))
	}
	key.must(t, 202, "POST", "/v1/track", goodBatch)
	key.must(t, 202, "POST", "/v1/replay", chunk(0))
	key.must(t, 202, "POST", "/v1/replay", chunk(1))
	if s := key.refused(t, "quota_exceeded", "POST", "/v1/replay", chunk(2)); s.detail("resource") != "storage" || s.header.Get("Retry-After") != "" {
		t.Errorf("%v", s.body)
	}
	if s := key.must(t, 202, "POST", "/v1/replay", chunk(1)); s.body["duplicate"] != true {
		t.Errorf("a repeat: %v", s.body)
	}
	key.refused(t, "quota_exceeded", "POST", "/v1/track", goodBatch)
	if u := usageOf(t, owner(r), ""); u.Storage.Used < 1000 || u.Storage.Used > 1200 || u.Projects[0].Storage != u.Storage.Used || u.Events.Used != 1 {
		t.Errorf("%+v", u)
	}
	give(t, r, r.Setup.OrganizationID, "paid")
	if s := key.must(t, 202, "POST", "/v1/replay", chunk(2)); s.body["duplicate"] != false {
		t.Errorf("what was refused: %v", s.body)
	}
}

// TestFiftySendersShareAQuota: of one organization with two projects, exactly
// what the rule allows is taken, and it is what is stored.
func TestFiftySendersShareAQuota(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, plans...).MustServe()
	other := keyOfASecondProject(t, r)
	give(t, r, r.Setup.OrganizationID, "hundred")
	var taken, refused atomic.Int64
	together(50, func(i int) {
		key := caller{r, []string{r.Setup.ServerKey, other}[i%2]}
		for range 2 {
			body := trackBody(uuid.NewString(), uuid.NewString(), uuid.NewString())
			for range 2 { // each is sent again, which costs nothing
				switch s := key.call(t, "POST", "/v1/track", body); s.status {
				case http.StatusAccepted:
					taken.Add(int64(s.body["accepted"].(float64) - s.body["duplicates"].(float64))) //nolint:forcetypeassert // a panic says as much
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("%d %v", s.status, s.body)
				}
			}
		}
	})
	u := usageOf(t, owner(r), "")
	if taken.Load() != 102 || refused.Load() != 2*(100-34) || u.Events.Used != 102 || u.Projects[0].Events+u.Projects[1].Events != 102 {
		t.Errorf("taken %d, refused %d, %+v", taken.Load(), refused.Load(), u)
	}
	r.MustStop()
	if report := r.Verify(); !report.OK || report.Rows != 102 {
		t.Errorf("stored: %+v", report)
	}
}

// TestASuspendedOrganizationMayOnlyLookAtItsUsage, of all operations, and log
// in.
func TestASuspendedOrganizationMayOnlyLookAtItsUsage(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	secrets := map[string]string{
		"browser": r.Setup.BrowserToken, "server": r.Setup.ServerKey, "legacy": r.Setup.LegacyKey,
		"project": r.Setup.ProjectKey, "ci": r.Setup.CIToken, "access": r.Setup.AccessToken,
	}
	r.TrackNew(1)
	operate(t, r, func(p app.OrganizationParams) error {
		return app.SuspendOrganization(t.Context(), p, r.Setup.OrganizationID)
	})
	here := place{r.Setup.OrganizationID, r.Setup.Project.ID, nowhere}
	refused, answered := 0, 0
	for _, op := range operations(t, r) {
		if slices.Contains(open, op) {
			continue
		}
		for kind, secret := range secrets {
			s := caller{r, secret}.call(t, op.method, here.fill(op), op.body())
			switch {
			case kind == "access" && op.path == "/api/v1/organizations/{id}/usage":
				if answered++; s.status != http.StatusOK || part(t, s.body, "events")["used"] != 1.0 {
					t.Errorf("usage: %d %v", s.status, s.body)
				}
			case op.allows(kind):
				if refused++; s.status != http.StatusPaymentRequired || s.code() != "payment_required" {
					t.Errorf("%s, %v: %d %v", kind, op, s.status, s.body)
				}
			case s.status < 400:
				t.Errorf("%s, %v: %d %v", kind, op, s.status, s.body)
			}
		}
	}
	if answered != 1 || refused < 60 {
		t.Errorf("%d were answered, %d refused", answered, refused)
	}
	login(t, r, r.Setup.Email, r.Setup.Password)
}

// stands is a clock that does.
type stands string

func (c stands) Wall() time.Time {
	at, err := time.Parse(time.RFC3339, string(c))
	if err != nil {
		panic(err)
	}
	return at
}

func (stands) Elapsed() time.Duration { return 0 }

// TestUsageOfPastMonths: a month that is over is told from what was stored, and
// its events count for no other.
func TestUsageOfPastMonths(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, plans...)
	for i, at := range []stands{"2026-05-31T23:59:59.999Z", "2026-06-01T00:00:00Z", "2026-07-15T12:00:00Z"} {
		site.Clock = at
		r := site.MustServe()
		give(t, r, r.Setup.OrganizationID, "one") // of each month
		r.TrackNew(i + 1)
		caller{r, r.Setup.ServerKey}.refused(t, "quota_exceeded", "POST", "/v1/track", goodBatch)
		for month, want := range []int{1, 2, 3}[:i+1] {
			if u := usageOf(t, owner(r), fmt.Sprintf("?month=2026-0%d", 5+month)); u.Events.Used != want || u.Projects[0].Events != want || u.Storage.Used < 20*want {
				t.Errorf("at %s, month %d: %+v", at, 5+month, u)
			}
		}
		r.MustStop()
	}
}
