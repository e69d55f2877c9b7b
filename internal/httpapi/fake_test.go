package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one thing that reached intake.
type call struct {
	method string
	source intake.Source
	body   string
}

// fakeIntake notes what reaches it. It takes everything that is a JSON object.
type fakeIntake struct {
	mu    sync.Mutex
	calls []call
	// track, if set, answers in place of the default.
	track func(ctx context.Context, body []byte) (api.TrackResponse, error)
}

func (f *fakeIntake) note(method string, src intake.Source, body []byte) error {
	if !json.Valid(body) {
		return fault.New(api.CodeInvalidJSON, "the body is not JSON")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call{method, src, string(body)})
	return nil
}

func (f *fakeIntake) Track(ctx context.Context, src intake.Source, body []byte) (api.TrackResponse, error) {
	if f.track != nil {
		return f.track(ctx, body)
	}
	return api.TrackResponse{Accepted: 1}, f.note("track", src, body)
}

func (f *fakeIntake) Identify(_ context.Context, src intake.Source, body []byte) error {
	return f.note("identify", src, body)
}

func (f *fakeIntake) Alias(_ context.Context, src intake.Source, body []byte) error {
	return f.note("alias", src, body)
}

func (f *fakeIntake) Debug(project uint32) api.IngestDebug {
	return api.IngestDebug{Accepted: []api.DebugItem{{Key: int64(project)}}}
}

// taken is what has reached intake.
func (f *fakeIntake) taken() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

const (
	projectID    = "01980000-0000-7000-8000-000000000001"
	organization = "01980000-0000-7000-8000-00000000000a"
)

// credentials by secret.
var credentials = map[string]credential.Credential{
	"browser":  {Number: 1, Kind: credential.Browser, Project: 7},
	"pinned":   {Number: 2, Kind: credential.Browser, Project: 7, Origins: []string{"https://Shop.example", "http://localhost:3000"}},
	"server":   {Number: 3, Kind: credential.Server, Project: 7},
	"legacy":   {Number: 4, Kind: credential.Legacy, Project: 7},
	"project":  {Number: 5, Kind: credential.Project, Project: 7},
	"ci":       {Number: 6, Kind: credential.CI, Project: 7},
	"owner":    {Number: 7, Kind: credential.Access, OrganizationID: organization, Role: "owner"},
	"member":   {Number: 8, Kind: credential.Access, OrganizationID: organization, Role: "member"},
	"viewer":   {Number: 9, Kind: credential.Access, OrganizationID: organization, Role: "viewer"},
	"stranger": {Number: 10, Kind: credential.Access, OrganizationID: "other", Role: "owner"},
	"unknown":  {Number: 11, Kind: credential.Access, OrganizationID: organization, Role: "emperor"},
	"slow":     {Number: 12, Kind: credential.Server, Project: 7, Rate: new(0.1), Burst: new(1)},
}

type fakeAuthenticator struct{}

func (fakeAuthenticator) Authenticate(_ context.Context, secret string) (credential.Credential, error) {
	switch secret {
	case "expired":
		return credential.Credential{}, fault.New(api.CodeTokenExpired, "the access token has expired")
	case "suspended":
		return credential.Credential{}, fault.New(api.CodePaymentRequired, "the organization is suspended")
	case "broken":
		return credential.Credential{}, errors.New("the secret store says hunter2")
	}
	if c, ok := credentials[secret]; ok {
		return c, nil
	}
	return credential.Credential{}, fault.New(api.CodeUnauthenticated, "the credential is not known")
}

// fakeProjects finds one project and has no other method.
type fakeProjects struct{ Projects }

func (fakeProjects) Get(_ context.Context, organizationID, id string) (account.Project, error) {
	if organizationID != organization || id != projectID {
		return account.Project{}, fault.New(api.CodeNotFound, "there is no such project")
	}
	return account.Project{ID: id, Number: 7}, nil
}

// fakeQuerier answers by what the body says.
type fakeQuerier struct{}

func (fakeQuerier) Run(ctx context.Context, find query.Project, body []byte) (any, error) {
	text := strings.TrimSpace(string(body))
	switch text { // the request is judged before its project is looked up
	case `{"type":"bad"}`:
		return nil, fault.Field("type", "there is no such query")
	case `{`:
		return nil, fault.New(api.CodeInvalidJSON, "the body is not JSON")
	}
	project, err := find(ctx)
	if err != nil {
		return nil, err
	}
	switch text {
	case `{"type":"slow"}`:
		return nil, fault.New(api.CodeQueryTimeout, "the query did not finish in time").With("hint", "narrow it")
	case `{"type":"wait"}`:
		<-ctx.Done()
		return nil, fault.Wrap(api.CodeInternal, ctx.Err(), "interrupted")
	case `{"type":"unencodable"}`:
		return func() {}, nil
	}
	return map[string]any{"series": "<ok>", "project": project}, nil
}

// bundle is a real server over fakes.
type bundle struct {
	url     string
	address string
	intake  *fakeIntake
	metrics *telemetry.Metrics
	service *service
	// log is what was logged.
	log   *logBuffer
	ready error
}

// logBuffer is a log that tests may read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// How long a body may take: in most tests, and where it is to take too long.
const (
	patience   = 30 * time.Second
	impatience = 300 * time.Millisecond
)

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupWithin(t, patience)
}

// setupWithin starts a server that waits this long for a body. It has the
// routes of the table and others.
func setupWithin(t testing.TB, bodyTimeout time.Duration, others ...route) *bundle {
	t.Helper()
	b := &bundle{intake: &fakeIntake{}, metrics: telemetry.NewMetrics(), log: &logBuffer{}}
	log := slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	limiter := quota.New(quota.Params{
		Key: quota.Limit{Rate: 1e6, Burst: 1e6}, Browser: quota.Limit{Rate: 1e6, Burst: 1e6},
		MaxBudgets: 100, Now: time.Now,
	})
	handler, err := newService(Params{
		Intake: b.intake, Authenticator: fakeAuthenticator{}, Projects: fakeProjects{}, Querier: fakeQuerier{},
		Limiter: limiter, Ready: func() error { return b.ready },
		BodyTimeout: bodyTimeout, BodyMemory: 64 << 20,
		Log: log, Metrics: b.metrics.HTTP, Gatherer: b.metrics.Registry,
		Now: time.Now, NewRequestID: func() string { return uuid.Must(uuid.NewV7()).String() },
	}, append(routes(), others...))
	if err != nil {
		t.Fatal(err)
	}
	b.service = handler
	b.serve(t, Server(ServerParams{Handler: handler, Log: log, BodyTimeout: bodyTimeout, QueryBudget: time.Minute}))
	return b
}

// serve runs a server on a free port until the test ends.
func (b *bundle) serve(t testing.TB, server *http.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	b.url = "http://" + b.address
	var done sync.WaitGroup
	done.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		done.Wait()
	})
}

// counted is how many requests ended with a route, code and status.
func (b *bundle) counted(t testing.TB, route, code, status string) float64 {
	t.Helper()
	families, err := b.metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"route": route, "code": code, "status": status}
	for _, family := range families {
		if family.GetName() != "actionpulse_http_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			equal := true
			for _, l := range m.GetLabel() {
				equal = equal && want[l.GetName()] == l.GetValue()
			}
			if equal {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
