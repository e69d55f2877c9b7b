package app

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// retentionRules are the server's settings.
func (s *server) retentionRules() retention.Rules {
	c := s.params.Config
	return retention.Rules{
		Default: retention.Days{Events: c.Retention.EventsDays, Replays: c.Retention.ReplaysDays}, Window: c.Intake.Window,
	}
}

// retention has deleted what was kept long enough, by the clock of intake and
// the newest event.
func (s *server) retention() *retention.Worker {
	return retention.NewWorker(retention.Params{
		Rules: s.retentionRules(), Store: sqlstore.New(s.stores.sql), Events: expiringEvents{s.stores.events},
		Replays: expiringReplays{s.services.replays}, Server: s.stores.archives.Server(),
		Now: func() time.Time {
			_, at := s.intake.Decided()
			return time.UnixMilli(at)
		},
		Received: func(ctx context.Context) (time.Time, error) {
			mark, err := s.stores.events.Mark(ctx)
			return time.UnixMilli(mark.Received), err
		},
		Observer: s.metrics.Retention, Log: s.params.Log,
	})
}

// expiringEvents is the event store as retention needs it.
type expiringEvents struct{ store *eventstore.Store }

// DeleteOlder implements retention.Events.
func (e expiringEvents) DeleteOlder(ctx context.Context, project uint32, a retention.Age) (int64, error) {
	return e.store.DeleteOlder(ctx, eventstore.Retention{
		Project: project, Now: a.Now.UnixMilli(), Keep: a.Keep.Milliseconds(), Window: a.Window.Milliseconds(),
	})
}

// expiringReplays is the service of recordings as retention needs it.
type expiringReplays struct{ service *replay.Service }

// DeleteOlder implements retention.Replays.
func (e expiringReplays) DeleteOlder(ctx context.Context, projectID string, a retention.Age, most int) (int, error) {
	return e.service.DeleteOlder(ctx, projectID, replay.Age{Now: a.Now, Keep: a.Keep}, most)
}
