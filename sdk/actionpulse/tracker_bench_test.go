package actionpulse_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// swallow accepts nothing and never answers in time to matter: what is measured
// is Track alone.
type swallow struct{}

func (swallow) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(`{"error":{"code":"unauthenticated"}}`))}, nil
}

// BenchmarkTrack measures one Track: in memory, in a folder by one goroutine,
// and by many that share each sync.
func BenchmarkTrack(b *testing.B) {
	for _, c := range []struct {
		name     string
		folder   bool
		sync     actionpulse.Sync
		parallel int
	}{
		{"memory", false, 0, 0},
		{"folder", true, actionpulse.SyncAlways, 0},
		{"folder by 16", true, actionpulse.SyncAlways, 16},
		{"folder by 128", true, actionpulse.SyncAlways, 128},
		{"folder without sync", true, actionpulse.SyncNever, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := actionpulse.TrackerOptions{
				HTTPClient: &http.Client{Transport: swallow{}}, Logger: slog.New(slog.DiscardHandler), Sync: c.sync,
				MaxPending: 1 << 40, MaxPendingBytes: 1 << 40, MaxAge: time.Hour,
			}
			if c.folder {
				o.Dir = b.TempDir()
			}
			tracker, err := actionpulse.NewTracker("https://pulse.example", serverKey, o)
			if err != nil {
				b.Fatal(err)
			}
			track := func() {
				event := actionpulse.Event{Name: "signed_up", UserID: "ada", Properties: map[string]any{"plan": "pro", "seats": 3}}
				if _, err := tracker.Track(event); err != nil {
					b.Error(err)
				}
			}
			if c.parallel > 0 {
				b.SetParallelism(c.parallel / 2)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						track()
					}
				})
			} else {
				for b.Loop() {
					track()
				}
			}
			b.StopTimer()
			_ = tracker.Close(b.Context()) // what is left does not matter
		})
	}
}
