package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/httpapi"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/materializer"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// ServeParams are what a server needs.
type ServeParams struct {
	Config config.Config
	Log    *slog.Logger
	// Fatal is called when a store can no longer say what is on disk. It must
	// end the process at once and not return: whatever is unanswered by then
	// stays unanswered.
	Fatal func(error)
	// Listening is called with the address once requests are taken.
	Listening func(address net.Addr)
	// Clock stamps what is taken in; nil is the machine's.
	Clock intake.Clock
	// Now stamps what is stored beside the events: recordings, executions,
	// movements, messages of webhooks, privacy jobs; nil is the machine's clock.
	Now func() time.Time
}

// server is a running data folder.
type server struct {
	params   ServeParams
	folder   folder
	stores   *stores
	metrics  *telemetry.Metrics
	space    *spaceGuard
	intake   *intake.Service
	services *services
	// health counts what this server takes in.
	health *alert.Health
	alerts alerts
	meter  *quota.Meter
	// replayQuota is the meter's for session replays.
	replayQuota *quota.Replays
	control     *controlServer
	still       still
	privacy     privacyJobs
	draining    atomic.Bool
}

// Serve serves a data folder until ctx is done, then drains: requests under
// way are answered, what was acknowledged is stored, and the folder is closed.
// Errors wrap ErrRefused if the folder cannot be used as it is.
func Serve(ctx context.Context, p ServeParams) error {
	f, fatal := folder(p.Config.Data), p.Fatal
	if p.Clock == nil {
		p.Clock = intake.SystemClock{}
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	p.Fatal = func(err error) {
		if errors.Is(err, intakestore.ErrGap) || errors.Is(err, intakestore.ErrDamaged) {
			err = fmt.Errorf("%w; %s", err, f.repairHint())
		}
		fatal(err)
	}
	s := &server{params: p, folder: f, metrics: telemetry.NewMetrics(), health: alert.NewHealth()}
	var err error
	s.stores, err = s.folder.open(ctx, openParams{
		Database: p.Config.Database, EventStore: p.Config.EventStore, Replay: p.Config.Replay, Log: p.Log, Fatal: p.Fatal, Serving: true,
	})
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx), s.stores.close())
}

func (s *server) run(ctx context.Context) error {
	if err := errors.Join(s.folder.dropCheckpoint(), s.folder.beginGeneration(ctx, s.stores.sql)); err != nil {
		return err
	}
	if err := s.widenWindow(ctx); err != nil {
		return err
	}
	if err := s.startMeter(ctx); err != nil {
		return err
	}
	cipher, err := s.folder.openCipher(ctx, s.params.Config.SecretKey, sqlstore.New(s.stores.sql).SecretKeyIDs)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.params.Config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.params.Config.Listen, err)
	}
	s.startSpaceGuard()
	exporter, err := newExporter(ctx, s.params.Config.Flows)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.services, err = newServices(servicesParams{
		DB: s.stores.sql, Database: s.params.Config.Database, Credits: s.params.Config.Credits,
		Webhooks: s.params.Config.Webhooks, Flows: s.params.Config.Flows, Retention: s.retentionRules(), Cipher: cipher, Exporter: exporter,
		Blobs: heldBlobs{s.stores.blobs, &s.still}, Place: s.stores.place, Metrics: s.metrics, ReplayQuota: s.replayQuota, Guard: s.space.guard,
		ReplayGuard: s.guardReplays, Now: s.params.Now, Log: s.params.Log,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.control, err = s.folder.startControl(ctx, controlParams{Commands: s.commands(), Sessions: s.sessions(), Log: s.params.Log})
	if err != nil {
		s.services.close(s.params.Log)
		return errors.Join(err, listener.Close())
	}
	return errors.Join(s.serve(ctx, listener), s.control.close())
}

// commands are what the operator may have a running server do.
func (s *server) commands() map[string]controlCommand {
	commands := organizationOperator{s.services.accounts.Organizations, plansOf(s.params.Config.Quota)}.commands()
	commands[verifyCommand] = func(ctx context.Context, _ io.Reader) (any, error) {
		return s.stores.verify(ctx, ledger.AuditParams{Now: time.Now()})
	}
	return commands
}

// widenWindow rebuilds the claims if the window has grown: those that had
// expired under the old one count again.
func (s *server) widenWindow(ctx context.Context) error {
	window := s.params.Config.Intake.Window.Milliseconds()
	if before := s.stores.intake.State().Window; before == 0 || before >= window {
		return nil
	}
	n, err := s.stores.audit().Rebuild(ctx, window)
	if err != nil {
		return fmt.Errorf("widen the deduplication window: %w", err)
	}
	s.params.Log.Info("the deduplication window has grown; the claims were rebuilt", "claims", n)
	return nil
}

// serve runs until ctx is done or a part fails, and stops the parts in the
// order in which requests and events pass through them.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	s.intake = intake.New(intake.Params{
		Store: s.stores.intake, Window: s.params.Config.Intake.Window, Clock: s.params.Clock,
		Guard: s.space.guard, Quota: s.meter, Fatal: s.params.Fatal, Observer: intakeObserver{s.metrics.Intake, s.health},
	})
	s.openPrivacy()
	handler, err := s.handler()
	if err != nil {
		s.intake.Close()
		s.services.close(s.params.Log)
		return errors.Join(err, listener.Close())
	}
	web := httpapi.Server(httpapi.ServerParams{
		Handler: handler, Log: s.params.Log,
		BodyTimeout: s.params.Config.Intake.BodyTimeout, QueryBudget: s.params.Config.Query.TimeBudget,
	})
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, 2)
	var workers sync.WaitGroup
	s.work(background, &workers, failed)
	workers.Go(func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve: %w", err)
		}
	})
	s.params.Listening(listener.Addr())

	select {
	case <-ctx.Done():
		s.params.Log.Info("stopping", "cause", context.Cause(ctx))
	case err = <-failed:
		s.params.Log.Error("stopping", "error", err)
	}
	stopping, stopped := context.WithTimeout(context.Background(), s.params.Config.ShutdownTimeout)
	defer stopped()
	s.draining.Store(true)
	s.control.endSessions() // what was acknowledged is yet to be stored
	s.services.engine.Drain()
	err = errors.Join(err, s.shutdown(stopping, web))
	s.intake.Close()
	stopBackground()
	workers.Wait()
	s.services.engine.Stop(stopping)
	s.services.close(s.params.Log)
	select {
	case late := <-failed:
		err = errors.Join(err, late)
	default:
	}
	return err
}

