package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// operation is a method of a path that the server's own document names.
type operation struct{ method, path string }

// operations are all that there are.
func operations(t *testing.T, r *apptest.Running) []operation {
	t.Helper()
	paths, ok := nobody(r).must(t, 200, "GET", "/api/openapi.json", "").body["paths"].(map[string]any)
	if !ok {
		t.Fatal("no paths")
	}
	var all []operation
	for path, methods := range paths {
		for method := range methods.(map[string]any) { //nolint:forcetypeassert // a panic says as much
			all = append(all, operation{strings.ToUpper(method), path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	if len(all) < 40 {
		t.Fatalf("only %d operations", len(all))
	}
	return all
}

// place is what stands for the parameters of a path.
type place struct{ organization, project, other string }

// fill puts ids into the path.
func (p place) fill(op operation) string {
	id := p.project
	if strings.HasPrefix(op.path, "/api/v1/organizations/") {
		id = p.organization
	}
	filled := strings.ReplaceAll(op.path, "{id}", id)
	for _, name := range []string{"{user_id}", "{invitation_id}", "{key_id}", "{marker_id}", "{alert_id}", "{webhook_id}", "{delivery_id}", "{provider}", "{execution_id}", "{session_id}", "{chunk}", "{job_id}"} {
		filled = strings.ReplaceAll(filled, name, p.other)
	}
	return filled
}

// nowhere is the id of nothing.
const nowhere = "01980000-0000-7000-8000-0000000000ff"

// body is one that the operation takes.
func (op operation) body() string {
	if op.method != "POST" && op.method != "PATCH" && op.method != "PUT" {
		return ""
	}
	for suffix, body := range map[string]string{
		"/members/{user_id}": `{"role":"viewer"}`, "/invitations": `{"email":"x@localhost","role":"viewer"}`,
		"/ingest-keys": `{"name":"x","kind":"server"}`, "/import": `{"name":"x","token":"imported by a test"}`, "/rotate": `{}`,
		"/privacy-jobs": `{"kind":"export","user_id":"x"}`,
		"/query":        `{"type":"events","from":"2024-01-01T00:00:00Z","to":"2024-01-02T00:00:00Z"}`,
		"/webhooks":     `{"url":"https://example.com/","events":["movement.created"]}`, "/webhooks/{webhook_id}": `{"enabled":true}`,
		"/model-providers/{provider}": `{"base_url":"https://example.com/v1"}`,
		"/alerts":                     alertBody, "/alerts/preview": alertBody, "/alerts/{alert_id}": `{"name":"x"}`, "/mute": `{}`,
		"/rotate-secret": `{}`, "/release-markers": `{"version":"1"}`, "/deploy": `{"version":"1"}`,
	} {
		if strings.HasSuffix(op.path, suffix) {
			return body
		}
	}
	return `{"name":"x"}`
}

const alertBody = `{"name":"x","source":{"type":"trend"},"period":"1h","condition":{"type":"threshold","direction":"above","value":1}}`

// open are the operations that take no credential.
var open = []operation{
	{"GET", "/healthz"},
	{"GET", "/readyz"},
	{"GET", "/metrics"},
	{"GET", "/api/openapi.json"},
	{"GET", "/api/flow.schema.json"},
	{"GET", "/api/docs"},
	{"GET", "/invite"},
	{"POST", "/api/v1/auth/login"},
	{"POST", "/api/v1/auth/refresh"},
	{"POST", "/api/v1/invitations/accept"},
}

// mayCall is the table of the contract, section 2: the paths of each kind.
var mayCall = map[string][]string{
	"browser": {"/v1/track", "/v1/identify", "/v1/replay"},
	"server":  {"/v1/track", "/v1/identify", "/v1/replay", "/v1/alias"},
	"legacy":  {"/v1/track", "/v1/identify", "/v1/replay", "/v1/alias"},
	"project": {"/v1/operations", "/v1/executions", "/v1/flows", "/v1/customers", "/v1/idempotency-keys", "/v1/movements", "/v1/credit-types"},
	"ci":      {"/api/v1/projects/{id}/release-markers/deploy"},
	"access":  {"/api/v1/"},
}

func (op operation) allows(kind string) bool {
	if strings.HasSuffix(op.path, "/release-markers/deploy") {
		return kind == "ci"
	}
	return slices.ContainsFunc(mayCall[kind], func(path string) bool {
		return op.path == path || strings.HasPrefix(op.path, strings.TrimSuffix(path, "/")+"/")
	})
}

// TestWhoMayCallWhat: every kind of credential, every operation.
func TestWhoMayCallWhat(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	secrets := map[string]string{
		"browser": r.Setup.BrowserToken, "server": r.Setup.ServerKey, "legacy": r.Setup.LegacyKey,
		"project": r.Setup.ProjectKey, "ci": r.Setup.CIToken,
	}
	here := place{r.Setup.OrganizationID, r.Setup.Project.ID, nowhere}
	seen := map[string]int{}
	for _, op := range operations(t, r) {
		if slices.Contains(open, op) {
			if response := do(t, op.method, r.URL+op.path, "", strings.NewReader("{}")); response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
				t.Errorf("%v: %d", op, response.StatusCode)
			} else if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		access, _ := login(t, r, r.Setup.Email, r.Setup.Password) // logging out must not end the test
		secrets["access"] = access.secret
		nobody(r).refused(t, "unauthenticated", op.method, here.fill(op), "{}")
		caller{r, "apt_" + strings.Repeat("0", 36)}.refused(t, "unauthenticated", op.method, here.fill(op), "{}")
		for kind, secret := range secrets {
			s := caller{r, secret}.call(t, op.method, here.fill(op), "{}")
			if refused := s.code() == "forbidden" && s.status == 403; refused == op.allows(kind) || s.status == 401 {
				t.Errorf("%s, %v: %d %v", kind, op, s.status, s.body)
			}
			if op.allows(kind) {
				seen[kind]++
			}
		}
	}
	if len(seen) != len(mayCall) {
		t.Errorf("some kinds may call nothing: %v", seen)
	}
}

// least is the lowest role that may call an operation of the application: reads
// are the viewer's, queries and markers the member's, the rest the admin's.
func (op operation) least() string {
	switch {
	case strings.HasSuffix(op.path, "/audit-log"), strings.HasSuffix(op.path, "/archive"):
		return "admin"
	case op.method == "GET", strings.HasPrefix(op.path, "/api/v1/auth/"):
		return "viewer"
	case strings.HasSuffix(op.path, "/query"), strings.Contains(op.path, "/release-markers"), strings.Contains(op.path, "/alerts"):
		return "member"
	default:
		return "admin"
	}
}

var ranks = map[string]int{"viewer": 1, "member": 2, "admin": 3, "owner": 4}

// TestRoles: every role, every operation of the application.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	members := map[string]caller{"owner": owner(r)}
	for _, role := range []string{"viewer", "member", "admin"} {
		members[role], _ = join(t, r, role+"@localhost", role)
	}
	here := place{r.Setup.OrganizationID, r.Setup.Project.ID, nowhere}
	for _, op := range operations(t, r) {
		if !op.allows("access") || slices.Contains(open, op) || op.path == "/api/v1/auth/logout" {
			continue
		}
		for _, role := range slices.Sorted(maps.Keys(members)) {
			s := members[role].call(t, op.method, here.fill(op), op.body())
			if refused := s.code() == "forbidden"; refused != (ranks[role] < ranks[op.least()]) || s.status == 401 || s.status >= 500 {
				t.Errorf("%s, %v: %d %v", role, op, s.status, s.body)
			}
		}
	}
}

// TestWhatIsElsewhereDoesNotExist: an object of another organization is refused
// in the words in which one is that does not exist.
func TestWhatIsElsewhereDoesNotExist(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		there, theirs := elsewhere(t, r)
		here := place{r.Setup.OrganizationID, r.Setup.Project.ID, nowhere}
		checked := 0
		for _, op := range operations(t, r) {
			if !strings.Contains(op.path, "{id}") {
				continue
			}
			c := owner(r)
			if op.allows("ci") {
				c = caller{r, r.Setup.CIToken}
			}
			none := say(t, c, op, place{nowhere, nowhere, nowhere})
			for name, p := range map[string]place{
				"theirs": there, "of theirs": {there.organization, there.project, nowhere}, "malformed": {"x", "x", "x"},
				"in capitals": {strings.ToUpper(here.organization), strings.ToUpper(here.project), nowhere},
			} {
				if got := say(t, c, op, p); got != none {
					t.Errorf("%v, %s: %s\nnot: %s", op, name, got, none)
				}
			}
			if !strings.Contains(none, "not_found") {
				t.Errorf("%v: %s", op, none)
			}
			if strings.Contains(op.path, "_id}") { // their member, key or marker, in our organization
				mine := say(t, c, op, place{here.organization, here.project, nowhere})
				if got := say(t, c, op, place{here.organization, here.project, there.other}); got != mine || !strings.Contains(got, "not_found") {
					t.Errorf("%v, their object here: %s\nnot: %s", op, got, mine)
				}
			}
			checked++
		}
		if checked < 30 {
			t.Errorf("only %d operations were checked", checked)
		}
		unchanged(t, theirs, there)
	})
}

// say is what an operation answers, but for what differs each time.
func say(t *testing.T, c caller, op operation, p place) string {
	t.Helper()
	request := requestOf(t, c, op.method, p.fill(op), op.body())
	request.Header.Set("X-Request-Id", "the-same")
	request.Header.Set("Idempotency-Key", "deploy-1001")
	s := sendRequest(t, request)
	s.header.Del("Date")
	return fmt.Sprint(s.status, s.header, s.body)
}

// elsewhere makes another organization with a project and a key, and returns
// where they are and its owner.
func elsewhere(t *testing.T, r *apptest.Running) (place, caller) {
	t.Helper()
	p := place{organization: owner(r).must(t, 201, "POST", "/api/v1/organizations", `{"name":"Theirs"}`).text(t, "id")}
	_, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
	moved := nobody(r).must(t, 200, "POST", "/api/v1/auth/refresh", fmt.Sprintf(`{"refresh_token":%q,"organization_id":%q}`, refresh, p.organization))
	if moved.body["organization_id"] != p.organization {
		t.Fatalf("%v", moved.body)
	}
	theirs := caller{r, moved.text(t, "access_token")}
	p.project = theirs.must(t, 201, "POST", "/api/v1/projects", `{"name":"Theirs"}`).text(t, "id")
	p.other = theirs.must(t, 201, "POST", "/api/v1/projects/"+p.project+"/ingest-keys", `{"name":"Theirs","kind":"server"}`).text(t, "id")
	return p, theirs
}

// unchanged: what is elsewhere is as it was made, and nothing has joined it.
func unchanged(t *testing.T, theirs caller, p place) {
	t.Helper()
	for path, name := range map[string]string{"/api/v1/organizations/" + p.organization: "Theirs", "/api/v1/projects/" + p.project: "Theirs"} {
		if got := theirs.must(t, 200, "GET", path, "").body["name"]; got != name {
			t.Errorf("%s is called %v", path, got)
		}
	}
	keys := theirs.must(t, 200, "GET", "/api/v1/projects/"+p.project+"/ingest-keys", "").items(t)
	if len(keys) != 1 || keys[0]["revoked_at"] != nil || keys[0]["expires_at"] != nil {
		t.Errorf("their keys: %v", keys)
	}
	for _, path := range []string{"/organizations/" + p.organization + "/invitations", "/projects/" + p.project + "/ci-tokens", "/projects/" + p.project + "/release-markers"} {
		if items := theirs.must(t, 200, "GET", "/api/v1"+path, "").items(t); len(items) != 0 {
			t.Errorf("%s: %v", path, items)
		}
	}
}
