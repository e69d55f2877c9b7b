package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// TestModelProviders: made, repeated, replaced, read by those who may not see
// its key, and deleted; and what is written of it.
func TestModelProviders(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		const key = "sk-proj-0123456789abcdefWXYZ"
		all := "/api/v1/projects/" + r.Setup.Project.ID + "/model-providers"
		one := all + "/my-openai"
		admin := owner(r)
		body := fmt.Sprintf(`{"base_url":"https://api.example.com/v1/","api_key":%q,"max_concurrent":8}`, key)
		made := admin.must(t, 201, "PUT", one, body)
		again := admin.must(t, 200, "PUT", one, body)
		if fmt.Sprint(made.body) != fmt.Sprint(again.body) {
			t.Errorf("a repeat has changed it: %v\nto %v", made.body, again.body)
		}
		if made.body["base_url"] != "https://api.example.com/v1" || made.body["timeout_seconds"] != 120.0 || made.body["max_concurrent"] != 8.0 ||
			fmt.Sprint(made.body["api_key"]) != "map[last_four:WXYZ prefix:sk-p]" || made.body["built_in"] != false {
			t.Errorf("%v", made.body)
		}

		viewer, _ := join(t, r, "viewer@localhost", "viewer")
		items := viewer.must(t, 200, "GET", all, "").items(t)
		if len(items) != 2 || items[0]["name"] != "echo" || items[0]["built_in"] != true || items[0]["base_url"] != nil || items[1]["name"] != "my-openai" {
			t.Errorf("%v", items)
		}
		for _, shown := range []said{viewer.must(t, 200, "GET", one, ""), viewer.must(t, 200, "GET", all, ""), admin.must(t, 200, "GET", "/api/v1/organizations/"+r.Setup.OrganizationID+"/audit-log", "")} {
			if strings.Contains(fmt.Sprint(shown.body), key) {
				t.Errorf("the key is shown: %v", shown.body)
			}
		}
		viewer.refused(t, "forbidden", "PUT", one, body)
		viewer.refused(t, "forbidden", "DELETE", one, "")

		for _, refused := range []struct{ code, method, path, body string }{
			{"validation_failed", "PUT", one, `{"base_url":"https://evil.example.com"}`},
			{"validation_failed", "PUT", one, `{"base_url":"http://127.0.0.1:11434/v1"}`},
			{"validation_failed", "PUT", one, `{"base_url":"https://api.example.com","api_key":"a b"}`},
			{"validation_failed", "PUT", one, `{"base_url":"https://api.example.com","key":"x"}`},
			{"validation_failed", "PUT", one, `{"base_url":"https://api.example.com","timeout_seconds":0}`},
			{"validation_failed", "PUT", all + "/My", `{"base_url":"https://api.example.com"}`},
			{"validation_failed", "GET", all + "?cursor=AAAA", ""},
			{"conflict", "PUT", all + "/echo", `{"base_url":"https://api.example.com"}`},
			{"conflict", "DELETE", all + "/echo", ""},
			{"not_found", "GET", all + "/other", ""},
			{"not_found", "DELETE", all + "/My", ""},
		} {
			admin.refused(t, refused.code, refused.method, refused.path, refused.body)
		}
		if now := admin.must(t, 200, "GET", one, ""); fmt.Sprint(now.body) != fmt.Sprint(made.body) {
			t.Errorf("a refusal has changed it: %v", now.body)
		}

		admin.must(t, 204, "DELETE", one, "")
		admin.refused(t, "not_found", "DELETE", one, "")
		entries := admin.must(t, 200, "GET", "/api/v1/organizations/"+r.Setup.OrganizationID+"/audit-log", "").items(t)
		var told []string
		for _, e := range entries {
			if action := fmt.Sprint(e["action"]); strings.HasPrefix(action, "model_provider.") {
				told = append(told, action)
			}
		}
		if fmt.Sprint(told) != "[model_provider.deleted model_provider.created]" {
			t.Errorf("%v", told)
		}
	})
}

// TestModelProvidersInPrivate: an operator may allow what is refused above.
func TestModelProvidersInPrivate(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, "--flows.allow_private").MustServe()
	owner(r).must(t, 201, "PUT", "/api/v1/projects/"+r.Setup.Project.ID+"/model-providers/local", `{"base_url":"http://127.0.0.1:11434/v1"}`)
}
