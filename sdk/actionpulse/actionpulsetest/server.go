package actionpulsetest

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/idempotency"
)

// DefaultWindow is how long an event_id is remembered.
const DefaultWindow = 48 * time.Hour

// DefaultResponseRetention is how long the first answer to a movement is kept.
const DefaultResponseRetention = 24 * time.Hour

// Server is a fake of ActionPulse with one organization, one project and one
// credential of each kind. Its methods may be called at any time, from any
// goroutine.
type Server struct {
	// URL is where it listens: http://127.0.0.1 and a port.
	URL string
	// ProjectID is the one project.
	ProjectID string
	// BrowserToken, ServerKey and LegacyKey send events, ProjectKey does keyed
	// work, CIToken posts deploy markers.
	BrowserToken, ServerKey, LegacyKey, ProjectKey, CIToken string
	// AccessToken and RefreshToken are of one session, as a login returns them.
	// The access token works for an hour of the server's clock.
	AccessToken, RefreshToken string
	// Email and Password log in.
	Email, Password string

	t         testing.TB
	server    *httptest.Server
	quiet     bool
	window    time.Duration
	retention time.Duration
	// over is closed when the test ends; runs are those of flows.
	over chan struct{}
	runs sync.WaitGroup

	// mu guards everything below.
	mu       sync.Mutex
	now      func() time.Time
	faults   []*Fault
	requests []Request
	attempts map[string]int
	sessions *sessions
	intake   *intake
	chunks   []ReplayChunk
	keys     map[idempotency.Ref]*idempotency.Record
	ledger   *ledger
	flows    flows
	runsOf   executions
	markers  []*marker
}

// Option changes what NewServer makes.
type Option func(*Server)

// WithTime stops the server's clock at a time. Without it the clock is the
// machine's. [Server.Advance] moves it in either case.
func WithTime(at time.Time) Option {
	return func(s *Server) { s.now = func() time.Time { return at } }
}

// WithWindow remembers event ids for d instead of [DefaultWindow].
func WithWindow(d time.Duration) Option { return func(s *Server) { s.window = d } }

// WithResponseRetention keeps the first answers to movements for d instead of
// [DefaultResponseRetention].
func WithResponseRetention(d time.Duration) Option { return func(s *Server) { s.retention = d } }

// AllowUnknownPaths does not fail the test when a path is asked for that the
// fake does not have. The answer is 404 not_found all the same.
func AllowUnknownPaths() Option { return func(s *Server) { s.quiet = true } }

// NewServer starts a server. It is closed when the test ends: then runs of flows
// that are under way have their context cancelled and are waited for, and a
// scripted fault that no request has met fails the test.
func NewServer(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := &Server{
		t: t, ProjectID: newID(), Email: "owner@shop.test", Password: "correct horse battery",
		BrowserToken: secret("apb_"), ServerKey: secret("aps_"), LegacyKey: secret("apl_"), ProjectKey: secret("apk_"), CIToken: secret("apc_"),
		window: DefaultWindow, retention: DefaultResponseRetention, now: time.Now, attempts: map[string]int{},
		intake: newIntake(), keys: map[idempotency.Ref]*idempotency.Record{}, ledger: newLedger(), flows: flows{}, runsOf: newExecutions(),
	}
	for _, option := range options {
		option(s)
	}
	s.sessions = newSessions()
	first := s.sessions.begin(s.time())
	s.AccessToken, s.RefreshToken = first.AccessToken, first.RefreshToken
	s.over = make(chan struct{})
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(s.close)
	return s
}

// close ends the server, and then what it has begun.
func (s *Server) close() {
	close(s.over)
	s.server.CloseClientConnections()
	s.server.Close()
	s.stopRuns()
	s.runs.Wait()
	s.checkScript()
}

// Client is an HTTP client of the server whose connections end with it.
func (s *Server) Client() *http.Client { return s.server.Client() }

// Now is what the server takes for the time.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time()
}

// time is now in UTC, to the microsecond. s.mu must be held, but before the
// server listens.
func (s *Server) time() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// SetTime stops the server's clock at a time.
func (s *Server) SetTime(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = func() time.Time { return at }
}

// Advance moves the server's clock on by d, or back if d is negative. Whether it
// stands still does not change.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now
	s.now = func() time.Time { return before().Add(d) }
}

// newID returns a version 7 UUID, later ones greater than earlier ones.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// secret returns a new secret that begins with prefix.
func secret(prefix string) string { return prefix + rand.Text() }
