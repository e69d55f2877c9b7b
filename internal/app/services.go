package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/httpapi"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/work"
)

const (
	// tallyInterval is how long repeats and conflicts of keys may go unseen.
	tallyInterval = time.Second
	// sweepInterval is how often what has long ended is deleted.
	sweepInterval = time.Hour
	// flushTimeout limits the last writing of what was counted.
	flushTimeout = 5 * time.Second
)

// services are what lives on the SQL database, for handlers and commands.
type services struct {
	db       *sqldb.DB
	keys     *credential.Service
	accounts account.Services
	auditLog *auditlog.Service
	markers  *release.Service
	work     *work.Service
	tally    *idempotency.Tally
}

// newAccounts returns the services of credentials and accounts: a change of
// the latter is seen by the former.
func newAccounts(db *sqldb.DB) (*credential.Service, account.Services) {
	store := sqlstore.New(db)
	keys := credential.NewService(credential.Params{
		Store: store, Clock: time.Now, Random: rand.Reader, Announce: db.Announce,
	})
	return keys, account.NewServices(account.ServicesParams{
		Store: store, Clock: time.Now, Random: rand.Reader, AfterChange: keys.AfterChange,
	})
}

// newServices returns the services of a server. guard says why nothing may be
// written now.
func newServices(db *sqldb.DB, guard func() error) *services {
	store := sqlstore.New(db)
	s := &services{
		db: db, auditLog: auditlog.NewService(store), tally: idempotency.NewTally(db.Keys().AddCounts),
		work: work.NewService(work.Params{Keys: db.Keys(), Kinds: map[string]work.Status{}}),
	}
	s.keys, s.accounts = newAccounts(db)
	s.markers = release.NewService(release.Params{
		Store: store, Guard: guard, Tally: s.tally, Clock: time.Now, Random: rand.Reader,
	})
	return s
}

// start has workers do what goes on behind the services until ctx is done.
func (s *services) start(ctx context.Context, workers *sync.WaitGroup, log *slog.Logger) {
	workers.Go(func() {
		err := s.db.Listen(ctx, s.keys.Forget, func(err error) {
			log.Warn("changes made by other servers are not heard", "error", err)
		})
		if ctx.Err() == nil {
			log.Error("nobody listens for changes made by other servers", "error", err)
		}
	})
	workers.Go(func() {
		s.tally.Run(ctx, tallyInterval, func(err error) { log.Warn("repeats of keys were not counted yet", "error", err) })
	})
	workers.Go(func() { s.sweep(ctx, log) })
}

// sweep deletes what has long ended, at once and then every hour.
func (s *services) sweep(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if n, err := s.accounts.Sweeper.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("ended tokens were not deleted", "deleted", n, "error", err)
		}
		if n, err := s.db.Keys().Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("expired keys were not deleted", "deleted", n, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// flush writes what was counted since the workers ended: by requests that were
// cut. Nothing depends on these counts, so it is no failure to lose them.
func (s *services) flush(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := s.tally.Flush(ctx); err != nil {
		log.Warn("the last repeats of keys were not counted", "error", err)
	}
}

// handler puts the HTTP surface over the parts.
func (s *server) handler() (http.Handler, error) {
	c := s.params.Config
	querier, err := query.New(query.Options{Store: s.stores.events, Progress: s.intake, Budget: c.Query.TimeBudget})
	if err != nil {
		return nil, fmt.Errorf("set up queries: %w", err)
	}
	accounts := s.services.accounts
	return httpapi.New(httpapi.Params{
		Intake:        s.intake,
		Authenticator: s.services.keys,
		Sessions:      accounts.Sessions,
		Organizations: accounts.Organizations,
		Members:       accounts.Members,
		Invitations:   accounts.Invitations,
		Projects:      accounts.Projects,
		Keys:          s.services.keys,
		AuditLog:      s.services.auditLog,
		Querier:       querier,
		Markers:       s.services.markers,
		Work:          s.services.work,
		Limiter: quota.New(quota.Params{
			Key:     quota.Limit{Rate: c.Rate.RequestsPerSecond, Burst: c.Rate.Burst},
			Browser: quota.Limit{Rate: c.Rate.BrowserRequestsPerSecond, Burst: c.Rate.BrowserBurst},
			Now:     time.Now,
		}),
		Ready:          s.ready,
		TrustedProxies: c.TrustedProxies,
		BodyTimeout:    c.Intake.BodyTimeout,
		BodyMemory:     int64(c.Intake.BodyMemory),
		Log:            s.params.Log,
		Metrics:        s.metrics.HTTP,
		Gatherer:       s.metrics.Registry,
		Now:            time.Now,
		NewRequestID:   func() string { return uuid.Must(uuid.NewV7()).String() },
	})
}
