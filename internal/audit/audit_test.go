package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/proptest"
	"github.com/actionpulse/actionpulse/internal/record"
)

var identity = [16]byte{3}

// window is short, so that tests cross it with small numbers.
const window = int64(4000)

type bundle struct {
	dir    string
	stores audit.Stores
	group  *dedup.Group
	now    int64
}

// must is what testing.T and rapid.T have in common.
type must interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func options(dir string) intakestore.Options {
	return intakestore.Options{
		Dir: filepath.Join(dir, "intake"), Mark: filepath.Join(dir, "ACKNOWLEDGED"),
		Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { panic(err) },
	}
}

func setup(t must, dir string) *bundle {
	t.Helper()
	if err := intakestore.Create(options(dir), identity, intakestore.State{Window: window}); err != nil {
		t.Fatal(err)
	}
	if err := eventstore.Create(context.Background(), filepath.Join(dir, "events.duckdb"), identity); err != nil {
		t.Fatal(err)
	}
	b := &bundle{dir: dir}
	b.open(t)
	return b
}

func (b *bundle) open(t must) {
	t.Helper()
	var err error
	if b.stores.Intake, err = intakestore.Open(options(b.dir)); err != nil {
		t.Fatal(err)
	}
	b.stores.Events, err = eventstore.Open(context.Background(), eventstore.Options{Path: filepath.Join(b.dir, "events.duckdb"), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.group = dedup.NewGroup(b.stores.Intake)
}

func (b *bundle) close(t must) {
	t.Helper()
	if err := errors.Join(b.stores.Events.Close(), b.stores.Intake.Close()); err != nil {
		t.Fatal(err)
	}
}

// send decides ids as the sequencer does and writes those that are new; id 0
// is an item without an id of its own.
func (b *bundle) send(t must, ids ...byte) {
	t.Helper()
	b.group.Begin(b.now, window)
	entry := intakestore.Entry{Header: record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}}
	for _, id := range ids {
		it := record.Item{Type: record.ItemEvent, Event: "e", AnonID: personOf(id).AnonID, EventID: record.EventID{id, byte(b.now)}}
		if id != 0 {
			it.EventID, it.Claimed, it.Fingerprint = record.EventID{id}, true, uint32(id)
			verdict, err := b.group.Decide(record.Identity{Project: 1, KeyKind: record.KeyServer, EventID: it.EventID}, it.Fingerprint)
			if err != nil {
				t.Fatal(err)
			}
			if verdict != dedup.New {
				continue
			}
		}
		entry.Items = append(entry.Items, intakestore.Item{
			EventID: it.EventID, Claimed: it.Claimed, Fingerprint: it.Fingerprint, Encoded: record.AppendItem(nil, &it),
		})
	}
	if len(entry.Items) > 0 {
		b.commit(t, entry)
	}
}

// personOf says whose an item is: there are two persons.
func personOf(id byte) record.Person { return record.Person{AnonID: string(rune('a' + id%2))} }

// erase adds an erasure to the stream, as intake does, and returns its
// position.
func (b *bundle) erase(t must, p record.Person) uint64 {
	t.Helper()
	it := record.Item{Type: record.ItemErase, AnonID: p.AnonID, UserID: p.UserID}
	b.commit(t, intakestore.Entry{
		Header: record.Record{Project: 1}, Items: []intakestore.Item{{Encoded: record.AppendItem(nil, &it)}},
	})
	return b.stores.Intake.State().Last
}

func (b *bundle) commit(t must, entry intakestore.Entry) {
	t.Helper()
	p, err := b.stores.Intake.Commit(intakestore.Group{Received: b.now, Window: window, Entries: []intakestore.Entry{entry}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// store moves about n items to the event store.
func (b *bundle) store(t must, n int) {
	t.Helper()
	mark, err := b.stores.Events.Mark(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	records, err := b.stores.Intake.Records(mark.Position+1, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) == 0 {
		return
	}
	if mark, err = b.stores.Events.Apply(context.Background(), eventstore.ApplyParams{Records: records}); err != nil {
		t.Fatal(err)
	}
	if err := b.stores.Intake.Trim(mark.Position); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) verify(t must) audit.Report {
	t.Helper()
	report, err := b.stores.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Whatever was sent, stored, erased, deleted for its age, expired, repaired or
// restarted, in whatever order: the stores agree, and claims rebuilt from rows
// are the live ones.
func TestRebuiltClaimsEqualTheLiveOnes(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		b := setup(t, dir)
		defer b.close(t)
		ids := rapid.SliceOfN(rapid.ByteRange(0, 5), 1, 5)
		t.Repeat(map[string]func(*rapid.T){
			"send":  func(t *rapid.T) { b.send(t, ids.Draw(t, "ids")...) },
			"wait":  func(t *rapid.T) { b.now += rapid.SampledFrom([]int64{1, 900, window, window + 1}).Draw(t, "ms") },
			"erase": func(t *rapid.T) { b.erase(t, personOf(rapid.ByteRange(0, 1).Draw(t, "person"))) },
			"expire": func(t *rapid.T) {
				_, err := b.stores.Events.DeleteOlder(context.Background(), eventstore.Retention{
					Project: 1, Now: b.now, Keep: rapid.SampledFrom([]int64{0, 900, window}).Draw(t, "kept"), Window: window,
				})
				if err != nil {
					t.Fatal(err)
				}
			},
			"store": func(t *rapid.T) { b.store(t, rapid.IntRange(1, 10).Draw(t, "items")) },
			"restart": func(t *rapid.T) {
				b.close(t)
				b.open(t)
			},
			"rebuild": func(t *rapid.T) {
				before := b.verify(t)
				n, err := b.stores.Rebuild(context.Background(), window)
				if err != nil || int64(n) != before.Claims {
					t.Fatalf("rebuilt %d claims, %d were alive: %v", n, before.Claims, err)
				}
			},
			"": func(t *rapid.T) {
				if r := b.verify(t); !r.OK {
					t.Fatalf("the stores differ: %+v", r)
				}
			},
		})
	})
}

func TestDifferencesAreFoundAndNamed(t *testing.T) {
	b := setup(t, t.TempDir())
	defer b.close(t)
	b.send(t, 1, 2, 0)
	b.store(t, 10)
	b.send(t, 3)
	state := b.stores.Intake.State()
	_, err := b.stores.Intake.Rebuild(state, func(yield func(record.Identity, dedup.Claim) error) error {
		id := record.Identity{Project: 1, KeyKind: record.KeyServer}
		for _, n := range []byte{1, 3, 9} {
			id.EventID = record.EventID{n}
			if err := yield(id, dedup.Claim{Fingerprint: uint32(n)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := b.verify(t)
	if r.OK || r.Claims != 3 || r.ExpectedClaims != 3 || len(r.Differences) != 2 {
		t.Fatalf("got %+v", r)
	}
	all := strings.Join(r.Differences, "\n")
	for _, want := range []string{"02000000-0000-0000-0000-000000000000", "has no claim", "09000000-0000-0000-0000-000000000000", "no stored or waiting event"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q does not say %q", all, want)
		}
	}
	if n, err := b.stores.Rebuild(t.Context(), window); n != 3 || err != nil {
		t.Fatalf("rebuilt %d, %v", n, err)
	}
	if r := b.verify(t); !r.OK {
		t.Fatalf("got %+v", r)
	}
}

// An event that is stored twice within the window is what all of this exists
// to prevent; verify must see it.
func TestARepeatedRowIsFound(t *testing.T) {
	b := setup(t, t.TempDir())
	defer b.close(t)
	b.send(t, 1)
	if _, err := b.stores.Intake.Rebuild(b.stores.Intake.State(), func(func(record.Identity, dedup.Claim) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	b.now = 10
	b.send(t, 1)
	b.store(t, 10)
	r := b.verify(t)
	if r.OK || !strings.Contains(strings.Join(r.Differences, "\n"), "stored twice within the window: positions 1 and 2") {
		t.Fatalf("got %+v", r)
	}
}

func TestMain(m *testing.M) {
	proptest.Checks(5)
	os.Exit(m.Run())
}
