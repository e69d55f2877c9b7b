package eventstore_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// traces counts how often texts stand in the store's files.
func traces(tb testing.TB, path string, texts ...string) int {
	tb.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			tb.Fatal(err)
		}
		if info.IsDir() {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, text := range texts {
			n += bytes.Count(content, []byte(text))
		}
	}
	return n
}

// Texts of the person who is erased. The first eight characters of the least
// and the greatest text of a column stand in what DuckDB knows of its tables.
const (
	markedUser  = "~~MARKED-USER-ID"
	markedAnon  = "~~MARKED-ANON-ID"
	markedValue = "~~MARKED-VALUE"
)

// markedLog stores many rows, some of them of the person to be erased, in every
// table; pad is a part of the person's properties.
func markedLog(l *log, pad func(i int) string) {
	l.tb.Helper()
	records := benchRecords(l.next, 60)
	for i := range records {
		items := records[i].Items
		for j := 100; j < len(items); j += 150 {
			items[j].AnonID, items[j].SessionID, items[j].Event = markedAnon, markedValue, markedValue
			items[j].Properties = fmt.Appendf(nil, `{"a":"%s %s"}`, markedValue, pad(i*1000+j))
			items[j].Context = items[j].Properties
		}
		items[7] = identify(markedAnon, markedUser, benchTime+int64(i), `{"~~MARKED-VALUE":"~~MARKED-VALUE"}`)
	}
	l.next = records[len(records)-1].Last() + 1
	l.apply(records...)
	broken := event(markedValue, markedAnon, markedUser, benchTime)
	r := l.make(benchTime, broken)
	if _, err := l.store.Apply(l.tb.Context(), eventstore.ApplyParams{
		Records: []record.Record{r}, Quarantine: map[uint64]string{r.Position: "a test"},
	}); err != nil {
		l.tb.Fatal(err)
	}
}

// After an erasure and a rewrite no file of the store holds anything of the
// person, compressed or not; everybody else's rows are there. As in a privacy
// job, whose data was taken is forgotten in between, and the process that has
// done so may end before it rewrites.
func TestNothingIsLeftBehind(t *testing.T) {
	for name, compression := range map[string]string{"compressed": "auto", "uncompressed": "uncompressed"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.duckdb")
			if err := eventstore.Create(t.Context(), path, storeID); err != nil {
				t.Fatal(err)
			}
			s, err := eventstore.Open(t.Context(), eventstore.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			l := newLog(t, s)
			markedLog(l, func(i int) string { return fmt.Sprintf("%x", uint64(i)*0x9E3779B97F4A7C15) })
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			recompress(t, path, compression)
			s = open(t, eventstore.Options{Path: path})
			l.store = s
			marks := []string{markedUser, markedAnon, markedValue, markedUser[:8]}
			if n := traces(t, path, marks...); n < 200 && compression != "auto" || n == 0 {
				t.Fatalf("only %d traces before: the test could not fail", n)
			}
			before := markOf(t, s).Rows
			l.add(benchTime, erase(eventstore.Person{UserID: markedUser}))
			erased := before - markOf(t, s).Rows
			if n := traces(t, path, marks...); n == 0 {
				t.Error("deleting leaves nothing: the rewrite is not needed")
			}
			s = forgetAndReopen(t, s, path)
			if err := s.Rewrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := traces(t, path, marks...); n != 0 {
				t.Errorf("%d traces after", n)
			}
			checkRows(t, s, before-erased)
			if erased != 60*4 {
				t.Errorf("%d rows were erased", erased)
			}
		})
	}
}

// forgetAndReopen forgets whose data the erasure of the marked user has taken,
// as a privacy job does, and opens the store again: what was deleted by a
// process that has ended is overwritten by the next one.
func forgetAndReopen(t *testing.T, s *eventstore.Store, path string) *eventstore.Store {
	t.Helper()
	if err := s.ForgetTaken(t.Context(), 1, eventstore.Person{UserID: markedUser}, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, eventstore.Options{Path: path})
}

// A snapshot sees what was erased since, so a rewrite waits for it; records are
// applied and questions answered meanwhile, and a store with hardly a block in
// use is filled, too.
func TestARewriteWaitsForReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	s := open(t, eventstore.Options{Path: path})
	l := newLog(t, s)
	l.add(1000, event(markedValue, markedAnon, markedUser, 1000), event("e", "x", "", 1000))
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.add(1000, erase(eventstore.Person{UserID: markedUser}))
	if err := s.ForgetTaken(t.Context(), 1, eventstore.Person{UserID: markedUser}, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	rewritten := make(chan error, 1)
	go func() { rewritten <- s.Rewrite(context.Background()) }()
	for range 20 {
		l.add(1000, event("e", "x", "", 1000))
		ask(t, s, `{"type":"events",`+year+`}`)
	}
	rows, err := snap.RowCount(t.Context())
	if err != nil || rows != 2 {
		t.Errorf("the snapshot sees %d rows: %v", rows, err)
	}
	select {
	case err := <-rewritten:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-rewritten; err != nil {
		t.Fatal(err)
	}
	if n := traces(t, path, markedUser, markedAnon, markedValue, markedUser[:8]); n != 0 {
		t.Errorf("%d traces after", n)
	}
	checkRows(t, s, 21)
}

// recompress writes the tables of a closed store as DuckDB would have with
// another setting.
func recompress(tb testing.TB, path, compression string) {
	tb.Helper()
	statements := []string{"SET force_compression = '" + compression + "'"}
	for _, table := range []string{"events", "links", "link_spans", "traits", "quarantine"} {
		statements = append(statements, "CREATE TABLE copied AS FROM "+table,
			"DELETE FROM "+table, "INSERT INTO "+table+" FROM copied", "DROP TABLE copied", "CHECKPOINT")
	}
	execAll(tb, path, statements...)
}

func checkRows(tb testing.TB, s *eventstore.Store, want int64) {
	tb.Helper()
	snap, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	rows, err := snap.RowCount(context.Background())
	if err != nil {
		tb.Error(err)
	}
	if err := snap.Close(); err != nil {
		tb.Error(err)
	}
	if rows != want || snap.Mark().Rows != want {
		tb.Errorf("%d rows, counted %d, want %d", rows, snap.Mark().Rows, want)
	}
}
