// Package httpapi owns the HTTP surface: the routes, who may call them, how a
// body is read, and the one shape of every answer. A handler returns an
// answer or an error; one place writes it, logs it and counts it. The package
// never decides what is stored.
//
// Invariants:
//   - every answer has an X-Request-Id, every error the one envelope;
//   - refusals are decided in this order: credential, rate, size and type of
//     the body, JSON, validation, look-ups;
//   - a body is in memory only once it is known whose it is, or its route is
//     open and its limit small, and never more of it than the route's limit;
//   - a body's buffer is given away only after the handler has returned.
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/telemetry"
	"github.com/actionpulse/actionpulse/internal/work"
)

// Intake takes events in. A body is the decoded bytes of a request; it is not
// used any more once the method has returned. The context says nothing about
// the client: it is not cancelled when the client leaves. An error that is
// [intake.ErrNoAnswer] makes the connection end without an answer.
type Intake interface {
	// Track may refuse with invalid_json, validation_failed, forbidden,
	// quota_exceeded, trial_quota_exceeded, internal (nothing was accepted) or
	// unavailable.
	Track(ctx context.Context, src intake.Source, body []byte) (api.TrackResponse, error)
	// Identify and Alias may refuse with the same codes, Alias not for a quota.
	Identify(ctx context.Context, src intake.Source, body []byte) error
	Alias(ctx context.Context, src intake.Source, body []byte) error
	// Debug says what intake saw lately of one project.
	Debug(project uint32) api.IngestDebug
}

// Authenticator tells whom a secret speaks for. It may refuse with
// unauthenticated, token_expired and payment_required, and in the last case says
// whom it speaks for, too.
type Authenticator interface {
	Authenticate(ctx context.Context, secret string) (credential.Credential, error)
}

// Querier answers queries over one project. The response can be marshalled to
// JSON. It may refuse with invalid_json, validation_failed and query_timeout,
// and with what looking up the project refuses with, in this order.
type Querier interface {
	Run(ctx context.Context, project query.Project, body []byte) (response any, err error)
}

// Markers makes and finds release markers, of projects that exist. The errors
// are described where release.Service has these methods.
type Markers interface {
	Deploy(ctx context.Context, p release.DeployParams) (m release.Marker, replayed bool, err error)
	Create(ctx context.Context, projectID string, c release.Content) (release.Marker, error)
	List(ctx context.Context, p release.ListParams, cursor string) (markers []release.Marker, next string, err error)
	Get(ctx context.Context, projectID, markerID string) (release.Marker, error)
	Delete(ctx context.Context, projectID, markerID string) error
	FindKey(ctx context.Context, projectID, key string) (release.Key, error)
}

// Work looks up keys of keyed work. It refuses with not_found and
// validation_failed.
type Work interface {
	Find(ctx context.Context, projectID, key string) (work.Unit, error)
}

// Limiter admits requests. It refuses with rate_limited.
type Limiter interface {
	Admit(r quota.Request) error
}

// Params is everything the handler needs; every member must be set, except
// TrustedProxies.
type Params struct {
	Intake        Intake
	Authenticator Authenticator
	Sessions      Sessions
	Organizations Organizations
	Members       Members
	Invitations   Invitations
	Projects      Projects
	Keys          Keys
	AuditLog      AuditLog
	Querier       Querier
	Replays       Replays
	Markers       Markers
	Work          Work
	Webhooks      Webhooks
	Alerts        Alerts
	Models        Models
	Privacy       Privacy
	Credits       Credits
	Customers     Customers
	Books         Books
	Flows         Flows
	Executions    Executions
	Usage         Usage
	Limiter       Limiter
	// FlowSchema is the JSON Schema of flows.
	FlowSchema json.RawMessage
	// Ready returns nil, or why the process should get no requests now.
	Ready func() error

	// TrustedProxies are believed about the client's address.
	TrustedProxies []netip.Prefix
	// BodyTimeout is how long a body may take to arrive.
	BodyTimeout time.Duration
	// BodyMemory bounds the bytes of all bodies under way.
	BodyMemory int64

	Log      *slog.Logger
	Metrics  *telemetry.HTTP
	Gatherer prometheus.Gatherer
	Now      func() time.Time
	// NewRequestID returns a new UUIDv7.
	NewRequestID func() string
}

// service is the handler of every request.
type service struct {
	Params
	bodies    *bodies
	inflaters *inflaters
	mux       *http.ServeMux
	// none answers for paths that do not exist.
	none      *resource
	documents documents
}

// New returns the handler of every path.
func New(p Params) (http.Handler, error) { return newService(p, routes()) }

func newService(p Params, table []route) (*service, error) {
	inflaters, err := newInflaters()
	if err != nil {
		return nil, err
	}
	documents, err := newDocuments(p.FlowSchema)
	if err != nil {
		return nil, err
	}
	s := &service{
		Params: p, bodies: newBodies(p.BodyMemory), inflaters: inflaters, mux: http.NewServeMux(), documents: documents,
	}
	s.none = s.newResource("none")
	for path, resource := range s.resources(table) {
		s.mux.Handle(path, resource)
	}
	s.mux.Handle("/", s.none)
	return s, nil
}

// ServeHTTP hands the request to its resource. Paths that are not written the
// one clean way do not exist: nothing is ever redirected.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if !isClean(path) || r.RequestURI == "*" {
		s.none.ServeHTTP(w, r)
		return
	}
	if r.URL.RawPath != "" {
		if segments := strings.Split(path, "/"); slices.ContainsFunc(segments, isSlash) {
			s.serveSlash(w, r, segments)
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// Limits of every connection.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// writeSlack is how long an answer may take to be worked out and taken
	// by the client, beyond the time for the body and the query.
	writeSlack = 30 * time.Second
)

// ServerParams configures [Server].
type ServerParams struct {
	Handler http.Handler
	Log     *slog.Logger
	// BodyTimeout and QueryBudget are how long a body may take to arrive and
	// a query to be answered.
	BodyTimeout time.Duration
	QueryBudget time.Duration
}

// Server returns an HTTP server with every limit set. The body's own deadline
// is set for each request by the handler.
func Server(p ServerParams) *http.Server {
	return &http.Server{
		Handler:           p.Handler,
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      p.BodyTimeout + p.QueryBudget + writeSlack,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		// OPTIONS * is answered by the handler, like every other request.
		DisableGeneralOptionsHandler: true,
	}
}
