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
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/httpapi"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/otlp"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/telemetry"
	"github.com/actionpulse/actionpulse/internal/work"
)

const (
	// tallyInterval is how long repeats and conflicts of keys may go unseen.
	tallyInterval = time.Second
	// sweepInterval is how often what has long ended is deleted.
	sweepInterval = time.Hour
	// settleInterval is how long what has expired may still be seen.
	settleInterval = time.Second
	// movementWorkers is how many groups of movements are committed at once.
	movementWorkers = 4
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
	credits  *credit.Service
	// customers and books are about the same customers as credits.
	customers *credit.Customers
	books     *credit.Books
	webhooks  webhooks
	models    *model.Service
	replays   *replay.Service
	// callees are what steps of flows call.
	callees callees
	flows   *flow.Service
	// engine runs executions.
	engine     *execution.Engine
	executions *execution.Service
	// exporter takes their traces; nil if nobody wants them.
	exporter *otlp.Exporter
}

// servicesParams is what the services need.
type servicesParams struct {
	DB *sqldb.DB
	// Database is as in the settings: empty for SQLite.
	Database config.DatabaseURL
	Credits  config.Credits
	Webhooks config.Webhooks
	Flows    config.Flows
	// Retention is what projects may ask for.
	Retention retention.Rules
	// Cipher reads the secrets of model providers.
	Cipher *model.Cipher
	// Exporter takes traces of executions; nil if nobody wants them.
	Exporter *otlp.Exporter
	// Blobs keeps session recordings, in the folder or bucket Place.
	Blobs   replay.Blobs
	Place   [16]byte
	Metrics *telemetry.Metrics
	// ReplayQuota admits chunks of session recordings.
	ReplayQuota replay.Quota
	// Guard says why nothing may be written now.
	Guard func() error
	// ReplayGuard says why no session recordings may be taken in now.
	ReplayGuard func() error
	// Now is the time of day.
	Now func() time.Time
	Log *slog.Logger
}

// newAccounts returns the services of credentials and accounts: a change of
// the latter is seen by the former. rules are what projects may ask for.
func newAccounts(db *sqldb.DB, rules retention.Rules) (*credential.Service, account.Services) {
	store := sqlstore.New(db)
	keys := credential.NewService(credential.Params{
		Store: store, Clock: time.Now, Random: rand.Reader, Announce: db.Announce,
	})
	return keys, account.NewServices(account.ServicesParams{
		Store: store, Clock: time.Now, Random: rand.Reader, AfterChange: keys.AfterChange, Retention: rules,
	})
}

// newServices returns the services of a server, which must be closed.
func newServices(p servicesParams) (*services, error) {
	store := sqlstore.New(p.DB)
	s := &services{
		db: p.DB, auditLog: auditlog.NewService(store), tally: idempotency.NewTally(p.DB.Keys().AddCounts), exporter: p.Exporter,
	}
	s.keys, s.accounts = newAccounts(p.DB, p.Retention)
	s.markers = release.NewService(release.Params{
		Store: store, Guard: p.Guard, Tally: s.tally, Clock: time.Now, Random: rand.Reader,
	})
	replays, err := newReplays(p)
	if err != nil {
		return nil, err
	}
	s.replays, s.webhooks = replays, newWebhooks(p)
	s.openCredits(p)
	s.models, s.callees = newModels(p)
	s.flows = newFlows(p, stepTypes(s.callees))
	s.engine, s.executions = newExecutions(p, s)
	s.work = work.NewService(work.Params{Keys: p.DB.Keys(), Kinds: map[string]work.Status{
		execution.Kind:       s.executions.Status,
		string(credit.Topup): s.books.Status, string(credit.Charge): s.books.Status, string(credit.Adjust): s.books.Status,
	}})
	return s, nil
}

// openCredits starts the queue of movements.
func (s *services) openCredits(p servicesParams) {
	workers := movementWorkers
	if p.Database == "" {
		workers = 1 // SQLite has one writer
	}
	store := ledger.New(p.DB)
	store.OnMessages(s.webhooks.worker.Wake)
	s.credits = credit.NewService(credit.Params{
		Store: store, Workers: workers, KeepAnswers: p.Credits.ResponseRetention, Guard: p.Guard, Tally: s.tally,
		Clock: p.Now, Random: rand.Reader, Log: p.Log,
	})
	s.customers = credit.NewCustomers(credit.CustomersParams{Store: store, Guard: p.Guard, Clock: p.Now})
	s.books = credit.NewBooks(store)
}

// start has workers do what goes on behind the services until ctx is done.
func (s *services) start(ctx context.Context, workers *sync.WaitGroup, log *slog.Logger) {
	workers.Go(func() {
		err := s.db.Listen(ctx, s.changed, func(err error) {
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
	workers.Go(func() { s.settle(ctx, log) })
	workers.Go(func() { s.sweepReplays(ctx, log) })
	workers.Go(func() { s.webhooks.run(ctx) })
	workers.Go(func() { s.engine.Run(ctx) })
}

// changed is called when another server may have changed something that is
// remembered here, or may have something to run.
func (s *services) changed() {
	s.keys.Forget()
	s.executions.ForgetEnded()
	s.engine.Wake()
}

// settle does what time has done to credits, every second.
func (s *services) settle(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(settleInterval)
	defer ticker.Stop()
	for {
		if n, err := s.credits.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("credits and holds that have expired are still there", "settled", n, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
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
		if n, err := s.webhooks.worker.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("old webhook deliveries were not deleted", "deleted", n, "error", err)
		}
		if n, err := s.executions.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("old traces were not deleted", "deleted", n, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// close ends the movements under way, and writes what was counted since the
// workers ended: by requests that were cut. Nothing depends on these counts, so
// it is no failure to lose them.
func (s *services) close(log *slog.Logger) {
	s.credits.Close()
	s.replays.Close()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := s.tally.Flush(ctx); err != nil {
		log.Warn("the last repeats of keys were not counted", "error", err)
	}
	if s.exporter == nil {
		return
	}
	if err := s.exporter.Close(ctx); err != nil {
		log.Warn("the last traces of executions were not exported", "error", err)
	}
}

// handler puts the HTTP surface over the parts.
func (s *server) handler() (http.Handler, error) {
	c := s.params.Config
	querier, err := query.New(query.Options{Store: s.stores.events, Progress: s.intake, Budget: c.Query.TimeBudget})
	if err != nil {
		return nil, fmt.Errorf("set up queries: %w", err)
	}
	s.alerts = s.newAlerts(querier)
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
		Replays:       s.services.replays,
		Markers:       s.services.markers,
		Work:          s.services.work,
		Webhooks:      s.services.webhooks.service,
		Alerts:        s.alerts.service,
		Models:        s.services.models,
		Privacy:       s.privacy.service,
		Credits:       s.services.credits,
		Customers:     s.services.customers,
		Books:         s.services.books,
		Flows:         s.services.flows,
		FlowSchema:    s.services.flows.Schema(),
		Executions:    s.services.executions,
		Usage:         quota.NewReporter(s.meter, usageHistory{s.stores.events}, sqlstore.New(s.stores.sql)),
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
