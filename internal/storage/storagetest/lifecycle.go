package storagetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

func testLifecycle(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, OpenFunc){
		"a store keeps its identity":              testIdentity,
		"opening never creates":                   testOpenMissing,
		"creating refuses what exists":            testCreateTwice,
		"creating finishes what was cut short":    testCreateUnfinished,
		"of many creators at once one wins":       testCreateConcurrently,
		"a newer or another store is left alone":  testForeign,
		"project numbers are counted, not stored": testMaxProjectNumber,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func testIdentity(t *testing.T, open OpenFunc) {
	o := open(t)
	if got := create(t, o).Identity(); got != Identity {
		t.Errorf("created with %x, want %x", got, Identity)
	}
	again, err := sqldb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Identity(); got != Identity {
		t.Errorf("opened with %x, want %x", got, Identity)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func testOpenMissing(t *testing.T, open OpenFunc) {
	o := open(t)
	for range 2 { // the first time must leave nothing behind for the second
		mustRefuse(t, o, sqldb.ErrMissing)
	}
	create(t, o)
}

func testCreateTwice(t *testing.T, open OpenFunc) {
	o := open(t)
	create(t, o)
	_, err := sqldb.Create(t.Context(), o, [16]byte{1})
	if !errors.Is(err, sqldb.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	db, err := sqldb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if db.Identity() != Identity {
		t.Error("the refused creation changed the identity")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func testCreateUnfinished(t *testing.T, open OpenFunc) {
	o := open(t)
	create(t, o)
	exec(t, raw(t, o), "DELETE FROM meta") // as if killed just before
	mustRefuse(t, o, sqldb.ErrMissing)
	create(t, o)
}

func testCreateConcurrently(t *testing.T, open OpenFunc) {
	o := open(t)
	const creators = 4
	var wg sync.WaitGroup
	results := make(chan error, creators)
	for range creators {
		wg.Go(func() {
			db, err := sqldb.Create(t.Context(), o, Identity)
			if err == nil {
				err = db.Close()
			}
			results <- err
		})
	}
	wg.Wait()
	close(results)
	won := 0
	for err := range results {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, sqldb.ErrExists):
			t.Errorf("a loser got %v, want ErrExists", err)
		}
	}
	if won != 1 {
		t.Errorf("%d creators won, want 1", won)
	}
}

func testForeign(t *testing.T, open OpenFunc) {
	for name, c := range map[string]struct {
		change string
		want   error
	}{
		"migration of a newer version": {
			"INSERT INTO actionpulse_migrations (number, name, checksum, applied_at) VALUES (9999, '9999_future', 'x', 0)",
			sqldb.ErrNewer,
		},
		"format of a newer version": {"UPDATE meta SET format_version = format_version + 1", sqldb.ErrNewer},
		"changed migration":         {"UPDATE actionpulse_migrations SET checksum = 'x' WHERE number = 1", sqldb.ErrChanged},
		"missing first migration":   {"UPDATE actionpulse_migrations SET number = 0 WHERE number = 1", sqldb.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			create(t, o)
			exec(t, raw(t, o), c.change)
			mustRefuse(t, o, c.want)
		})
	}
}

func mustRefuse(t *testing.T, o sqldb.Options, want error) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), o)
	if !errors.Is(err, want) {
		t.Errorf("open: got %v, want %v", err, want)
	}
	if err == nil {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testMaxProjectNumber(t *testing.T, open OpenFunc) {
	db := New(t, open)
	newest := func() uint32 {
		n, err := db.MaxProjectNumber(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := newest(); n != 0 {
		t.Errorf("a new store says %d, want 0", n)
	}
	take := func(ctx context.Context, fail error) {
		err := db.Write(ctx, func(q *sqldb.Queries) error {
			if _, err := q.NextNumber(ctx, sqldb.CounterProject); err != nil {
				return err
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatalf("got %v, want %v", err, fail)
		}
	}
	take(t.Context(), nil)
	take(t.Context(), errors.New("undone"))
	take(t.Context(), nil)
	if n := newest(); n != 2 {
		t.Errorf("after two numbers given it says %d, want 2", n)
	}
}
