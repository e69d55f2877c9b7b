package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// caller is somebody with a secret, or nobody with an empty one.
type caller struct {
	r      *apptest.Running
	secret string
}

// call sends a request; body is empty for none.
func (c caller) call(t *testing.T, method, path, body string) said {
	t.Helper()
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	return read(t, do(t, method, c.r.URL+path, c.secret, reader)) //nolint:bodyclose // read closes it
}

// must is call with an answer that is expected.
func (c caller) must(t *testing.T, status int, method, path, body string) said {
	t.Helper()
	s := c.call(t, method, path, body)
	if s.status != status {
		t.Fatalf("%s %s: %d %v, want %d", method, path, s.status, s.body, status)
	}
	return s
}

// refused demands a refusal with a code.
func (c caller) refused(t *testing.T, code, method, path, body string) said {
	t.Helper()
	s := c.call(t, method, path, body)
	if s.code() != code {
		t.Errorf("%s %s: %d %v, want %s", method, path, s.status, s.body, code)
	}
	return s
}

// text is a member of an answer.
func (s said) text(t *testing.T, name string) string {
	t.Helper()
	text, ok := s.body[name].(string)
	if !ok || text == "" {
		t.Fatalf("no %s in %v", name, s.body)
	}
	return text
}

// items are those of a list.
func (s said) items(t *testing.T) []map[string]any {
	t.Helper()
	list, ok := s.body["items"].([]any)
	if !ok {
		t.Fatalf("no list: %v", s.body)
	}
	all := make([]map[string]any, len(list))
	for i, it := range list {
		all[i], _ = it.(map[string]any)
	}
	return all
}

func nobody(r *apptest.Running) caller { return caller{r, ""} }

// owner is the owner whom init has made, with the token of the first day.
func owner(r *apptest.Running) caller { return caller{r, r.Setup.AccessToken} }

// login logs in and returns both tokens.
func login(t *testing.T, r *apptest.Running, email, password string) (access caller, refresh string) {
	t.Helper()
	s := nobody(r).must(t, 200, "POST", "/api/v1/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
	if s.body["expires_in"] != 3600.0 {
		t.Errorf("expires_in %v", s.body["expires_in"])
	}
	return caller{r, s.text(t, "access_token")}, s.text(t, "refresh_token")
}

// own is the path of the first organization, project that of its project.
func own(r *apptest.Running) string     { return "/api/v1/organizations/" + r.Setup.OrganizationID }
func project(r *apptest.Running) string { return "/api/v1/projects/" + r.Setup.Project.ID }

const newPassword = "correct horse battery staple"

// join has a new user invited as a role, who accepts and logs in.
func join(t *testing.T, r *apptest.Running, email, role string) (access caller, userID string) {
	t.Helper()
	token := owner(r).must(t, 201, "POST", own(r)+"/invitations", fmt.Sprintf(`{"email":%q,"role":%q}`, email, role)).text(t, "token")
	joined := nobody(r).must(t, 201, "POST", "/api/v1/invitations/accept", fmt.Sprintf(`{"token":%q,"password":%q}`, token, newPassword))
	if joined.body["role"] != role || joined.body["organization_id"] != r.Setup.OrganizationID {
		t.Fatalf("joined as %v", joined.body)
	}
	access, _ = login(t, r, email, newPassword)
	return access, joined.text(t, "user_id")
}

// together runs something n times at once.
func together(n int, run func(i int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	group.Wait()
}

// sendWith posts JSON with headers and without a secret.
func sendWith(t *testing.T, r *apptest.Running, path, body string, headers map[string]string) said {
	t.Helper()
	request := requestOf(t, nobody(r), http.MethodPost, path, body)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	return sendRequest(t, request)
}

// requestOf is a request of a caller.
func requestOf(t *testing.T, c caller, method, path, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if c.secret != "" {
		request.Header.Set("Authorization", "Bearer "+c.secret)
	}
	return request
}

func sendRequest(t *testing.T, request *http.Request) said {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}
