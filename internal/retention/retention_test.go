package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const window = 48 * time.Hour

func TestDaysThatMayBeAskedFor(t *testing.T) {
	t.Parallel()
	rules := Rules{Window: window}
	for _, d := range []Days{{}, {Events: 2}, {Events: 36_500}, {Replays: 1}, {Events: 3, Replays: 36_500}} {
		if err := rules.Validate(d); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	for _, d := range []Days{{Events: 1}, {Events: -1}, {Events: 36_501}, {Replays: -1}, {Replays: 36_501}} {
		f, ok := errors.AsType[*fault.Error](rules.Validate(d))
		if !ok || f.Code != api.CodeValidationFailed || f.Details["field"] == nil {
			t.Errorf("%+v: %v", d, f)
		}
	}
	if (Rules{Window: window + time.Second}).Validate(Days{Events: 2}) == nil || (Rules{Window: time.Minute}).Validate(Days{Events: 1}) != nil {
		t.Error("a part of a day counts as none, or as more than one")
	}
}

// What is said to be in force is never less than what the worker keeps.
func TestInForce(t *testing.T) {
	t.Parallel()
	rules := Rules{Window: 5*day + time.Second, Default: Days{Events: 3, Replays: 4}}
	for own, want := range map[Days]Days{
		{}: {Events: 6, Replays: 4}, {Events: 2, Replays: 1}: {Events: 6, Replays: 1}, {Events: 7}: {Events: 7, Replays: 4},
	} {
		if got := rules.InForce(own); got != want {
			t.Errorf("%+v: got %+v, want %+v", own, got, want)
		}
	}
	if got := (Rules{Window: 5 * day}).InForce(Days{}); got != (Days{}) {
		t.Errorf("a window makes nothing go: %+v", got)
	}
}

// shelf holds what a project has, by the time of its receipt, and gives it up
// in the way the stores do.
type shelf struct {
	// mu guards what a worker changes while a test looks.
	mu       sync.Mutex
	projects []Project
	events   map[uint32][]time.Time
	chunks   map[string][]time.Time
	// broken is a project whose events cannot be deleted.
	broken uint32
	sweeps int
	// received is when the newest event was, by default now, and noted what was
	// told of it.
	received func() time.Time
	noted    time.Time
}

// own is the server of the tests.
var own = [16]byte{1}

func (s *shelf) ListRetention(_ context.Context, after uint32, limit int) ([]Project, error) {
	i := slices.IndexFunc(s.projects, func(p Project) bool { return p.Number > after })
	if i < 0 {
		return nil, nil
	}
	return s.projects[i:min(i+limit, len(s.projects))], nil
}

var errBroken = errors.New("broken")

func (s *shelf) DeleteOlder(_ context.Context, project uint32, a Age) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if project == s.broken {
		return 0, errBroken
	}
	kept := slices.DeleteFunc(slices.Clone(s.events[project]), s.vouched(a).Add(-a.Keep).After)
	n := len(s.events[project]) - len(kept)
	s.events[project] = kept
	return int64(n), nil
}

// replays is the shelf's other side.
type replays struct{ *shelf }

// DeleteOlder caps age as the stores do.
func (r replays) DeleteOlder(_ context.Context, projectID string, a Age, most int) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.vouched(a).Add(-a.Keep)
	r.chunks[projectID] = slices.DeleteFunc(r.chunks[projectID], func(at time.Time) bool {
		if n == most || !at.Before(before) {
			return false
		}
		n++
		return true
	})
	return n, nil
}

// vouched is the time that age is counted up to.
func (s *shelf) vouched(a Age) time.Time {
	if s.noted.Before(a.Now) {
		return s.noted
	}
	return a.Now
}

func (s *shelf) NoteReceived(_ context.Context, server [16]byte, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if server != own {
		return errBroken
	}
	s.noted = at
	return nil
}

func (s *shelf) Deleted(int64, int64) {}
func (s *shelf) Swept(time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
}

func (s *shelf) worker(rules Rules, now func() time.Time) *Worker {
	received := s.received
	if received == nil {
		received = now
	}
	return NewWorker(Params{
		Rules: rules, Store: s, Events: s, Replays: replays{s}, Server: own, Now: now, Observer: s, Log: slog.New(slog.DiscardHandler),
		Received: func(context.Context) (time.Time, error) { return received(), nil },
	})
}

