package e2e_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// onBothEngines runs a test on a server with each database.
func onBothEngines(t *testing.T, test func(t *testing.T, r *apptest.Running)) {
	t.Helper()
	onBothEnginesWith(t, nil, test)
}

// onBothEnginesWith is onBothEngines with other settings.
func onBothEnginesWith(t *testing.T, flags []string, test func(t *testing.T, r *apptest.Running)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, apptest.New(t, flags...).MustServe())
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, apptest.NewOnPostgreSQL(t, flags...).MustServe())
	})
}

// deploy is a request for a deploy marker.
type deploy struct {
	keys []string
	body string
	// project and secret are the site's own if empty.
	project, secret string
}

// said is an answer to it.
type said struct {
	status   int
	replayed bool
	header   http.Header
	raw      string
	body     map[string]any
}

func (s said) code() any { return s.part("code") }

func (s said) part(name string) any {
	e, _ := s.body["error"].(map[string]any)
	return e[name]
}

func (s said) detail(name string) any {
	details, _ := s.part("details").(map[string]any)
	return details[name]
}

func (d deploy) request(t *testing.T, r *apptest.Running, base string) *http.Request {
	t.Helper()
	project, secret := r.Setup.Project.ID, r.Setup.CIToken
	if d.project != "" {
		project = d.project
	}
	if d.secret != "" {
		secret = d.secret
	}
	url := base + "/api/v1/projects/" + project + "/release-markers/deploy"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(d.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header["Idempotency-Key"] = d.keys
	return request
}

func (d deploy) send(t *testing.T, r *apptest.Running) said {
	t.Helper()
	response, err := http.DefaultClient.Do(d.request(t, r, r.URL))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

func read(t *testing.T, response *http.Response) said {
	t.Helper()
	defer response.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	asDocumented(t, response, content)
	s := said{status: response.StatusCode, replayed: response.Header.Get("Idempotency-Replayed") == "true", header: response.Header, raw: string(content)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(content, &s.body); err != nil {
			t.Fatalf("%d %s: %v", response.StatusCode, content, err)
		}
	}
	return s
}

// get reads with the access token.
func get(t *testing.T, r *apptest.Running, path string) said {
	t.Helper()
	return read(t, do(t, "GET", r.URL+path, r.Setup.AccessToken, nil)) //nolint:bodyclose // read closes it
}

func markers(r *apptest.Running) string {
	return "/api/v1/projects/" + r.Setup.Project.ID + "/release-markers"
}

// cut resets the client's connection without an answer.
func cut(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok || tcp.SetLinger(0) != nil || tcp.Close() != nil {
		t.Error("the connection was not reset")
	}
}
