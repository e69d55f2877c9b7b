package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

// trackDays sends n events for each of the last three days and today.
func trackDays(t *testing.T, r *apptest.Running, n int) {
	t.Helper()
	var events []string
	for day := range 4 {
		at := time.Now().UTC().AddDate(0, 0, -day).Truncate(24 * time.Hour)
		for range n {
			events = append(events, fmt.Sprintf(`{"event":"purchase","user_id":"u","ts":%q}`, at.Format(time.RFC3339)))
		}
	}
	status, answer := r.Post("/v1/track", r.Setup.ServerKey, `{"historical":true,"events":[`+strings.Join(events, ",")+`]}`)
	if status != http.StatusAccepted || fmt.Sprint(answer["accepted"]) != fmt.Sprint(4*n) {
		t.Fatalf("%d %v", status, answer)
	}
}

// TestAlerts: from the definition to the signed message with the release
// beside it, the mute, the end by hand and the history.
func TestAlerts(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, "--webhooks.allow_private", "--alerts.settle", "0s").MustServe()
	url, got := receiver(t)
	hook := owner(r).must(t, 201, "POST", project(r)+"/webhooks", fmt.Sprintf(`{"url":%q,"events":["alert.fired","alert.resolved"]}`, url))
	deployed := time.Now().UTC().Truncate(24 * time.Hour).Add(-time.Hour) // yesterday, late
	owner(r).must(t, 201, "POST", project(r)+"/release-markers", fmt.Sprintf(
		`{"version":"1.4.2","commit":"3b1ac44","url":"https://ci.example/7","ts":%q}`, deployed.Format(time.RFC3339)))
	owner(r).must(t, 201, "POST", project(r)+"/release-markers", `{"version":"0.1","ts":"2020-01-01T00:00:00Z"}`)
	trackDays(t, r, 3)

	all := project(r) + "/alerts"
	const rule = `{"name":"Purchases","source":{"type":"trend","event":"purchase"},"period":"1d","condition":{"type":"threshold","direction":"above","value":2}}`
	var seen []map[string]any
	eventually(t, func() bool { // the events can be queried
		seen = owner(r).must(t, 200, "POST", all+"/preview?periods=2", rule).items(t)
		return seen[0]["verdict"] == "bad"
	})
	if len(seen) != 2 || seen[1]["verdict"] != "bad" || seen[0]["state"] != "firing" || fmt.Sprint(seen[0]["value"]) != "3" {
		t.Errorf("the preview shows %v", seen)
	}
	made := owner(r).must(t, 201, "POST", all, rule)
	one := all + "/" + made.text(t, "id")

	fired := next(t, got)
	fired.mustBeSigned(t, hook.body["secret"])
	var told struct {
		Type string
		Data api.AlertFired
	}
	if err := json.Unmarshal([]byte(fired.body), &told); err != nil {
		t.Fatal(err)
	}
	d := told.Data
	if told.Type != "alert.fired" || d.Alert.ID != made.body["id"] || d.Alert.Name != "Purchases" || *d.Value != 3 || d.Baseline != nil ||
		*d.Alert.Condition.Value != 2 || d.FiringSince != d.Period.End {
		t.Errorf("%s", fired.body)
	}
	if len(d.Releases) != 1 || d.Releases[0].Version != "1.4.2" || *d.Releases[0].Commit != "3b1ac44" || *d.Releases[0].URL != "https://ci.example/7" {
		t.Errorf("the releases beside it: %+v", d.Releases)
	}
	if s := owner(r).must(t, 200, "GET", one, ""); s.body["state"] != "firing" || s.body["problem"] != nil {
		t.Errorf("%v", s.body)
	}

	if s := owner(r).must(t, 200, "POST", one+"/resolve", ""); s.body["state"] != "ok" {
		t.Errorf("%v", s.body)
	}
	resolved := next(t, got)
	if !strings.Contains(resolved.body, `"type":"alert.resolved"`) || !strings.Contains(resolved.body, `"reason":"by_hand"`) ||
		!strings.Contains(resolved.body, `"fired_message_id":"`+fired.header.Get("webhook-id")+`"`) {
		t.Errorf("%s", resolved.body)
	}
	owner(r).refused(t, "validation_failed", "POST", one+"/mute", `{"until":"2020-01-01T00:00:00Z"}`)
	if s := owner(r).must(t, 200, "POST", one+"/mute", `{}`); s.body["muted"] != true || s.body["muted_until"] != nil {
		t.Errorf("%v", s.body)
	}
	owner(r).must(t, 200, "POST", one+"/unmute", "")
	mustHaveKinds(t, owner(r).must(t, 200, "GET", one+"/history", "").items(t), "unmuted", "muted", "resolved", "fired")
	page := owner(r).must(t, 200, "GET", one+"/history?limit=3", "")
	rest := owner(r).must(t, 200, "GET", one+"/history?cursor="+page.text(t, "next_cursor"), "").items(t)
	mustHaveKinds(t, rest, "fired")
	if releases := rest[0]["releases"].([]any); len(releases) != 1 { //nolint:forcetypeassert // a panic says as much
		t.Errorf("%v", rest)
	}
	owner(r).must(t, 204, "DELETE", one, "")
	owner(r).refused(t, "not_found", "GET", one, "")
	var actions []string
	for _, e := range auditLog(t, owner(r), own(r)) {
		if action := fmt.Sprint(e["action"]); strings.HasPrefix(action, "alert.") {
			actions = append(actions, action)
		}
	}
	if fmt.Sprint(actions) != "[alert.deleted alert.unmuted alert.muted alert.resolved alert.created]" {
		t.Errorf("the audit log tells of %v", actions)
	}
	select {
	case m := <-got:
		t.Errorf("more was sent: %s", m.body)
	default:
	}
}

