package intake_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// clock is set by tests.
type clock struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func newClock() *clock { return &clock{wall: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// pass lets time go by, jump moves the wall clock alone.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d
}

func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

type counter struct{ groups, items atomic.Int64 }

func (*counter) Items(intake.Source, intake.Counts) {}
func (*counter) Rejected(api.RejectCode)            {}
func (*counter) ClockJumped()                       {}
func (c *counter) Group(_, items int, _ time.Duration) {
	c.groups.Add(1)
	c.items.Add(int64(items))
}

// system is an intake on a real store, which can be restarted.
type system struct {
	t       testing.TB
	dir     string
	clock   *clock
	counter counter
	guard   atomic.Pointer[fault.Error]
	quota   intake.Quota
	store   *intakestore.Store
	service *intake.Service
}

func (s *system) options() intakestore.Options {
	return intakestore.Options{
		Dir: filepath.Join(s.dir, "intake"), Mark: filepath.Join(s.dir, "ACKNOWLEDGED"),
		Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { panic(err) },
	}
}

func newSystem(t testing.TB) *system {
	t.Helper()
	s := &system{t: t, dir: t.TempDir(), clock: newClock()}
	if err := intakestore.Create(s.options(), [16]byte{7}, intakestore.State{}); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *system) start() {
	s.t.Helper()
	var err error
	if s.store, err = intakestore.Open(s.options()); err != nil {
		s.t.Fatal(err)
	}
	s.service = intake.New(intake.Params{
		Store: s.store, Window: 48 * time.Hour, Clock: s.clock, Observer: &s.counter, Quota: s.quota,
		Guard: func() error {
			if f := s.guard.Load(); f != nil {
				return f
			}
			return nil
		},
		Fatal: func(err error) { panic(err) },
	})
}

func (s *system) stop() {
	s.service.Close()
	if err := s.store.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

func (s *system) records() []record.Record {
	s.t.Helper()
	records, err := s.store.Records(1, 1<<30)
	if err != nil {
		s.t.Fatal(err)
	}
	return records
}

// stored returns how often each event id is on disk.
func (s *system) stored() map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, r := range s.records() {
		for _, it := range r.Items {
			out[uuid.UUID(it.EventID).String()]++
		}
	}
	return out
}

var server = intake.Source{Project: 1, KeyKind: record.KeyServer, Key: 1}

func item(id string) string {
	return fmt.Sprintf(`{"event_id":%q,"event":"e","anon_id":"x"}`, id)
}

func batch(items ...string) []byte { return []byte(`{"events":[` + strings.Join(items, ",") + `]}`) }

func (s *system) track(src intake.Source, body []byte) api.TrackResponse {
	s.t.Helper()
	response, err := s.service.Track(context.Background(), src, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// expect fails the test unless an answer has these counts and rejects nothing.
func (s *system) expect(src intake.Source, body []byte, accepted, duplicates int) {
	s.t.Helper()
	r := s.track(src, body)
	if r.Accepted != accepted || r.Duplicates != duplicates || len(r.Rejected) != 0 {
		s.t.Fatalf("got %+v, want accepted %d, duplicates %d, rejected none", r, accepted, duplicates)
	}
}
