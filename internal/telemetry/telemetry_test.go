package telemetry

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		FormatJSON: `"msg":"hello"`, FormatText: "msg=hello", FormatAuto: `"msg":"hello"`, "": `"msg":"hello"`,
	} {
		var out strings.Builder
		log, err := NewLogger(LogParams{Writer: &out, Format: format, Level: slog.LevelInfo})
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("quiet")
		log.Info("hello")
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "quiet") {
			t.Errorf("%q: %s", format, out.String())
		}
	}
	if _, err := NewLogger(LogParams{Writer: os.Stderr, Format: "xml"}); err == nil {
		t.Error("an unknown format was accepted")
	}
}

// TestEveryCounterIsShown uses all of them and looks for their values.
func TestEveryCounterIsShown(t *testing.T) {
	m := NewMetrics()
	route := m.HTTP.Route("/x")
	route.Begin()
	route.End(200, "", time.Millisecond)
	route.Begin()
	route.End(201, "", time.Millisecond)
	route.Begin()
	route.End(429, "rate_limited", time.Millisecond)
	route.Begin()
	m.Intake.Judged(5, 3, 1)
	m.Intake.Rejected("invalid_event")
	m.Intake.Group(GroupParams{Requests: 2, Items: 5, Sync: time.Millisecond})
	m.Intake.ClockJumped()
	m.Materializer.Batch(5, time.Second)
	m.Materializer.Failed()
	m.Materializer.Quarantined(2)
	m.Materializer.Backlog(7)
	m.Materializer.StoredThrough(time.UnixMilli(1500))
	m.Storage.WAL(128)
	m.Storage.Space(10, 20, true)
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			got[f.GetName()] += value
		}
	}
	for name, want := range map[string]float64{
		"http_requests_total": 3, "http_request_seconds": 3, "http_in_flight": 1,
		"intake_accepted_total": 5, "intake_duplicates_total": 3, "intake_conflicting_total": 1, "intake_rejected_total": 1,
		"intake_group_items": 1, "intake_group_requests": 1, "intake_sync_seconds": 1, "intake_clock_jumps_total": 1,
		"materializer_batch_rows": 1, "materializer_batch_seconds": 1, "materializer_failures_total": 1,
		"materializer_quarantined_total": 2, "materializer_backlog_items": 7, "materializer_stored_through_seconds": 1.5,
		"eventstore_wal_bytes": 128,
		"storage_free_bytes":   10, "storage_free_bytes_needed": 20, "storage_refusing": 1,
	} {
		if got["actionpulse_"+name] != want {
			t.Errorf("%s is %v, want %v", name, got["actionpulse_"+name], want)
		}
	}
	m.Storage.Space(30, 20, false)
	if again, err := m.Registry.Gather(); err != nil || len(again) != len(families) {
		t.Errorf("gather again: %v", err)
	}
}
