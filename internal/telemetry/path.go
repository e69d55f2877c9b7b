package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Intake counts what the sequencer decided. Its methods are safe for
// concurrent use.
type Intake struct {
	accepted    prometheus.Counter
	duplicates  prometheus.Counter
	conflicting prometheus.Counter
	rejected    *prometheus.CounterVec
	groupItems  prometheus.Histogram
	groupCalls  prometheus.Histogram
	sync        prometheus.Histogram
	clockJumps  prometheus.Counter
}

func newIntake(f factory) *Intake {
	return &Intake{
		accepted: f.counter(name{
			"intake", "accepted_total",
			"Valid items that were acknowledged, repeats included.",
		}),
		duplicates: f.counter(name{
			"intake", "duplicates_total",
			"Acknowledged items that were repeats.",
		}),
		conflicting: f.counter(name{
			"intake", "conflicting_total",
			"Repeats whose body differed from the first.",
		}),
		rejected: f.counterVec(name{
			"intake", "rejected_total",
			"Items refused for their content, by code.",
		}, "code"),
		groupItems: f.histogram(name{
			"intake", "group_items",
			"Items written by one synced commit.",
		}, prometheus.ExponentialBuckets(1, 4, 9)),
		groupCalls: f.histogram(name{
			"intake", "group_requests",
			"Requests answered by one synced commit.",
		}, prometheus.ExponentialBuckets(1, 2, 11)),
		sync: f.histogram(name{
			"intake", "sync_seconds",
			"Time to write and sync one group.",
		}, prometheus.ExponentialBuckets(0.0001, 2, 16)),
		clockJumps: f.counter(name{
			"intake", "clock_jumps_total",
			"Groups refused because the wall clock jumped.",
		}),
	}
}

// Judged counts the verdicts of one request: accepted includes duplicates,
// duplicates include conflicting.
func (i *Intake) Judged(accepted, duplicates, conflicting int) {
	i.accepted.Add(float64(accepted))
	i.duplicates.Add(float64(duplicates))
	i.conflicting.Add(float64(conflicting))
}

// Rejected counts one item refused with a code.
func (i *Intake) Rejected(code string) { i.rejected.WithLabelValues(code).Inc() }

// GroupParams describes one synced group.
type GroupParams struct {
	Requests, Items int
	// Sync is the time it took to write and sync it.
	Sync time.Duration
}

// Group counts one synced group.
func (i *Intake) Group(p GroupParams) {
	i.groupCalls.Observe(float64(p.Requests))
	i.groupItems.Observe(float64(p.Items))
	i.sync.Observe(p.Sync.Seconds())
}

// ClockJumped counts one group refused because the wall clock jumped.
func (i *Intake) ClockJumped() { i.clockJumps.Inc() }

// Materializer counts what moves from the intake store to the event store.
// Its methods are safe for concurrent use.
type Materializer struct {
	rows          prometheus.Histogram
	seconds       prometheus.Histogram
	failures      prometheus.Counter
	quarantined   prometheus.Counter
	backlogItems  prometheus.Gauge
	storedThrough prometheus.Gauge
	lag           prometheus.Gauge
}

func newMaterializer(f factory) *Materializer {
	return &Materializer{
		rows: f.histogram(name{
			"materializer", "batch_rows",
			"Rows written by one transaction.",
		}, prometheus.ExponentialBuckets(1, 4, 9)),
		seconds: f.histogram(name{
			"materializer", "batch_seconds",
			"Time of one transaction.",
		}, prometheus.ExponentialBuckets(0.001, 2, 15)),
		failures: f.counter(name{
			"materializer", "failures_total",
			"Transactions that failed and will be tried again.",
		}),
		quarantined: f.counter(name{
			"materializer", "quarantined_total",
			"Items set aside because they could not be stored.",
		}),
		backlogItems: f.gauge(name{
			"materializer", "backlog_items",
			"Acknowledged items not yet in the event store.",
		}),
		storedThrough: f.gauge(name{
			"materializer", "stored_through_seconds",
			"Everything acknowledged before this time (seconds since 1970) can be queried.",
		}),
		lag: f.gauge(name{
			"materializer", "lag_seconds",
			"How long the oldest record has waited that is not in the event store.",
		}),
	}
}

// Batch counts one committed transaction.
func (m *Materializer) Batch(rows int, took time.Duration) {
	m.rows.Observe(float64(rows))
	m.seconds.Observe(took.Seconds())
}

// Failed counts one transaction that failed.
func (m *Materializer) Failed() { m.failures.Inc() }

// Quarantined counts items set aside.
func (m *Materializer) Quarantined(items int) { m.quarantined.Add(float64(items)) }

// Backlog states how much is waiting to be stored.
func (m *Materializer) Backlog(items uint64) {
	m.backlogItems.Set(float64(items))
}

// StoredThrough states the time up to which everything acknowledged can be
// queried.
func (m *Materializer) StoredThrough(t time.Time) {
	m.storedThrough.Set(float64(t.UnixMilli()) / 1000)
}

// Lag states how long the oldest waiting record has waited.
func (m *Materializer) Lag(d time.Duration) { m.lag.Set(d.Seconds()) }

// Storage states how the data folder is. Its methods are safe for concurrent
// use.
type Storage struct {
	walBytes  prometheus.Gauge
	freeBytes prometheus.Gauge
	needBytes prometheus.Gauge
	refusing  prometheus.Gauge
}

func newStorage(f factory) *Storage {
	return &Storage{
		walBytes: f.gauge(name{
			"eventstore", "wal_bytes",
			"Size of the event store's write-ahead log; alarm at 1 GB.",
		}),
		freeBytes: f.gauge(name{
			"storage", "free_bytes",
			"Free space of the data folder's file system.",
		}),
		needBytes: f.gauge(name{
			"storage", "free_bytes_needed",
			"Free space below which intake is refused.",
		}),
		refusing: f.gauge(name{
			"storage", "refusing",
			"1 while intake is refused for want of space, else 0.",
		}),
	}
}

// WAL states the size of the event store's write-ahead log.
func (s *Storage) WAL(bytes int64) { s.walBytes.Set(float64(bytes)) }

// Space states what the space guard saw and decided.
func (s *Storage) Space(free, need int64, refusing bool) {
	s.freeBytes.Set(float64(free))
	s.needBytes.Set(float64(need))
	if refusing {
		s.refusing.Set(1)
	} else {
		s.refusing.Set(0)
	}
}
