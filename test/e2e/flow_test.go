package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// flowText is a definition that differs from others by a text.
func flowText(text string) string {
	return fmt.Sprintf(`{"steps":[{"id":"shape","type":"transform","value":%q}],"output":"${steps.shape.output}"}`, text)
}

// publish publishes a definition and demands a version of a flow.
func (c caller) publish(t *testing.T, status int, slug, definition string) float64 {
	t.Helper()
	f := part(t, c.must(t, status, "PUT", "/v1/flows/"+slug, definition).body, "flow")
	number, ok := f["version"].(float64)
	if !ok || f["slug"] != slug || f["created_at"] == nil || f["latest_version"] != number {
		t.Errorf("%v", f)
	}
	return number
}

func TestFlows(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		if list := c.must(t, 200, "GET", "/v1/flows", "").items(t); len(list) != 0 {
			t.Errorf("%v", list)
		}
		for i, want := range []struct {
			status  int
			text    string
			version float64
		}{{201, "one", 1}, {200, "one", 1}, {201, "two", 2}, {200, "two", 2}, {201, "one", 3}} {
			if got := c.publish(t, want.status, "greet", flowText(want.text)); got != want.version {
				t.Errorf("%d: version %v, want %v", i, got, want.version)
			}
		}
		reordered := `{ "output": "${steps.shape.output}", "steps": [ {"value": "\u006fne", "type": "transform", "id": "shape"} ] }`
		if got := c.publish(t, 200, "greet", reordered); got != 3 {
			t.Errorf("members in another order made version %v", got)
		}
		wantDefinition(t, c, "/v1/flows/greet", 3, "one")
		wantDefinition(t, c, "/v1/flows/greet?version=2", 2, "two")
		versions := c.must(t, 200, "GET", "/v1/flows/greet/versions?limit=2", "")
		if items := versions.items(t); len(items) != 2 || items[0]["version"] != 3.0 || items[1]["version"] != 2.0 {
			t.Errorf("%s", versions.raw)
		}
		rest := c.must(t, 200, "GET", "/v1/flows/greet/versions?limit=2&cursor="+versions.text(t, "next_cursor"), "")
		if items := rest.items(t); len(items) != 1 || items[0]["version"] != 1.0 || rest.body["next_cursor"] != nil {
			t.Errorf("%s", rest.raw)
		}
		diff := c.must(t, 200, "GET", "/v1/flows/greet/diff?from=1&to=2", "")
		if changes, _ := diff.body["changes"].([]any); len(changes) != 1 || !strings.Contains(diff.raw, `{"path":"steps[shape].value","op":"changed","from":"one","to":"two"}`) {
			t.Errorf("%s", diff.raw)
		}
		if back := c.must(t, 200, "GET", "/v1/flows/greet/diff?from=2&to=1", ""); !strings.Contains(back.raw, `"from":"two","to":"one"`) {
			t.Errorf("%s", back.raw)
		}
		if same := c.must(t, 200, "GET", "/v1/flows/greet/diff?from=1&to=3", ""); !strings.Contains(same.raw, `"changes":[]`) {
			t.Errorf("%s", same.raw)
		}
		c.publish(t, 201, "a", flowText("one"))
		list := c.must(t, 200, "GET", "/v1/flows?limit=1", "")
		next := c.must(t, 200, "GET", "/v1/flows?limit=1&cursor="+list.text(t, "next_cursor"), "")
		if a, b := list.items(t), next.items(t); a[0]["slug"] != "a" || b[0]["slug"] != "greet" || b[0]["version"] != 3.0 || next.body["next_cursor"] != nil {
			t.Errorf("%s %s", list.raw, next.raw)
		}
	})
}

// wantDefinition demands a version with the text of [flowText].
func wantDefinition(t *testing.T, c caller, path string, version float64, text string) {
	t.Helper()
	s := c.must(t, 200, "GET", path, "")
	f := part(t, s.body, "flow")
	definition, err := json.Marshal(f["definition"])
	if err != nil || f["version"] != version || !strings.Contains(string(definition), `"value":"`+text+`"`) {
		t.Errorf("%s", s.raw)
	}
}

// TestFlowsThatAreNotThere: every read and change of what is not there says so,
// and nothing comes of it.
func TestFlowsThatAreNotThere(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		c.publish(t, 201, "greet", flowText("one"))
		for _, path := range []string{"none", "none/versions", "none/diff?from=1&to=1", "greet?version=2", "greet/diff?from=1&to=2", "GREET", "%00", "a%2Fb"} {
			c.refused(t, "flow_not_found", "GET", "/v1/flows/"+path, "")
		}
		for path, method := range map[string]string{"/pin": "DELETE", "/archive": "POST", "/unarchive": "POST"} {
			c.refused(t, "flow_not_found", method, "/v1/flows/none"+path, "")
		}
		c.refused(t, "flow_not_found", "PUT", "/v1/flows/none/pin", `{"version":1}`)
		c.refused(t, "flow_not_found", "PUT", "/v1/flows/greet/pin", `{"version":2}`)
		for _, query := range []string{
			"/greet?version=0", "/greet?version=x", "/greet?version=1&version=1", "/greet/diff",
			"/greet/diff?from=1", "/greet/diff?from=1&to=-1", "?cursor=!", "?cursor=AA", "/greet/versions?cursor=eA",
		} {
			c.refused(t, "validation_failed", "GET", "/v1/flows"+query, "")
		}
		for _, body := range []string{`{}`, `{"version":0}`, `{"version":"1"}`, `{"version":1.5}`, `{"version":1,"x":1}`, `[]`} {
			c.refused(t, "invalid_request", "PUT", "/v1/flows/greet/pin", body)
		}
		for _, slug := range []string{"A", "-a", "_a", "a.b", "a%2Fb", "%20", strings.Repeat("a", 65)} {
			if s := c.refused(t, "invalid_request", "PUT", "/v1/flows/"+slug, flowText("one")); s.detail("field") != "slug" {
				t.Errorf("%s", s.raw)
			}
		}
		if n := len(c.must(t, 200, "GET", "/v1/flows", "").items(t)); n != 1 {
			t.Errorf("%d flows", n)
		}
	})
}

