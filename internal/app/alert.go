package app

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// alerts are definitions, and the evaluator that judges them.
type alerts struct {
	service   *alert.Service
	evaluator *alert.Evaluator
}

func (s *server) newAlerts(querier *query.Service) alerts {
	store := sqlstore.NewAlerts(s.stores.sql)
	reader := &alert.Reader{Querier: querier, Health: s.health}
	told := s.services.webhooks.worker.Wake
	evaluator := alert.NewEvaluator(alert.EvaluatorParams{
		Store: store, Queue: store, Reader: reader, StoredThrough: s.storedThrough, Settle: s.params.Config.Alerts.Settle,
		Random: rand.Reader, Told: told, Judged: func(v alert.Verdict) { s.metrics.Alerts.Judged(string(v)) }, Log: s.params.Log,
	})
	return alerts{
		evaluator: evaluator,
		service: alert.NewService(alert.Params{
			Store: store, Reader: reader, Clock: time.Now, Random: rand.Reader, Wake: evaluator.Wake, Told: told,
		}),
	}
}

// judgeAlerts judges what is due until ctx is done, if that is this server's
// to do.
func (s *server) judgeAlerts(ctx context.Context) {
	if s.params.Config.Alerts.Evaluate {
		s.alerts.evaluator.Run(ctx)
	}
}

// sweepAlerts deletes what is old, at once and then every hour.
func (s *server) sweepAlerts(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if n, err := s.alerts.evaluator.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.params.Log.Warn("old evaluations of alerts were not deleted", "deleted", n, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// storedThrough is the time before which everything acknowledged can be
// queried.
func (s *server) storedThrough(ctx context.Context) (time.Time, error) {
	p, err := s.progress(ctx)
	return p.through, err
}

// progress says how far the event store is behind intake.
type progress struct {
	// mark is the event store's position, backlog how many items come after.
	mark, backlog uint64
	// through is when everything was acknowledged at the latest that can be
	// queried.
	through time.Time
}

func (s *server) progress(ctx context.Context) (progress, error) {
	position, at := s.intake.Decided()
	mark, err := s.stores.events.Mark(ctx)
	if err != nil {
		return progress{}, err
	}
	if mark.Position < position {
		at = mark.Received
	}
	return progress{
		mark: mark.Position, backlog: position - min(position, mark.Position), through: time.UnixMilli(at).UTC(),
	}, nil
}

// waited is how long the oldest record has waited that comes after a position
// of the event store; 0 if there is none, or none any more.
func (s *server) waited(position uint64, now time.Time) (time.Duration, error) {
	records, err := s.stores.intake.Records(position+1, 1)
	if errors.Is(err, intakestore.ErrGap) { // it was stored meanwhile, and trimmed
		return 0, nil
	}
	if err != nil || len(records) == 0 {
		return 0, err
	}
	return max(0, now.Sub(time.UnixMilli(records[0].Received))), nil
}