func mustHaveKinds(t *testing.T, entries []map[string]any, want ...string) {
	t.Helper()
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, fmt.Sprint(e["kind"]))
	}
	if fmt.Sprint(kinds) != fmt.Sprint(want) {
		t.Errorf("the history tells of %v, want %v", kinds, want)
	}
}

// TestAlertsAreRefused: every member that is at fault is named, and nothing is
// made.
func TestAlertsAreRefused(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	all := project(r) + "/alerts"
	const trend, above = `{"type":"trend"}`, `{"type":"threshold","direction":"above","value":1}`
	body := func(source, condition, more string) string {
		return fmt.Sprintf(`{"name":"a","source":%s,"period":"1h","condition":%s%s}`, source, condition, more)
	}
	for _, c := range []struct{ body, field string }{
		{body(trend, above, `,"colour":"red"`), "colour"},
		{body(`{"type":"trend","where":[{"property":"plan","op":"set"}]}`, above, ""), "source.where[0].property"},
		{body(`{"type":"trend","where":[{"property":"properties.plan","op":"eq"}]}`, above, ""), "source.where[0].value"},
		{body(`{"type":"trend","event":[]}`, above, ""), "source.event"},
		{body(`{"type":"trend","measure":"sum"}`, above, ""), "source.measure"},
		{body(`{"type":"duplicate_rate","event":"e"}`, above, ""), "source"},
		{body(`{"type":"latency"}`, above, ""), "source.type"},
		{body(trend, `{"type":"threshold","direction":"up","value":1}`, ""), "condition.direction"},
		{body(trend, `{"type":"threshold","direction":"above"}`, ""), "condition.value"},
		{body(trend, `{"type":"threshold","direction":"above","value":1,"percent":5}`, ""), "condition"},
		{body(trend, `{"type":"threshold","direction":"above","value":1,"minimum":5}`, ""), "condition.minimum"},
		{body(trend, `{"type":"change","direction":"down","percent":101,"baseline":"previous_period"}`, ""), "condition.percent"},
		{body(trend, `{"type":"change","direction":"up","percent":50,"baseline":"mean_of_days"}`, ""), "condition.periods"},
		{body(trend, `{"type":"change","direction":"up","percent":50,"baseline":"previous_period","periods":3}`, ""), "condition.periods"},
		{body(trend, `{"type":"change","direction":"up","percent":50}`, ""), "condition.baseline"},
		{body(trend, `{"type":"change","direction":"up","percent":50,"value":0,"baseline":"previous_period"}`, ""), "condition.value"},
		{body(trend, above, `,"timezone":"Mars/Olympus"`), "timezone"},
		{body(trend, above, `,"for":0`), "for"},
		{strings.Replace(body(trend, above, ""), "1h", "2h", 1), "period"},
		{strings.Replace(body(trend, above, ""), `"name":"a"`, `"name":" "`, 1), "name"},
	} {
		for _, path := range []string{all, all + "/preview"} {
			s := owner(r).call(t, "POST", path, c.body)
			if details, _ := s.body["error"].(map[string]any)["details"].(map[string]any); s.status != 422 || details["field"] != c.field { //nolint:forcetypeassert // a panic says as much
				t.Errorf("%s: %d %v, want %s", c.body, s.status, s.body, c.field)
			}
		}
	}
	if items := owner(r).must(t, 200, "GET", all, "").items(t); len(items) != 0 {
		t.Errorf("%v", items)
	}
	made := owner(r).must(t, 201, "POST", all, body(trend, above, ""))
	one := all + "/" + made.text(t, "id")
	owner(r).refused(t, "validation_failed", "PATCH", one, `{"condition":{"type":"threshold","direction":"down","value":1}}`)
	if s := owner(r).must(t, 200, "PATCH", one, `{"name":"b","for":3}`); s.body["name"] != "b" || fmt.Sprint(s.body["for"]) != "3" || s.body["period"] != "1h" {
		t.Errorf("%v", s.body)
	}
	for i := range 99 {
		owner(r).must(t, 201, "POST", all, body(trend, above, fmt.Sprintf(`,"for":%d`, i%100+1)))
	}
	owner(r).refused(t, "conflict", "POST", all, body(trend, above, ""))
}
