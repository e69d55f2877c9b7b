package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Retention counts what was deleted because it had been kept long enough. Its
// methods are safe for concurrent use.
type Retention struct {
	events, chunks prometheus.Counter
	swept          prometheus.Gauge
}

func newRetention(f factory) *Retention {
	return &Retention{
		events: f.counter(name{"retention", "events_deleted_total", "Events deleted because their project has kept them long enough."}),
		chunks: f.counter(name{"retention", "replay_chunks_deleted_total", "Chunks of session replays deleted for the same reason."}),
		swept:  f.gauge(name{"retention", "swept_timestamp_seconds", "When all projects were last looked at without an error; 0 before."}),
	}
}

// Deleted counts what was deleted of a project.
func (r *Retention) Deleted(events, chunks int64) {
	r.events.Add(float64(events))
	r.chunks.Add(float64(chunks))
}

// Swept notes that all projects have been looked at.
func (r *Retention) Swept(at time.Time) { r.swept.Set(float64(at.Unix())) }
