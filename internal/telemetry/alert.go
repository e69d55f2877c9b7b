package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Alerts counts what was judged. Its methods are safe for concurrent use.
type Alerts struct{ judged *prometheus.CounterVec }

func newAlerts(f factory) *Alerts {
	return &Alerts{judged: f.counterVec(name{
		"alert", "evaluations_total",
		"Periods of alerts that this process has judged, by verdict.",
	}, "verdict")}
}

// Judged counts one period.
func (a *Alerts) Judged(verdict string) { a.judged.WithLabelValues(verdict).Inc() }
