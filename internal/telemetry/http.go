package telemetry

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// HTTP counts requests. Its methods are safe for concurrent use.
type HTTP struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newHTTP(f factory) *HTTP {
	return &HTTP{
		requests: f.counterVec(name{
			"http", "requests_total",
			"Requests by route, error code (ok if none) and status; 499 is a client that went away, 0 an answer that was withheld.",
		},
			"route", "code", "status"),
		seconds: f.histogramVec(name{
			"http", "request_seconds",
			"Time from the request's header to its answer, by route.",
		},
			prometheus.ExponentialBuckets(0.0005, 2, 16), "route"),
		inFlight: f.gauge(name{"http", "in_flight", "Requests being answered."}),
	}
}

// Route counts the requests of one route.
type Route struct {
	http    *HTTP
	name    string
	seconds prometheus.Observer
	// ok holds the counter of each status of success, made when first met.
	ok sync.Map
}

// Route returns the counters of one route; name is a pattern, never a path a
// client chose.
func (h *HTTP) Route(name string) *Route {
	return &Route{http: h, name: name, seconds: h.seconds.WithLabelValues(name)}
}

// Begin counts a request that has begun.
func (r *Route) Begin() { r.http.inFlight.Inc() }

// End counts a request that has ended. Code is the error code, or empty.
func (r *Route) End(status int, code string, took time.Duration) {
	r.http.inFlight.Dec()
	r.seconds.Observe(took.Seconds())
	if code != "" {
		r.http.requests.WithLabelValues(r.name, code, strconv.Itoa(status)).Inc()
		return
	}
	counter, ok := r.ok.Load(status)
	if !ok {
		counter, _ = r.ok.LoadOrStore(status, r.http.requests.WithLabelValues(r.name, "ok", strconv.Itoa(status)))
	}
	counter.(prometheus.Counter).Inc()
}