// TestEqualPublishesAtOnce: twenty equal ones make one version, whoever is
// first; twenty different ones make twenty.
func TestEqualPublishesAtOnce(t *testing.T) {
	t.Parallel()
	const many = 20
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		publish := func(text func(i int) string) (statuses map[int]int, versions []int) {
			statuses = map[int]int{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range many {
				all.Go(func() {
					s := c.call(t, "PUT", "/v1/flows/greet", flowText(text(i)))
					f, _ := s.body["flow"].(map[string]any)
					number, _ := f["version"].(float64)
					mu.Lock()
					defer mu.Unlock()
					statuses[s.status]++
					versions = append(versions, int(number))
				})
			}
			all.Wait()
			slices.Sort(versions)
			return statuses, versions
		}
		if statuses, versions := publish(func(int) string { return "equal" }); statuses[201] != 1 || statuses[200] != many-1 || versions[many-1] != 1 {
			t.Errorf("equal: %v, %v", statuses, versions)
		}
		if statuses, versions := publish(func(i int) string { return fmt.Sprint(i) }); statuses[201] != many || versions[0] != 2 || len(slices.Compact(versions)) != many {
			t.Errorf("different: %v, %v", statuses, versions)
		}
	})
}

// TestPinAndArchive: what is published moves no pin, and what is archived is
// not published.
func TestPinAndArchive(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		c.publish(t, 201, "greet", flowText("one"))
		c.publish(t, 201, "greet", flowText("two"))
		for range 2 {
			f := part(t, c.must(t, 200, "PUT", "/v1/flows/greet/pin", `{"version":1}`).body, "flow")
			if f["pinned_version"] != 1.0 || f["latest_version"] != 2.0 {
				t.Errorf("%v", f)
			}
		}
		c.publish(t, 201, "greet", flowText("three"))
		versions := c.must(t, 200, "GET", "/v1/flows/greet/versions", "").items(t)
		if len(versions) != 3 || versions[2]["pinned"] != true || versions[0]["pinned"] != false {
			t.Errorf("%v", versions)
		}
		for range 2 {
			if f := part(t, c.must(t, 200, "DELETE", "/v1/flows/greet/pin", "").body, "flow"); f["pinned_version"] != nil {
				t.Errorf("%v", f)
			}
		}
		first := part(t, c.must(t, 200, "POST", "/v1/flows/greet/archive", "").body, "flow")
		again := part(t, c.must(t, 200, "POST", "/v1/flows/greet/archive", "").body, "flow")
		if first["archived_at"] == nil || first["archived_at"] != again["archived_at"] {
			t.Errorf("%v, then %v", first, again)
		}
		for _, text := range []string{"three", "four"} {
			if s := c.refused(t, "conflict", "PUT", "/v1/flows/greet", flowText(text)); s.status != 409 || s.detail("archived") != true {
				t.Errorf("%s", s.raw)
			}
		}
		wantDefinition(t, c, "/v1/flows/greet", 3, "three")
		for range 2 {
			if f := part(t, c.must(t, 200, "POST", "/v1/flows/greet/unarchive", "").body, "flow"); f["archived_at"] != nil {
				t.Errorf("%v", f)
			}
		}
		c.publish(t, 200, "greet", flowText("three"))
	})
}

// TestFlowsStayInTheirProject: a project key sees the flows of its project.
func TestFlowsStayInTheirProject(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		asProject(r).publish(t, 201, "greet", flowText("one"))
		project := owner(r).must(t, 201, "POST", "/api/v1/projects", `{"name":"Other"}`).text(t, "id")
		made := owner(r).must(t, 201, "POST", "/api/v1/projects/"+project+"/project-keys", `{"name":"Other"}`)
		other := caller{r, made.text(t, "token")}
		other.refused(t, "flow_not_found", "GET", "/v1/flows/greet", "")
		other.refused(t, "flow_not_found", "POST", "/v1/flows/greet/archive", "")
		if n := other.publish(t, 201, "greet", flowText("two")); n != 1 {
			t.Errorf("version %v", n)
		}
		wantDefinition(t, asProject(r), "/v1/flows/greet", 1, "one")
	})
}
