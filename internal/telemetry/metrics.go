package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// namespace is the first word of every metric's name.
const namespace = "actionpulse"

// Metrics holds every counter of the process. The parts are independent: a
// package is handed the part it writes.
type Metrics struct {
	// Registry is what /metrics shows.
	Registry *prometheus.Registry

	HTTP         *HTTP
	Intake       *Intake
	Materializer *Materializer
	Storage      *Storage
	Alerts       *Alerts
	Retention    *Retention
}

// NewMetrics returns counters that stand at zero, registered in a registry of
// their own together with those of the Go runtime and the process.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	f := factory{registry}
	return &Metrics{
		Registry:     registry,
		HTTP:         newHTTP(f),
		Intake:       newIntake(f),
		Materializer: newMaterializer(f),
		Storage:      newStorage(f),
		Alerts:       newAlerts(f),
		Retention:    newRetention(f),
	}
}

// factory makes and registers metrics.
type factory struct{ registry prometheus.Registerer }

// name is the part of a metric's name after the namespace, and its help.
type name struct{ subsystem, name, help string }

func (f factory) counter(n name) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: n.subsystem, Name: n.name, Help: n.help,
	})
	f.registry.MustRegister(c)
	return c
}

func (f factory) counterVec(n name, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: n.subsystem, Name: n.name, Help: n.help,
	}, labels)
	f.registry.MustRegister(c)
	return c
}

func (f factory) gauge(n name) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: n.subsystem, Name: n.name, Help: n.help,
	})
	f.registry.MustRegister(g)
	return g
}

func (f factory) histogram(n name, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: n.subsystem, Name: n.name, Help: n.help, Buckets: buckets,
	})
	f.registry.MustRegister(h)
	return h
}

func (f factory) histogramVec(n name, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: n.subsystem, Name: n.name, Help: n.help, Buckets: buckets,
	}, labels)
	f.registry.MustRegister(h)
	return h
}
