package materializer_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/materializer"
	"github.com/actionpulse/actionpulse/internal/record"
)

var identity = [16]byte{9}

// bundle is a pair of real stores with a materializer between them.
type bundle struct {
	t      *testing.T
	dir    string
	fault  func(*record.Item) error
	intake *intakestore.Store
	events *eventstore.Store
	stored chan struct{}
	seen   observer
	fatal  atomic.Pointer[error]
}

type observer struct {
	batches, failed, quarantined atomic.Int64
	// moved, if set, is called after each batch.
	moved func()
}

func (o *observer) Batch(int, time.Duration) {
	o.batches.Add(1)
	if o.moved != nil {
		o.moved()
	}
}
func (o *observer) Failed()      { o.failed.Add(1) }
func (o *observer) Quarantined() { o.quarantined.Add(1) }

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, dir: t.TempDir(), stored: make(chan struct{}, 1)}
	if err := intakestore.Create(b.intakeOptions(), identity, intakestore.State{}); err != nil {
		t.Fatal(err)
	}
	if err := eventstore.Create(t.Context(), b.path("events.duckdb"), identity); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bundle) intakeOptions() intakestore.Options {
	return intakestore.Options{
		Dir: b.path("intake"), Mark: b.path("ACKNOWLEDGED"), Log: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(err) },
	}
}

func (b *bundle) open() {
	b.t.Helper()
	var err error
	if b.intake, err = intakestore.Open(b.intakeOptions()); err != nil {
		b.t.Fatal(err)
	}
	b.events, err = eventstore.Open(b.t.Context(), eventstore.Options{
		Path: b.path("events.duckdb"), Threads: 1, Fault: b.fault,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) close() {
	b.t.Helper()
	if err := errors.Join(b.events.Close(), b.intake.Close()); err != nil {
		b.t.Fatal(err)
	}
}

// commit acknowledges one record of named events.
func (b *bundle) commit(names ...string) {
	b.t.Helper()
	e := intakestore.Entry{Header: record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}}
	for _, name := range names {
		it := record.Item{Type: record.ItemEvent, Event: name, AnonID: "a"}
		e.Items = append(e.Items, intakestore.Item{Encoded: record.AppendItem(nil, &it)})
	}
	p, err := b.intake.Commit(intakestore.Group{Received: 1000, Window: 1000, Entries: []intakestore.Entry{e}})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		b.t.Fatal(err)
	}
	select {
	case b.stored <- struct{}{}:
	default:
	}
}

func (b *bundle) materializer() *materializer.Materializer {
	return materializer.New(materializer.Params{
		Intake: b.intake, Events: b.events, Stored: b.stored, Attempt: b.path("attempt.json"),
		MaxRows: 4, MaxDelay: time.Millisecond, Log: slog.New(slog.DiscardHandler), Observer: &b.seen,
		Fatal: func(err error) { b.fatal.Store(&err) },
	})
}

// drain runs a materializer that is told to stop before it begins: it moves
// what is there and ends.
func (b *bundle) drain() error {
	ctx, cancel := context.WithCancel(b.t.Context())
	cancel()
	return b.materializer().Run(ctx)
}

