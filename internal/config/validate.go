package config

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Validate returns every fault of the settings, each with the setting's name
// and what is allowed, or nil.
func (c *Config) Validate() error {
	return c.locate(errors.Join(
		c.Folder.faults(),
		validListen(c.Listen),
		between("shutdown_timeout", c.ShutdownTimeout, time.Second, time.Hour),
		between("intake.window", c.Intake.Window, time.Second, 30*24*time.Hour),
		between("intake.body_timeout", c.Intake.BodyTimeout, 100*time.Millisecond, 10*time.Minute),
		between("intake.body_memory", c.Intake.BodyMemory, 8<<20, 1<<40),
		between("credits.response_retention", c.Credits.ResponseRetention, time.Second, 10*365*24*time.Hour),
		between("alerts.settle", c.Alerts.Settle, 0, time.Hour),
		between("flows.concurrency", c.Flows.Concurrency, 1, 100_000),
		validEndpoint("flows.otlp_endpoint", c.Flows.OTLPEndpoint),
		between("flows.trace_retention", c.Flows.TraceRetention, time.Second, 10*365*24*time.Hour),
		between("privacy.export_retention", c.Privacy.ExportRetention, time.Second, 365*24*time.Hour),
		between("rate.requests_per_second", c.Rate.RequestsPerSecond, 0, 1e9),
		between("rate.burst", c.Rate.Burst, 1, 1e9),
		between("rate.browser_requests_per_second", c.Rate.BrowserRequestsPerSecond, 0, 1e9),
		between("rate.browser_burst", c.Rate.BrowserBurst, 1, 1e9),
		c.Quota.faults(),
		between("query.time_budget", c.Query.TimeBudget, 10*time.Millisecond, 10*time.Minute),
		between("retention.events_days", c.Retention.EventsDays, 0, maxRetentionDays),
		longEnough("retention.events_days", c.Retention.EventsDays, c.Intake.Window),
		between("retention.replays_days", c.Retention.ReplaysDays, 0, maxRetentionDays),
		between("retention.interval", c.Retention.Interval, time.Second, 24*time.Hour),
		between("storage.min_free_bytes", c.Storage.MinFreeBytes, 0, 1<<50),
		between("storage.min_free_percent", c.Storage.MinFreePercent, 0, 90),
		between("eventstore.memory_limit", c.EventStore.MemoryLimit, 128e6, 1<<50),
		between("eventstore.threads", c.EventStore.Threads, 0, 1024),
		between("materializer.max_rows", c.Materializer.MaxRows, 1, 1e6),
		between("materializer.max_delay", c.Materializer.MaxDelay, time.Millisecond, 10*time.Second),
		oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		oneOf("log.format", c.Log.Format, "auto", "text", "json"),
	))
}

// Validate returns every fault of the settings, or nil. It looks at nothing
// on disk.
func (f *Folder) Validate() error { return f.locate(f.faults()) }

// ValidateQuota returns the fault of plans that were read with f, or nil.
func (f *Folder) ValidateQuota(q *Quota) error { return f.locate(q.faults()) }

func (f *Folder) faults() error {
	var errs []error
	if f.Data == "" {
		errs = append(errs, wrong("data", "must be the path of a folder"))
	}
	if f.Database != "" {
		u, err := url.Parse(string(f.Database))
		if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			errs = append(errs, wrong("database", "must be empty or begin with postgres://"))
		}
	}
	if _, err := f.SecretKey.Bytes(); err != nil {
		errs = append(errs, wrong("secret_key", "%v", err))
	}
	if _, err := f.Replay.S3(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func between[T cmp.Ordered](name string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return wrong(name, "must be from %v to %v, not %v", least, most, value)
}

// maxRetentionDays is a hundred years.
const maxRetentionDays = 36_500

// longEnough refuses to keep events for less time than their ids are
// remembered.
func longEnough(name string, days int, window time.Duration) error {
	if days == 0 || time.Duration(days)*24*time.Hour >= window {
		return nil
	}
	return wrong(name, "must be 0 or at least intake.window, which is %v, not %d days", window, days)
}

// validEndpoint allows no endpoint, and the base URL of one.
func validEndpoint(name, text string) error {
	at, err := url.Parse(text)
	if text == "" || err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" {
		return nil
	}
	return wrong(name, "must be empty or begin with http:// or https://")
}

func oneOf(name, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return wrong(name, "must be one of %v, not %q", allowed, shorten(value))
}

func validListen(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		if n, bad := strconv.Atoi(port); bad == nil && n >= 0 && n <= 65535 {
			return nil
		}
	}
	return wrong("listen", "must be HOST:PORT with a port from 0 to 65535, not %q", shorten(listen))
}
