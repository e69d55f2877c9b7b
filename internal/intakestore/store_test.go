package intakestore_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

var identity = [16]byte{1, 2, 3}

const window = int64(48 * time.Hour / time.Millisecond)

func options(t testing.TB, dir string) intakestore.Options {
	t.Helper()
	return intakestore.Options{
		Dir:  dir,
		Mark: filepath.Join(filepath.Dir(dir), "ACKNOWLEDGED"),
		Log:  slog.New(slog.DiscardHandler),
		Fatal: func(err error) {
			t.Errorf("fatal: %v", err)
			panic(err)
		},
	}
}

func create(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "intake")
	if err := intakestore.Create(options(t, dir), identity, intakestore.State{Window: window}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *intakestore.Store {
	t.Helper()
	s, err := intakestore.Open(options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t testing.TB, s *intakestore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func newID(r *rand.Rand) (id record.EventID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func ident(id record.EventID) record.Identity {
	return record.Identity{Project: 1, KeyKind: record.KeyServer, EventID: id}
}

// group makes one entry of claimed items.
func group(received int64, ids ...record.EventID) intakestore.Group {
	e := intakestore.Entry{Header: record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}}
	for i, id := range ids {
		it := record.Item{Type: record.ItemEvent, EventID: id, Claimed: true, Event: "e", Fingerprint: uint32(i)}
		e.Items = append(e.Items, intakestore.Item{EventID: id, Claimed: true, Fingerprint: uint32(i), Encoded: record.AppendItem(nil, &it)})
	}
	return intakestore.Group{Received: received, Window: window, Entries: []intakestore.Entry{e}}
}

func commit(t testing.TB, s *intakestore.Store, g intakestore.Group) {
	t.Helper()
	p, err := s.Commit(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

func mustFind(t testing.TB, s *intakestore.Store, id record.EventID, want dedup.Claim) {
	t.Helper()
	got, ok, err := s.FindClaim(ident(id))
	if err != nil || !ok || got != want {
		t.Fatalf("claim of %x: got %+v %v %v, want %+v", id, got, ok, err, want)
	}
}

func TestRecordAndClaimAreWrittenTogether(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(1, 1))
	a, b := newID(r), newID(r)
	p, err := s.Commit(group(1000, a, b))
	if err != nil {
		t.Fatal(err)
	}
	mustFind(t, s, a, dedup.Claim{Received: 1000})
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	records, err := s.Records(1, 100)
	if err != nil || len(records) != 1 || len(records[0].Items) != 2 || records[0].Store != identity {
		t.Fatalf("got %+v, %v", records, err)
	}
	closeStore(t, s)

	s = open(t, dir)
	defer closeStore(t, s)
	mustFind(t, s, b, dedup.Claim{Received: 1000, Fingerprint: 1})
	if got := s.State(); got != (intakestore.State{Last: 2, Received: 1000, Window: window}) {
		t.Fatalf("state %+v", got)
	}
}

func TestClaimsAreFoundAcrossSegmentsAndRestartsAndDroppedWhenExpired(t *testing.T) {
	dir := create(t)
	r := rand.New(rand.NewPCG(2, 2))
	hour := time.Hour.Milliseconds()
	ids := map[int64]record.EventID{}
	for h := int64(0); h <= 120; h += 6 {
		s := open(t, dir)
		ids[h] = newID(r)
		commit(t, s, group(h*hour, ids[h]))
		for past, id := range ids {
			got, ok, err := s.FindClaim(ident(id))
			if err != nil {
				t.Fatal(err)
			}
			if !ok && h-past <= 48 {
				t.Fatalf("at %d h the claim of %d h is gone", h, past)
			}
			if ok && got.Received != past*hour {
				t.Fatalf("claim of %d h says %d", past, got.Received)
			}
			if ok && h-past > 48+24 {
				t.Fatalf("at %d h the claim of %d h is still there", h, past)
			}
		}
		if err := s.Trim(s.State().Last); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
	}
}

func TestClaimsOfUnstoredRecordsAreKept(t *testing.T) {
	s := open(t, create(t))
	defer closeStore(t, s)
	r := rand.New(rand.NewPCG(3, 3))
	first := newID(r)
	commit(t, s, group(0, first))
	for d := int64(1); d < 10; d++ {
		commit(t, s, group(d*window/2, newID(r)))
	}
	mustFind(t, s, first, dedup.Claim{Received: 0})
}

func TestTheNewestClaimCounts(t *testing.T) {
	s := open(t, create(t))
	defer closeStore(t, s)
	id := newID(rand.New(rand.NewPCG(4, 4)))
	commit(t, s, group(0, id))
	commit(t, s, group(window+1, id))
	mustFind(t, s, id, dedup.Claim{Received: window + 1})
}

func TestTrimmedRecordsAreGoneAndAGapIsSeen(t *testing.T) {
	s := open(t, create(t))
	defer closeStore(t, s)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range int64(5) {
		commit(t, s, group(i, newID(r), newID(r)))
	}
	if err := s.Trim(4); err != nil {
		t.Fatal(err)
	}
	first, err := s.First()
	if err != nil || first != 5 {
		t.Fatalf("first is %d, %v", first, err)
	}
	if _, err := s.Records(3, 100); !errors.Is(err, intakestore.ErrGap) {
		t.Fatalf("got %v, want a gap", err)
	}
	records, err := s.Records(5, 3)
	if err != nil || len(records) != 2 {
		t.Fatalf("got %d records, %v", len(records), err)
	}
}

func TestManyIDs(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(6, 6))
	var ids []record.EventID
	for g := range 40 {
		batch := make([]record.EventID, 5000)
		for i := range batch {
			batch[i] = newID(r)
		}
		ids = append(ids, batch...)
		commit(t, s, group(int64(g), batch...))
	}
	check := func() {
		t.Helper()
		for i, id := range ids {
			mustFind(t, s, id, dedup.Claim{Received: int64(i / 5000), Fingerprint: uint32(i % 5000)})
		}
		for range 1000 {
			if _, ok, err := s.FindClaim(ident(newID(r))); ok || err != nil {
				t.Fatalf("found an id that was never claimed: %v", err)
			}
		}
	}
	check()
	closeStore(t, s)
	s = open(t, dir)
	check()
	closeStore(t, s)
}

func TestRebuildReplacesClaimsAndLeavesRecords(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(7, 7))
	a, b := newID(r), newID(r)
	commit(t, s, group(10, a))
	state := s.State()
	n, err := s.Rebuild(state, func(yield func(record.Identity, dedup.Claim) error) error {
		return yield(ident(b), dedup.Claim{Received: 7, Fingerprint: 9})
	})
	if err != nil || n != 1 {
		t.Fatalf("rebuilt %d, %v", n, err)
	}
	mustFind(t, s, b, dedup.Claim{Received: 7, Fingerprint: 9})
	if _, ok, _ := s.FindClaim(ident(a)); ok {
		t.Fatal("the old claim is still there")
	}
	if records, err := s.Records(1, 10); err != nil || len(records) != 1 {
		t.Fatalf("records: %d, %v", len(records), err)
	}
	cut := errors.New("cut short")
	if _, err := s.Rebuild(state, func(func(record.Identity, dedup.Claim) error) error { return cut }); !errors.Is(err, cut) {
		t.Fatalf("got %v", err)
	}
	closeStore(t, s)
	if _, err := intakestore.Open(options(t, dir)); !errors.Is(err, intakestore.ErrRebuilding) {
		t.Fatalf("got %v, want a refusal", err)
	}
	o := options(t, dir)
	o.Repair = true
	s, err = intakestore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
}

func TestOpenNeverCreates(t *testing.T) {
	if _, err := intakestore.Open(options(t, filepath.Join(t.TempDir(), "intake"))); err == nil {
		t.Fatal("opened a store that is not there")
	}
	dir := create(t)
	if err := intakestore.Create(options(t, dir), identity, intakestore.State{}); err == nil {
		t.Fatal("created a store over another one")
	}
}

// copyStore copies a store and its mark, as kill -9 would leave them.
func copyStore(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(dir))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "intake")
}

