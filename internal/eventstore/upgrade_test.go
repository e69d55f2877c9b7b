package eventstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// firstVersion makes a file of schema version 1 that holds what another store
// does.
func firstVersion(tb testing.TB, of string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "events.duckdb")
	schema, err := os.ReadFile(filepath.Join("testdata", "schema1.sql"))
	if err != nil {
		tb.Fatal(err)
	}
	statements := strings.Split(string(schema), ";\n")
	statements = append(statements[:len(statements)-1], fmt.Sprintf("ATTACH '%s' AS newer", of))
	for _, table := range []string{"windows", "events", "links", "link_spans", "traits", "quarantine"} {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s FROM newer.%s", table, table))
	}
	execAll(tb, path, append(statements, "INSERT INTO mark FROM newer.mark", "UPDATE mark SET schema_version = 1")...)
	return path
}

// execAll runs statements on a file that nobody has open.
func execAll(tb testing.TB, path string, statements ...string) {
	tb.Helper()
	db, err := duck.Open(path, []duck.Setting{{Name: "storage_compatibility_version", Value: "v1.4.0"}})
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Connect()
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.Exec(tb.Context(), statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
}

// variedLog applies items whose encoded forms have parts of all sizes, over two
// months.
func variedLog(tb testing.TB, s *eventstore.Store) {
	tb.Helper()
	l := newLog(tb, s)
	long := func(n int) string { return strings.Repeat("é", n/2) }
	items := []record.Item{
		event("e", "a", "", 0), event("e", "a", "", -1), event("e", "a", "", 63), event("e", "a", "", 64),
		event("e", "a", "", -62_167_219_200_000), event("e", "a", "", 253_402_300_799_999),
		event(long(126), long(128), long(400), 1_700_000_000_000, `{}`, `{"a":"`+long(16_380)+`"}`),
		event("e", "a", "u", at(tb, "01-01 10:00"), `{"b":"`+long(60_000)+`"}`),
		identify("a", "u", at(tb, "01-01 10:00"), `{"plan":"pro"}`), identify("b", "u", 0, ""), alias("c", "u", 0),
		{Type: record.ItemEvent, Event: "no time", UserID: "u", SessionID: "s", EventID: record.EventID{1}, Claimed: true},
	}
	for _, received := range []string{"01-31 23:59:59.999", "02-01 00:00:00.000"} {
		for i := range items {
			it := items[i]
			it.EventID = record.EventID{}
			if it.Type == record.ItemIdentify {
				it.Event = "identify" // as intake names it
			}
			l.add(at(tb, received), it)
		}
	}
}

func usageOf(tb testing.TB, s *eventstore.Store) []eventstore.Usage {
	tb.Helper()
	usage, err := s.Usage(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return usage
}

// A file of version 1 is upgraded when it is opened: what was used is counted
// from the rows as it would have been counted at the time.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	s, err := eventstore.Open(t.Context(), eventstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	variedLog(t, s)
	wanted, mark := usageOf(t, s), markOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(wanted) != 2 || wanted[0].Month != 202401 || wanted[0].Events != 11 || wanted[1].Month != 202402 || wanted[1].Events != 11 {
		t.Fatalf("got %+v", wanted)
	}
	old := firstVersion(t, path)
	for range 2 { // and again, which changes nothing
		upgraded, err := eventstore.Open(t.Context(), eventstore.Options{Path: old})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, usageOf(t, upgraded)); diff != "" {
			t.Error(diff)
		}
		if got := markOf(t, upgraded); got != mark {
			t.Errorf("got %+v, want %+v", got, mark)
		}
		if err := upgraded.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func markOf(tb testing.TB, s *eventstore.Store) eventstore.Mark {
	tb.Helper()
	mark, err := s.Mark(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return mark
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{0, 3} {
		execAll(t, path, fmt.Sprintf("UPDATE mark SET schema_version = %d", version))
		if _, err := eventstore.Open(t.Context(), eventstore.Options{Path: path}); !errors.Is(err, eventstore.ErrSchema) {
			t.Errorf("version %d: got %v", version, err)
		}
	}
}
