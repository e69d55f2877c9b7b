package app

import (
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// intakeObserver and materializerObserver pass on what the domain reports to
// the counters.
type intakeObserver struct{ metrics *telemetry.Intake }

func (o intakeObserver) Items(_ intake.Source, c intake.Counts) {
	o.metrics.Judged(c.Accepted, c.Duplicates, c.Conflicting)
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