// A clock that is years ahead of the newest event lets nothing go that the
// newest event does not, and one that is behind lets nothing go early.
func TestAClockAheadDeletesNothing(t *testing.T) {
	t.Parallel()
	newest := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	old, young := newest.Add(-4*day), newest.Add(-2*day)
	for by, want := range map[time.Duration][]time.Time{3000 * day: {young, newest}, 0: {young, newest}, -2 * day: {old, young, newest}} {
		all := []time.Time{old, young, newest}
		s := &shelf{
			projects: []Project{{ID: "a", Number: 1}}, received: func() time.Time { return newest },
			events: map[uint32][]time.Time{1: all}, chunks: map[string][]time.Time{"a": slices.Clone(all)},
		}
		w := s.worker(Rules{Window: window, Default: Days{Events: 3, Replays: 3}}, func() time.Time { return newest.Add(by) })
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.events[1], want) || !slices.Equal(s.chunks["a"], want) {
			t.Errorf("%s ahead: left %v %v, want %v", by, s.events[1], s.chunks["a"], want)
		}
	}
}

// What is left after a sweep is exactly what each project's own days, or else
// the server's, have not let go: nothing of a neighbour, nothing within the
// window, nothing too old.
func TestSweepAgainstAModel(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		days := func(label string) int { return rapid.SampledFrom([]int{0, 0, 1, 2, 3, 10}).Draw(t, label) }
		rules := Rules{Window: rapid.SampledFrom([]time.Duration{time.Hour, window, 5 * day}).Draw(t, "window"), Default: Days{Events: days("default events"), Replays: days("default replays")}}
		s := &shelf{events: map[uint32][]time.Time{}, chunks: map[string][]time.Time{}}
		ages := rapid.SliceOf(rapid.IntRange(0, 12*24))
		want := &shelf{events: map[uint32][]time.Time{}, chunks: map[string][]time.Time{}}
		for i := range rapid.IntRange(1, 5).Draw(t, "projects") {
			p := Project{ID: fmt.Sprint(i), Number: uint32(2*i + 1), Days: Days{Events: days("events"), Replays: days("replays")}}
			s.projects = append(s.projects, p)
			for _, age := range ages.Draw(t, "ages of events") {
				at := now.Add(-time.Duration(age) * time.Hour)
				s.events[p.Number] = append(s.events[p.Number], at)
				keep := p.Days.Events
				if keep == 0 {
					keep = rules.Default.Events
				}
				if keep == 0 || age <= keep*24 || time.Duration(age)*time.Hour <= rules.Window {
					want.events[p.Number] = append(want.events[p.Number], at)
				}
			}
			for _, age := range ages.Draw(t, "ages of chunks") {
				at := now.Add(-time.Duration(age) * time.Hour)
				s.chunks[p.ID] = append(s.chunks[p.ID], at)
				keep := p.Days.Replays
				if keep == 0 {
					keep = rules.Default.Replays
				}
				if keep == 0 || age <= keep*24 {
					want.chunks[p.ID] = append(want.chunks[p.ID], at)
				}
			}
		}
		for range 2 { // a second sweep finds nothing
			if err := s.worker(rules, func() time.Time { return now }).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.EqualFunc(clean(s.events), clean(want.events), slices.Equal) || !maps.EqualFunc(clean(s.chunks), clean(want.chunks), slices.Equal) {
			t.Fatalf("left\n%v %v, want\n%v %v", s.events, s.chunks, want.events, want.chunks)
		}
	})
}

// clean leaves out who has nothing.
func clean[K comparable](m map[K][]time.Time) map[K][]time.Time {
	maps.DeleteFunc(m, func(_ K, list []time.Time) bool { return len(list) == 0 })
	return m
}

// The worker looks at once and in each interval, also after a project that
// failed, and looks at the others all the same.
func TestTheWorkerGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &shelf{
			projects: []Project{{ID: "a", Number: 1}, {ID: "b", Number: 2}}, broken: 1,
			events: map[uint32][]time.Time{1: {began}, 2: {began}}, chunks: map[string][]time.Time{},
		}
		for i := range 2500 { // more than one step
			s.chunks["b"] = append(s.chunks["b"], began.Add(time.Duration(i)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.worker(Rules{Window: time.Hour, Default: Days{Events: 1, Replays: 1}}, time.Now).Run(ctx, time.Hour)
		}()
		wait := func(d time.Duration) {
			s.mu.Unlock()
			<-time.After(d)
			synctest.Wait()
			s.mu.Lock()
		}
		s.mu.Lock()
		wait(24*time.Hour + time.Minute)
		if len(s.events[2]) != 1 || len(s.chunks["b"]) != 2500 || s.sweeps != 0 {
			t.Errorf("too early, or a failed sweep was said to be whole: %+v", s.sweeps)
		}
		wait(time.Hour)
		if len(s.events[2]) != 0 || len(s.chunks["b"]) != 0 || len(s.events[1]) != 1 {
			t.Errorf("left %d %d %d", len(s.events[2]), len(s.chunks["b"]), len(s.events[1]))
		}
		s.broken = 0
		wait(time.Hour)
		if len(s.events[1]) != 0 || s.sweeps != 1 {
			t.Errorf("left %d after %d whole sweeps", len(s.events[1]), s.sweeps)
		}
		s.mu.Unlock()
		cancel()
		<-done
	})
}