func (b *bundle) mark() eventstore.Mark {
	b.t.Helper()
	mark, err := b.events.Mark(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return mark
}

func TestItemsAreMovedInOrderAndTrimmed(t *testing.T) {
	b := setup(t)
	b.open()
	defer b.close()
	for range 10 {
		b.commit("a", "b", "c")
	}
	if err := b.drain(); err != nil {
		t.Fatal(err)
	}
	if m := b.mark(); m.Position != 30 || m.Rows != 30 {
		t.Fatalf("mark %+v", m)
	}
	if first, err := b.intake.First(); err != nil || first != 31 {
		t.Fatalf("first %d, %v", first, err)
	}
	if _, err := os.Stat(b.path("attempt.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the attempt was not forgotten: %v", err)
	}
	if b.seen.batches.Load() < 5 {
		t.Errorf("%d transactions of at most 4 items or one record for 30 items", b.seen.batches.Load())
	}
}

func TestARunningMaterializerFollows(t *testing.T) {
	b := setup(t)
	b.open()
	defer b.close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.materializer().Run(ctx) }()
	for range 5 {
		b.commit("a")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m := b.mark(); m.Rows != 5 {
		t.Fatalf("mark %+v", m)
	}
}

func TestWhatCannotBeStoredIsSetAside(t *testing.T) {
	b := setup(t)
	broken := true
	b.fault = func(it *record.Item) error {
		if broken && it.Event == "bad" {
			return errors.New("no room for this one")
		}
		return nil
	}
	b.open()
	defer b.close()
	b.commit("a", "bad", "c")
	b.commit("d", "bad")
	b.commit("e")
	if err := b.drain(); err != nil {
		t.Fatal(err)
	}
	if m := b.mark(); m.Position != 6 || m.Rows != 4 || m.Quarantined != 2 {
		t.Fatalf("mark %+v", m)
	}
	if b.seen.quarantined.Load() != 2 {
		t.Errorf("%d reported", b.seen.quarantined.Load())
	}
	broken = false
	if stored, left, err := b.events.Redrive(t.Context()); stored != 2 || left != 0 || err != nil {
		t.Fatalf("stored %d, left %d, %v", stored, left, err)
	}
	if m := b.mark(); m.Rows != 6 || m.Quarantined != 0 {
		t.Fatalf("mark %+v", m)
	}
}

// A store that cannot be written for a moment says nothing about the item it
// was given: nothing is set aside, not even if the next write works.
func TestTroubleOfTheStoreIsNoFaultOfAnItem(t *testing.T) {
	b := setup(t)
	refusals := 3
	b.fault = func(*record.Item) error {
		if refusals == 0 {
			return nil
		}
		refusals--
		return eventstore.ErrUnwritable
	}
	b.open()
	defer b.close()
	b.commit("a", "b")
	if err := b.drain(); err != nil {
		t.Fatal(err)
	}
	if m := b.mark(); m.Rows != 2 || m.Quarantined != 0 || refusals != 0 {
		t.Fatalf("%d refusals left, mark %+v", refusals, m)
	}
}

// An item that kills the process leaves no error behind, only a start that
// finds the same position again.
func TestAnItemThatKillsTheProcessIsSetAsideInTheEnd(t *testing.T) {
	b := setup(t)
	type died struct{}
	deaths := 0
	b.fault = func(it *record.Item) error {
		if it.Event == "deadly" {
			deaths++
			panic(died{})
		}
		return nil
	}
	b.open()
	b.commit("a", "b", "deadly", "c")
	b.commit("d")
	b.close()
	start := func() (dead bool) {
		b.open()
		defer b.close()
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(died); !ok {
					panic(p)
				}
				dead = true
			}
		}()
		if err := b.drainStarted(); err != nil {
			t.Fatal(err)
		}
		return false
	}
	starts := 1
	for start() {
		if starts++; starts > 10 {
			t.Fatal("the process dies for ever")
		}
	}
	b.open()
	defer b.close()
	if m := b.mark(); m.Position != 5 || m.Rows != 4 || m.Quarantined != 1 {
		t.Fatalf("after %d starts: mark %+v", starts, m)
	}
	t.Logf("%d starts, %d deaths", starts, deaths)
}

// drainStarted runs a materializer until everything there has been moved.
func (b *bundle) drainStarted() error {
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	b.seen.moved = func() {
		if b.mark().Position == b.intake.Durable() {
			cancel()
		}
	}
	defer func() { b.seen.moved = nil }()
	return b.materializer().Run(ctx)
}

func TestAnIntakeStoreThatLacksRecordsIsFatal(t *testing.T) {
	b := setup(t)
	b.open()
	defer b.close()
	b.commit("a")
	b.commit("b")
	if err := b.intake.Trim(1); err != nil {
		t.Fatal(err)
	}
	if err := b.drain(); !errors.Is(err, intakestore.ErrGap) {
		t.Fatalf("got %v", err)
	}
	if err := b.fatal.Load(); err == nil || !strings.Contains((*err).Error(), "missing") {
		t.Fatalf("fatal %v", err)
	}
}
