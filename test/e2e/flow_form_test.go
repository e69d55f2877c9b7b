package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// putFlow publishes a body of a kind.
func putFlow(t *testing.T, r *apptest.Running, kind, body string) said {
	t.Helper()
	request := requestOf(t, asProject(r), http.MethodPut, "/v1/flows/greet", body)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	return sendRequest(t, request)
}

// TestFormsOfFlows: YAML and JSON of the same content are the same version, and
// what a form in a page could send is refused.
func TestFormsOfFlows(t *testing.T) {
	t.Parallel()
	const yaml = "# a comment\nsteps:\n  - id: shape\n    type: transform\n    value: one\noutput: ${steps.shape.output}\n"
	r := apptest.New(t).MustServe()
	if s := putFlow(t, r, "application/yaml", yaml); s.status != 201 {
		t.Fatalf("%d %s", s.status, s.raw)
	}
	for _, c := range []struct{ kind, body string }{
		{"text/yaml", yaml},
		{"text/yaml; charset=utf-8", yaml},
		{"application/yaml", flowText("one")},
		{"application/json", flowText("one")},
		{"", flowText("one")},
	} {
		if s := putFlow(t, r, c.kind, c.body); s.status != 200 || part(t, s.body, "flow")["version"] != 1.0 {
			t.Errorf("%s: %d %s", c.kind, s.status, s.raw)
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/yaml; charset=latin1", "text/html", "yaml"} {
		if s := putFlow(t, r, kind, yaml); s.status != 415 || s.code() != "unsupported_media_type" {
			t.Errorf("%s: %d %s", kind, s.status, s.raw)
		}
	}
	if s := putFlow(t, r, "application/json", yaml); s.status != 400 || s.code() != "invalid_json" {
		t.Errorf("YAML as JSON: %d %s", s.status, s.raw)
	}
	for name, body := range map[string]string{
		"broken": "steps: [", "an alias": "a: &a {}\nb: *a\n", "a name twice": "steps: []\nsteps: []\n", "empty": "", "two": "--- {}\n--- {}\n",
	} {
		if s := putFlow(t, r, "application/yaml", body); s.status != 422 || s.code() != "invalid_request" || len(issuesIn(s)) == 0 {
			t.Errorf("%s: %d %s", name, s.status, s.raw)
		}
	}
	if s := putFlow(t, r, "application/json", `{"x":"`+strings.Repeat("x", 256<<10)+`"}`); s.status != 413 {
		t.Errorf("too large: %d", s.status)
	}
	if f := part(t, asProject(r).must(t, 200, "GET", "/v1/flows/greet", "").body, "flow"); f["latest_version"] != 1.0 {
		t.Errorf("%v", f)
	}
}

// issuesIn are the paths of details.issues.
func issuesIn(s said) []string {
	list, _ := s.detail("issues").([]any)
	paths := make([]string, len(list))
	for i := range list {
		one, _ := list[i].(map[string]any)
		paths[i], _ = one["path"].(string)
		if text, _ := one["message"].(string); text == "" {
			paths[i] += " without a message"
		}
	}
	return paths
}

// TestBrokenFlows: all that is wrong is said at once, each with its path, and
// no long value is repeated.
func TestBrokenFlows(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	c := asProject(r)
	secret := strings.Repeat("s", 100)
	s := c.refused(t, "invalid_request", "PUT", "/v1/flows/greet", `{
		"steps": [
			{"id": "shape", "type": "transform", "value": "x", "`+secret+`": 1},
			{"id": "Shape", "type": "transform", "value": "x"},
			{"id": "other", "type": "`+secret+`"},
			{"id": "pick", "type": "branch", "cases": [{"when": "${true}", "steps": [{"id": "in", "type": "transform", "valeu": 1}]}]}
		], "outptu": 1, "limits": {"timout": "1s"}}`)
	paths := fmt.Sprint(issuesIn(s))
	for _, want := range []string{"steps[0]", "steps[1].id", "steps[2].type", "steps[3].cases[0].steps[0]", "outptu", "limits.timout"} {
		if !strings.Contains(paths, want) {
			t.Errorf("%s is missing: %s", want, s.raw)
		}
	}
	if s.status != 422 || strings.Contains(s.raw, secret) || strings.Contains(paths, "without") {
		t.Errorf("%d %s", s.status, s.raw)
	}
	many := strings.Repeat(`{"id":"a","type":"transform","x":1},`, 150)
	s = c.refused(t, "invalid_request", "PUT", "/v1/flows/greet", `{"steps":[`+many[:len(many)-1]+`]}`)
	if n := len(issuesIn(s)); n != 50 || s.detail("more_issues") == nil {
		t.Errorf("%d issues, %v more", n, s.detail("more_issues"))
	}
	for body, code := range map[string]string{
		`[]`: "invalid_request", `"x"`: "invalid_request", `{}`: "invalid_request", `null`: "invalid_request",
		`{`: "invalid_json", ``: "invalid_json", `{"steps":[],"steps":[]}`: "invalid_json", strings.Repeat("[", 65) + strings.Repeat("]", 65): "invalid_json",
	} {
		c.refused(t, code, "PUT", "/v1/flows/greet", body)
	}
	c.refused(t, "flow_not_found", "GET", "/v1/flows/greet", "") // nothing came of any
}

// TestFlowSchema: the schema that editors read knows the types of steps.
func TestFlowSchema(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	s := nobody(r).must(t, 200, "GET", "/api/flow.schema.json", "")
	if s.body["$schema"] != "https://json-schema.org/draft/2020-12/schema" || s.header.Get("Etag") == "" {
		t.Errorf("%v %s", s.header, s.raw)
	}
	for _, name := range []string{"transform", "branch", "parallel", "wait"} {
		if !strings.Contains(s.raw, `"const":"`+name+`"`) {
			t.Errorf("%s is missing", name)
		}
	}
}
