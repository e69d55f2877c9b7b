package sdk

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// scenario is a conversation to be held with both servers.
type scenario struct {
	name string
	talk func(c *conversation)
}

// scripted are the codes that the fake answers with only if it is told to, and
// token_expired, for which the real server takes an hour: the fake's own tests
// have it. The fake has no privacy jobs.
var scripted = []api.Code{
	api.CodePaymentRequired, api.CodeRequestTimeout, api.CodeRateLimited, api.CodeInternal, api.CodeUnavailable, api.CodeQueryTimeout,
	api.CodeTokenExpired, api.CodePrivacyJobActive, api.CodeQuotaExceeded, api.CodeTrialQuotaExceeded,
}

// TestTheFakeAnswersAsTheRealServer holds every conversation with both servers.
// Each has a project of its own, and scenarios run at the same time. Every code
// of the catalogue comes up, but those that are scripted.
func TestTheFakeAnswersAsTheRealServer(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, "--flows.allow_private").MustServe()
	all := slices.Concat(intakeScenarios, accessScenarios, markerScenarios, creditScenarios, holdScenarios, flowScenarios, randomScenarios)
	var codes sync.Map
	var held atomic.Int32
	t.Run("with", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				held.Add(1)
				for _, a := range compare(t, s.talk, realTarget(t, site, s.name), fakeTarget(t)) {
					codes.Store(api.Code(a.code), true)
				}
			})
		}
	})
	if int(held.Load()) < len(all) { // only some were asked for
		return
	}
	for _, spec := range api.Catalogue {
		if _, seen := codes.Load(spec.Code); seen == slices.Contains(scripted, spec.Code) {
			t.Errorf("%s: came up: %t", spec.Code, seen)
		}
	}
}

// TestAnswersThatAreNotKeptAnyMore needs servers that keep them for a second.
func TestAnswersThatAreNotKeptAnyMore(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, "--credits.response_retention", "1s").MustServe()
	compare(t, expiredAnswers, realTarget(t, site, "expired"), fakeTarget(t, actionpulsetest.WithResponseRetention(time.Second)))
}

// shownDifferences is how many answers are shown that differ: after the first,
// others may follow from it.
const shownDifferences = 5

// compare holds a conversation with both, and demands that it goes alike. It
// returns what was said.
func compare(t *testing.T, talk func(*conversation), ours, fake target) []exchange {
	t.Helper()
	var said [][]exchange
	for _, one := range []target{ours, fake} {
		c := &conversation{T: t, target: one, ids: map[string]string{one.projectID: "<project>"}}
		talk(c)
		said = append(said, c.said)
	}
	if len(said[0]) == 0 || len(said[0]) != len(said[1]) {
		t.Fatalf("%d exchanges with the real server, %d with the fake", len(said[0]), len(said[1]))
	}
	found := 0
	for i, r := range said[0] {
		d := cmp.Diff(strings.Split(r.answered, "\n"), strings.Split(said[1][i].answered, "\n"))
		if d != "" && found < shownDifferences {
			t.Errorf("%s\n-real +fake: %s", r.asked, d)
			found++
		}
	}
	return said[0]
}

// target is a server to talk to, and one project of it that nobody else uses.
type target struct {
	name, url, projectID string
	// access is an access token, and email and password log in.
	access, email, password string
	client                  *http.Client
	// credential makes a credential of a kind, at most one of each.
	credential func(kind string) string
	// fake is the fake server, nil for the real one.
	fake *actionpulsetest.Server
}

func (t *target) browser() string { return t.credential("browser") }
func (t *target) server() string  { return t.credential("server") }
func (t *target) legacy() string  { return t.credential("legacy") }
func (t *target) project() string { return t.credential("project") }
func (t *target) ci() string      { return t.credential("ci") }

// realTarget makes a project of its own on the real server.
func realTarget(t *testing.T, r *apptest.Running, name string) target {
	t.Helper()
	id := create(t, r, "/api/v1/projects", fmt.Sprintf(`{"name":%q}`, name), "id")
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	made := map[string]string{}
	return target{
		name: "real", url: r.URL, projectID: id, client: client, access: r.Setup.AccessToken, email: r.Setup.Email, password: r.Setup.Password,
		credential: func(kind string) string { // asked by one goroutine
			if made[kind] == "" {
				made[kind] = newCredential(t, r, id, kind)
			}
			return made[kind]
		},
	}
}

// create makes something on the real server, and returns a member of the answer.
func create(t *testing.T, r *apptest.Running, path, body, member string) string {
	t.Helper()
	status, answer := r.Post(path, r.Setup.AccessToken, body)
	value, ok := answer[member].(string)
	if status != http.StatusCreated || !ok {
		t.Fatalf("%s: %d %v", path, status, answer)
	}
	return value
}

// newCredential makes a credential of a project of the real server.
func newCredential(t *testing.T, r *apptest.Running, projectID, kind string) string {
	t.Helper()
	at := "/api/v1/projects/" + projectID
	switch kind {
	case "project":
		return create(t, r, at+"/project-keys", `{"name":"p"}`, "token")
	case "ci":
		return create(t, r, at+"/ci-tokens", `{"name":"c"}`, "token")
	case "legacy": // one that another system has made
		token := "legacy-" + projectID
		create(t, r, at+"/ingest-keys/import", fmt.Sprintf(`{"name":"l","token":%q}`, token), "id")
		return token
	default:
		return create(t, r, at+"/ingest-keys", fmt.Sprintf(`{"name":"k","kind":%q}`, kind), "token")
	}
}

// fakeTarget starts a fake server.
func fakeTarget(t *testing.T, options ...actionpulsetest.Option) target {
	t.Helper()
	s := actionpulsetest.NewServer(t, append(options, actionpulsetest.AllowUnknownPaths())...)
	all := map[string]string{
		"browser": s.BrowserToken, "server": s.ServerKey, "legacy": s.LegacyKey, "project": s.ProjectKey, "ci": s.CIToken,
	}
	return target{
		name: "fake", fake: s, url: s.URL, projectID: s.ProjectID, client: s.Client(), access: s.AccessToken, email: s.Email, password: s.Password,
		credential: func(kind string) string { return all[kind] },
	}
}
