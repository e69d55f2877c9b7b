package eventstore_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	manyPersons = 60
	rowsEach    = 40
)

func personAt(i int) eventstore.Person {
	return eventstore.Person{UserID: fmt.Sprintf("person %d", i)}
}

// manyRows stores rows of many persons, and some of the marked user.
func manyRows(l *log) {
	l.tb.Helper()
	records := make([]record.Record, rowsEach)
	for r := range records {
		var items []record.Item
		for i := range manyPersons {
			items = append(items, event("e", "", personAt(i).UserID, 1000))
		}
		records[r] = l.make(1000, append(items, event(markedValue, markedAnon, markedUser, 1000))...)
	}
	l.apply(records...)
}

// TestARewriteRacedByErasures: while a rewrite copies, others are erased, events
// are stored and questions are answered. What was copied before it was erased
// does not come back, what was stored meanwhile is there, and nothing is left of
// who was erased before.
func TestARewriteRacedByErasures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	s := open(t, eventstore.Options{Path: path})
	s.CopyInStepsOf(200)
	l := newLog(t, s)
	manyRows(l)
	marked := eventstore.Person{UserID: markedUser}
	l.add(1000, erase(marked))
	if err := s.ForgetTaken(t.Context(), 1, marked, math.MaxInt64); err != nil {
		t.Fatal(err)
	}

	rewritten := make(chan error, 1)
	go func() { rewritten <- s.Rewrite(context.Background()) }()
	erased, running := 0, true
	for running && erased < manyPersons {
		l.add(1000, erase(personAt(erased)), event("later", "", "somebody", 1000))
		erased++
		ask(t, s, `{"type":"events",`+year+`}`)
		select {
		case err := <-rewritten:
			if running = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	if running {
		if err := <-rewritten; err != nil {
			t.Fatal(err)
		}
	}
	if n := traces(t, path, markedUser, markedAnon, markedValue, markedUser[:8]); n != 0 {
		t.Errorf("%d traces", n)
	}
	checkRows(t, s, int64((manyPersons-erased)*rowsEach+erased))
	for i := range manyPersons {
		want := rowsEach
		if i < erased {
			want = 0
		}
		if list, err := exportOf(t.Context(), s, 1, personAt(i)); err != nil || len(list) != want {
			t.Fatalf("of %d erased, person %d has %d rows, want %d: %v", erased, i, len(list), want, err)
		}
	}
	t.Logf("%d erasures came in between", erased)
}

// TestARewriteBesideQueriesThatOverlap: DuckDB refuses a checkpoint while a query
// is older than the newest change of a table, and with dashboards open there is
// always one. Somebody also stores and erases all the time.
func TestARewriteBesideQueriesThatOverlap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	s := open(t, eventstore.Options{Path: path})
	l := newLog(t, s)
	manyRows(l)
	l.add(1000, erase(eventstore.Person{UserID: markedUser}))
	if err := s.ForgetTaken(t.Context(), 1, eventstore.Person{UserID: markedUser}, math.MaxInt64); err != nil {
		t.Fatal(err)
	}

	const dashboards = 3
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	var answered atomic.Int64
	for range dashboards {
		asking.Go(func() {
			for ctx.Err() == nil {
				if _, err := run(t, s, `{"type":"events",`+year+`}`); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	asking.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			next := l.make(1000, erase(personAt(i%manyPersons)), event("later", "", personAt((i+7)%manyPersons).UserID, 1000))
			if _, err := s.Apply(t.Context(), eventstore.ApplyParams{Records: []record.Record{next}}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3 {
		if err := s.Rewrite(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	asking.Wait()
	if answered.Load() == 0 {
		t.Error("nobody asked anything meanwhile")
	}
	if n := traces(t, path, markedUser, markedAnon, markedValue, markedUser[:8]); n != 0 {
		t.Errorf("%d traces", n)
	}
}