// A store whose files were damaged must refuse to open, or open with
// everything: it must never come back with less than was acknowledged.
func TestADamagedFileIsNeverReadInPart(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(8, 8))
	ids := []record.EventID{}
	for i := range int64(50) {
		id := newID(r)
		ids = append(ids, id)
		commit(t, s, group(i, id, newID(r)))
		if i == 25 {
			closeStore(t, s) // half of it lies in tables, half in the log
			s = open(t, dir)
		}
	}
	killed := copyStore(t, dir)
	closeStore(t, s)
	for _, pattern := range []string{"*.log", "*.sst", "MANIFEST-*"} {
		names, err := filepath.Glob(filepath.Join(killed, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		refused := 0
		for range 40 {
			damaged := copyStore(t, killed)
			damage(t, r, filepath.Join(damaged, filepath.Base(names[r.IntN(len(names))])))
			s, err := intakestore.Open(options(t, damaged))
			if err != nil {
				refused++
				continue
			}
			if got := s.State().Last; got != 100 {
				t.Errorf("%s: opened with %d of 100 items", pattern, got)
			}
			for i, id := range ids {
				mustFind(t, s, id, dedup.Claim{Received: int64(i)})
			}
			closeStore(t, s)
		}
		t.Logf("%s: refused %d of 40", pattern, refused)
		if refused == 0 {
			t.Errorf("%s: no damage was noticed", pattern)
		}
	}
}

func damage(t *testing.T, r *rand.Rand, name string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[r.IntN(len(content))] ^= 1 << r.IntN(8)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnOlderCopyIsRefused(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(10, 10))
	commit(t, s, group(1, newID(r)))
	closeStore(t, s)
	older := copyStore(t, dir)
	s = open(t, dir)
	commit(t, s, group(2, newID(r)))
	closeStore(t, s)
	o := options(t, older)
	o.Mark = options(t, dir).Mark
	if _, err := intakestore.Open(o); !errors.Is(err, intakestore.ErrBehind) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if err := os.Remove(o.Mark); err != nil {
		t.Fatal(err)
	}
	if _, err := intakestore.Open(o); !errors.Is(err, intakestore.ErrDamaged) {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestSnapshotSeesOneMoment(t *testing.T) {
	s := open(t, create(t))
	defer closeStore(t, s)
	r := rand.New(rand.NewPCG(9, 9))
	commit(t, s, group(1, newID(r)))
	called := false
	snap, err := s.Snapshot(func() error { called = true; return nil })
	if err != nil || !called {
		t.Fatalf("snapshot: %v", err)
	}
	commit(t, s, group(2, newID(r)))
	if err := s.Trim(2); err != nil {
		t.Fatal(err)
	}
	claims, items := 0, 0
	if err := snap.Claims(0, func(record.Identity, dedup.Claim) error { claims++; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := snap.Records(1, func(r record.Record) error { items += len(r.Items); return nil }); err != nil {
		t.Fatal(err)
	}
	if claims != 1 || items != 1 || snap.State.Last != 1 {
		t.Fatalf("claims %d, items %d, last %d", claims, items, snap.State.Last)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A repair may die at any step. Until it is done, the store must not pass for
// a whole one, and what was acknowledged must stay known.
func TestARepairCutShortIsNotTakenForAWholeStore(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(11, 11))
	commit(t, s, group(1, newID(r)))
	closeStore(t, s)
	older := copyStore(t, dir)
	s = open(t, dir)
	commit(t, s, group(2, newID(r)))
	closeStore(t, s)

	remade := options(t, filepath.Join(t.TempDir(), "intake"))
	remade.Mark = options(t, copyStore(t, dir)).Mark
	behind := options(t, older)
	behind.Mark = options(t, dir).Mark
	repairStore(t, behind, intakestore.ErrBehind)
	remade.Repair = true
	if err := intakestore.Create(remade, identity, intakestore.State{Last: 1, Window: window}); err != nil {
		t.Fatal(err)
	}
	repairStore(t, remade, intakestore.ErrRebuilding)
}

// repairStore repairs a store, once in vain, that is refused before with want
// and lacks the last of two acknowledged items.
func repairStore(t *testing.T, o intakestore.Options, want error) {
	t.Helper()
	repair := o
	o.Repair, repair.Repair = false, true
	for range 2 {
		if _, err := intakestore.Open(o); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if last, err := intakestore.Acknowledged(o); err != nil || last != 2 {
			t.Fatalf("acknowledged: %d, %v", last, err)
		}
		s, err := intakestore.Open(repair)
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
	}
	s, err := intakestore.Open(repair)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(s.State(), func(func(record.Identity, dedup.Claim) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if s, err = intakestore.Open(o); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
}