// work has workers do what goes on beside the requests until ctx is done.
func (s *server) work(ctx context.Context, workers *sync.WaitGroup, failed chan<- error) {
	workers.Go(func() { s.space.run(ctx) })
	workers.Go(func() { s.monitor(ctx) })
	workers.Go(func() { s.countReplays(ctx) })
	workers.Go(func() { s.judgeAlerts(ctx) })
	workers.Go(func() { s.sweepAlerts(ctx) })
	workers.Go(func() { s.retention().Run(ctx, s.params.Config.Retention.Interval) })
	workers.Go(func() {
		if err := s.materializer().Run(ctx); err != nil {
			failed <- err
		}
	})
	s.services.start(ctx, workers, s.params.Log)
	workers.Go(func() { s.privacy.worker.Run(ctx) })
}

// shutdown lets requests under way end, until ctx ends.
func (s *server) shutdown(ctx context.Context, web *http.Server) error {
	err := web.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.params.Log.Warn("requests under way were cut", "after", s.params.Config.ShutdownTimeout)
		err = web.Close()
	}
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

func (s *server) startSpaceGuard() {
	s.space = &spaceGuard{
		dir: s.params.Config.Data, limits: s.params.Config.Storage, log: s.params.Log,
		free: freeSpace, seen: s.metrics.Storage.Space,
	}
	s.space.check()
}

func (s *server) materializer() *materializer.Materializer {
	c := s.params.Config.Materializer
	return materializer.New(materializer.Params{
		Intake: s.stores.intake, Events: s.stores.events, Stored: s.intake.Stored(),
		Attempt: s.folder.path(eventsDir, attemptFile), MaxRows: c.MaxRows, MaxDelay: c.MaxDelay,
		Log: s.params.Log, Fatal: s.params.Fatal, Observer: materializerObserver{s.metrics.Materializer},
	})
}

// ready says why no requests should come now.
func (s *server) ready() error {
	if s.draining.Load() {
		return fault.New(api.CodeUnavailable, "The server is shutting down").After(time.Second)
	}
	return s.space.guard()
}

// monitorInterval is how often the gauges are set.
const monitorInterval = time.Second

// monitor sets the gauges that nobody else sets.
func (s *server) monitor(ctx context.Context) {
	ticker := time.NewTicker(monitorInterval)
	defer ticker.Stop()
	for {
		if err := s.measure(ctx); err != nil && ctx.Err() == nil {
			s.params.Log.Warn("the gauges could not be set", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) measure(ctx context.Context) error {
	p, err := s.progress(ctx)
	if err != nil {
		return err
	}
	s.metrics.Materializer.Backlog(p.backlog)
	s.metrics.Materializer.StoredThrough(p.through)
	now := time.Now()
	waited, err := s.waited(p.mark, now)
	if err != nil {
		return err
	}
	s.health.Lag(now, waited)
	s.metrics.Materializer.Lag(waited)
	wal, err := s.stores.events.WALBytes()
	if err != nil {
		return err
	}
	s.metrics.Storage.WAL(wal)
	return nil
}
