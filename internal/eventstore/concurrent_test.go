package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/record"
)

// A snapshot and every query see the state of one commit, while commits go on.
func TestSnapshotUnderWrites(t *testing.T) {
	s := open(t, eventstore.Options{CheckpointBytes: 1 << 20})
	l := newLog(t, s)
	l.add(1, event("a", "x", "", 1_709_251_200_000))
	const rounds = 30
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				if err := checkSnapshot(t.Context(), s); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	old, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds {
		var items []record.Item
		for j := range 500 {
			it := event("a", fmt.Sprint(i, j), "", 1_709_251_200_000)
			it.Claimed = true
			items = append(items, it)
		}
		items = append(items, identify("x", fmt.Sprint("user", i), 1_709_251_200_000, `{"i":1}`))
		l.add(int64(i), items...)
	}
	close(done)
	readers.Wait()
	rows, err := old.RowCount(t.Context())
	if err != nil || rows != 1 || old.Mark().Rows != 1 {
		t.Errorf("an old snapshot sees %d rows, %v", rows, err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
}

func checkSnapshot(ctx context.Context, s *eventstore.Store) error {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	rows, err := snap.RowCount(ctx)
	claims := int64(0)
	err = errors.Join(err, snap.Claims(ctx, 0, func(record.Identity, int64, uint32) error {
		claims++
		return nil
	}), snap.Close())
	if err != nil {
		return err
	}
	// Every batch adds 500 claimed rows and one other.
	if mark := snap.Mark(); rows != mark.Rows || uint64(rows) != mark.Position || claims != (rows-1)/501*500 {
		return fmt.Errorf("%d rows and %d claims at %+v", rows, claims, mark)
	}
	return nil
}

// The write-ahead log stays bounded although there is never a moment without a
// running query.
func TestCheckpointUnderOverlappingReaders(t *testing.T) {
	const limit = 1 << 20
	s := open(t, eventstore.Options{CheckpointBytes: limit, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l := newLog(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	hold := make(chan *eventstore.Snapshot, 2) // a snapshot is closed after the next but one was opened
	readers.Go(func() {
		defer close(hold)
		for ctx.Err() == nil {
			snap, err := s.Snapshot(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			hold <- snap
		}
	})
	readers.Go(func() {
		var last *eventstore.Snapshot
		for snap := range hold {
			if last != nil {
				if err := last.Close(); err != nil {
					t.Error(err)
				}
			}
			last = snap
			ask(t, s, `{"type":"trend","interval":"year","measure":"persons",`+year+`}`)
		}
		if last != nil {
			if err := last.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 25 {
		l.apply(benchRecords(l.next, 4)...)
		l.next += 2000
		l.add(benchTime, identify("x", fmt.Sprint("user", i), benchTime, `{"i":1}`)) // deletes spans
		size, err := s.WALBytes()
		if err != nil || size > 2*limit {
			t.Errorf("the log has %d bytes, %v", size, err)
		}
	}
	cancel()
	readers.Wait()
}

// slow is a question that takes far longer than any budget: persons who went
// through a funnel among many rows of few persons, sorted.
func slowStore(t *testing.T) *eventstore.Store {
	s := open(t, eventstore.Options{Threads: 1})
	l := newLog(t, s)
	for range 10 {
		l.apply(benchRecords(l.next, 40)...)
		l.next += 20_000
	}
	return s
}

const slowQuery = `{"type":"breakdown","by":"properties.path","measure":"persons","from":"2020-01-01T00:00:00Z","to":"2030-01-01T00:00:00Z",` +
	`"where":[{"property":"properties.price","op":"gt","value":-1},{"property":"properties.referrer","op":"contains","value":"example"},{"property":"context.a.b.c","op":"not_set"}]}`

func TestTimeBudget(t *testing.T) {
	s := slowStore(t)
	service, err := query.New(query.Options{Store: s, Progress: still{}, Budget: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = service.Run(t.Context(), known(1), []byte(slowQuery))
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeQueryTimeout || f.Details["hint"] == "" {
		t.Fatalf("got %v", err)
	}
	t.Logf("ended after %s", time.Since(start))
	// The connection is free and sound again.
	want(t, ask(t, s, `{"type":"breakdown","by":"event","measure":"count","limit":1,`+year+`}`)["items"], `[]`)
}

func TestClientLeaves(t *testing.T) {
	s := slowStore(t)
	service, err := query.New(query.Options{Store: s, Progress: still{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = service.Run(ctx, known(1), []byte(slowQuery))
	if !errors.Is(err, context.DeadlineExceeded) || fault.CodeOf(err) == api.CodeQueryTimeout {
		t.Errorf("got %v", err)
	}
}

// A query that waits for a free connection is bounded by its budget too.
func TestReadersWait(t *testing.T) {
	s := open(t, eventstore.Options{Readers: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := s.Mark(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, eventstore.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, markErr := s.Mark(t.Context())
	_, snapErr := s.Snapshot(t.Context())
	_, applyErr := s.Apply(t.Context(), eventstore.ApplyParams{})
	for _, err := range []error{markErr, snapErr, applyErr} {
		if !errors.Is(err, eventstore.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

// decided is a sequencer that acknowledges one record after another, some of
// them before they are stored.
type decided struct {
	mu       sync.Mutex
	position uint64
	now      int64
}

func (d *decided) Decided() (uint64, int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.position, d.now
}

// Everything that was acknowledged before an answer's stored_through is in the
// answer, however far the store lags behind.
func TestStoredThrough(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	clock := &decided{now: at(t, "03-01 00:00")}
	queue := make(chan record.Record, 64)
	var writer sync.WaitGroup
	writer.Go(func() {
		for r := range queue {
			l.apply(r)
		}
	})
	service, err := query.New(query.Options{Store: s, Progress: clock})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := []int64{} // times, in order
	for i := range 200 {
		clock.mu.Lock()
		clock.now += int64(i % 3) // some share a millisecond
		r := l.make(clock.now, event("a", "x", "", clock.now))
		clock.position = r.Last()
		acknowledged = append(acknowledged, clock.now)
		clock.mu.Unlock()
		queue <- r
		if i%5 == 0 {
			checkStoredThrough(t, service, acknowledged)
		}
	}
	close(queue)
	writer.Wait()
	clock.now += 1000 // idle: it moves on by itself
	checkStoredThrough(t, service, acknowledged)
	if through := askThrough(t, service); through != clock.now {
		t.Errorf("idle: stored through %d, want %d", through, clock.now)
	}
}

func checkStoredThrough(t *testing.T, service *query.Service, acknowledged []int64) {
	t.Helper()
	response, err := service.Run(t.Context(), known(1), []byte(`{"type":"breakdown","by":"event","measure":"count",`+year+`}`))
	if err != nil {
		t.Fatal(err)
	}
	total, through := readBreakdown(t, response)
	before := 0
	for _, ts := range acknowledged {
		if ts < through {
			before++
		}
	}
	if total < before {
		t.Errorf("%d events in the answer, %d were acknowledged before stored_through", total, before)
	}
}

func askThrough(t *testing.T, service *query.Service) int64 {
	t.Helper()
	response, err := service.Run(t.Context(), known(1), []byte(`{"type":"breakdown","by":"event","measure":"count",`+year+`}`))
	if err != nil {
		t.Fatal(err)
	}
	_, through := readBreakdown(t, response)
	return through
}

func readBreakdown(t *testing.T, response any) (total int, through int64) {
	t.Helper()
	answer := generic(t, response)
	for _, item := range answer["items"].([]any) {
		total += number(item.(map[string]any)["value"])
	}
	stored, err := time.Parse(time.RFC3339, answer["stored_through"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return total, stored.UnixMilli()
}
