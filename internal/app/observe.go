package app

import (
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// intakeObserver and materializerObserver pass on what the domain reports to
// the counters.
type intakeObserver struct {
	metrics *telemetry.Intake
	health  *alert.Health
}

func (o intakeObserver) Items(from intake.Source, c intake.Counts) {
	o.metrics.Judged(c.Accepted, c.Duplicates, c.Conflicting)
	o.health.Count(from.Project, time.Now(), alert.Traffic{
		Accepted: int64(c.Accepted), Duplicates: int64(c.Duplicates), Conflicting: int64(c.Conflicting), Rejected: int64(c.Rejected),
	})
}

func (o intakeObserver) Rejected(code api.RejectCode) { o.metrics.Rejected(string(code)) }

func (o intakeObserver) Group(requests, items int, took time.Duration) {
	o.metrics.Group(telemetry.GroupParams{Requests: requests, Items: items, Sync: took})
}

type materializerObserver struct{ metrics *telemetry.Materializer }

func (o intakeObserver) ClockJumped() { o.metrics.ClockJumped() }

func (o materializerObserver) Batch(items int, took time.Duration) { o.metrics.Batch(items, took) }

func (o materializerObserver) Failed() { o.metrics.Failed() }

func (o materializerObserver) Quarantined() { o.metrics.Quarantined(1) }
