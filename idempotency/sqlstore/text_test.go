package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// Keys, scopes and namespaces are compared by their bytes: what looks alike,
// or is equal under some collation, is another unit of work.
func TestKeysAreBytes(t *testing.T) {
	t.Parallel()
	texts := []string{
		"key", "Key", "KEY", "key ", " key", "kéy", "ke\u0301y", "kéY", "straße", "strasse", "ı", "i", "\u200bkey", "key%", "k_y",
		`"key"`, "1", "1.0", "01", "0x1", "\u65e5\u672c", "\U0001F511", strings.Repeat("k", 1024), strings.Repeat("k", 1023),
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		run := func(r idempotency.Request) {
			name := fmt.Sprintf("%q", r.Ref())
			for _, replayed := range []bool{false, true} {
				result, err := f.Run(t.Context(), r, unit(t.Context(), name, ok(name)))
				if err != nil || result.Replayed != replayed || string(result.Answer.Body) != name {
					t.Fatalf("%s: %+v, %v", name, result, err)
				}
			}
			rec, found, err := f.Find(t.Context(), r.Ref())
			if err != nil || !found || rec.Ref != r.Ref() || f.units(t, name) != 1 {
				t.Errorf("%s: found %+v %v, %v", name, rec, found, err)
			}
		}
		for _, text := range texts {
			run(request(idempotency.CreditMovement(day), text, "{}"))
			if len(text) <= 64 {
				scoped, spaced := request(idempotency.CreditMovement(day), "k", "{}"), request(idempotency.CreditMovement(day), "k", "{}")
				scoped.Scope = text
				run(scoped)
				spaced.Policy.Namespace = text
				run(spaced)
			}
		}
	})
}

// The same parts in other places are other keys.
func TestPartsOfAKeyDoNotRunTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for _, parts := range [][3]string{{"a", "b", "c"}, {"ab", "c", "d"}, {"a", "bc", "d"}, {"a", "b", "cd"}, {"c", "b", "a"}} {
			r := request(idempotency.CreditMovement(day), parts[2], "{}")
			r.Scope, r.Policy.Namespace = parts[0], parts[1]
			if result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1"))); err != nil || result.Replayed {
				t.Errorf("%q: %+v, %v", parts, result, err)
			}
		}
	})
}

// What the table cannot hold is refused before anything is done, on both
// engines alike, and the transaction goes on.
func TestRefsThatCannotBe(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	cases := map[string]idempotency.Ref{
		"no scope": {Namespace: "n", Key: "k"}, "no namespace": {Scope: "s", Key: "k"}, "no key": {Scope: "s", Namespace: "n"},
		"long scope":     {Scope: long(201), Namespace: "n", Key: "k"},
		"long namespace": {Scope: "s", Namespace: long(65), Key: "k"},
		"long key":       {Scope: "s", Namespace: "n", Key: long(1025)},
		"NUL":            {Scope: "s", Namespace: "n", Key: "a\x00b"}, "NUL in scope": {Scope: "s\x00", Namespace: "n", Key: "k"},
		"no UTF-8": {Scope: "s", Namespace: "n", Key: "a\xff"},
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		tx := f.begin(t, nil)
		for name, ref := range cases {
			r := request(idempotency.CreditMovement(day), ref.Key, "{}")
			r.Scope, r.Policy.Namespace = ref.Scope, ref.Namespace
			_, doErr := f.Do(t.Context(), tx, r, never(t))
			_, _, judgeErr := f.Judge(t.Context(), r)
			for _, err := range []error{doErr, judgeErr} {
				if !errors.Is(err, sqlstore.ErrRef) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, found, err := f.Find(t.Context(), ref); found || err != nil {
				t.Errorf("%s: found %v, %v", name, found, err)
			}
		}
		must(t, record(t.Context(), tx, "after"))
		commit(t, tx)
		longest := request(idempotency.CreditMovement(day), long(1024), "{}")
		longest.Scope, longest.Policy.Namespace = long(200), long(64)
		if _, err := f.Run(t.Context(), longest, unit(t.Context(), "k", ok("1"))); err != nil || f.rows(t) != 1 {
			t.Errorf("the longest: %v, %d keys", err, f.rows(t))
		}
	})
}

// Every byte of an answer comes back, and what is empty does not become NULL.
func TestAnswersComeBack(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	none := idempotency.Resource{}
	answers := map[string]idempotency.Answer{
		"nil":      {Status: 204},
		"empty":    {Status: 200, Body: []byte{}},
		"every":    {Status: 599, ContentType: "text/plain; charset=\"é\"", Body: every},
		"large":    {Status: 201, Body: []byte(strings.Repeat("x", 3<<20))},
		"headers":  {Status: 100, Header: map[string]string{"A": "", "B": "a\tb\u2028<é>"}, Body: []byte("1")},
		"resource": {Status: 999, Resource: idempotency.Resource{Kind: "é", ID: "1 "}},
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for name, a := range answers {
			p := idempotency.IETF(day) // it has no tombstone: that print is empty
			r := request(p, name, "")
			r.Facts, r.Body = nil, nil
			_, err := f.Run(t.Context(), r, unit(t.Context(), name, a))
			must(t, err)
			again, err := f.Run(t.Context(), r, never(t))
			must(t, err)
			got := again.Answer
			if got == nil || got.Body == nil || got.Status != a.Status || got.ContentType != a.ContentType ||
				string(got.Body) != string(a.Body) || got.Resource != a.Resource || fmt.Sprint(got.Header) != fmt.Sprint(a.Header) {
				t.Errorf("%s: %+v", name, again)
			}
			if again.AnswerExpired || !again.Record.Tombstone.IsZero() || again.Record.Print.IsZero() ||
				(again.Record.Resource == none) != (a.Resource == none) {
				t.Errorf("%s: %+v", name, again.Record)
			}
		}
	})
}

// An answer that the table cannot hold undoes the work.
func TestAnswersThatCannotBe(t *testing.T) {
	t.Parallel()
	answers := map[string]idempotency.Answer{
		"status": {Status: 7}, "half a resource": {Status: 200, Resource: idempotency.Resource{Kind: "x"}},
		"NUL": {Status: 200, ContentType: "a\x00"}, "no UTF-8": {Status: 200, Resource: idempotency.Resource{Kind: "\xff", ID: "1"}},
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for name, a := range answers {
			_, err := f.Run(t.Context(), request(idempotency.IETF(day), name, "{}"), unit(t.Context(), name, a))
			if err == nil || f.units(t, name) != 0 || f.rows(t) != 0 {
				t.Errorf("%s: %v, %d units, %d keys", name, err, f.units(t, name), f.rows(t))
			}
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		_, err := f.Run(t.Context(), request(idempotency.CreditMovement(day), "k", "{}"), unit(t.Context(), "k", ok("1")))
		must(t, err)
		must(t, f.migrate(t.Context()))
		if f.rows(t) != 1 {
			t.Error("migrating again changed the rows")
		}
		_, err = f.db.ExecContext(t.Context(), `INSERT INTO idempotency_migrations (number, name) VALUES (1000, 'later')`)
		must(t, err)
		if err := f.migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewer) {
			t.Errorf("got %v, want ErrNewer", err)
		}
	})
}

func (f *fixture) migrate(ctx context.Context) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, tx, f.source.Dialect); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Several processes that start at once all find the schema made.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		_, err := f.db.ExecContext(t.Context(), `DROP TABLE idempotency_keys`)
		_, err2 := f.db.ExecContext(t.Context(), `DROP TABLE idempotency_migrations`)
		must(t, errors.Join(err, err2))
		errs := make(chan error)
		for range 8 {
			other := &fixture{source: f.source, db: f.source.open(t)}
			go func() { errs <- other.migrate(t.Context()) }()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		var n int
		must(t, f.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM idempotency_migrations`).Scan(&n))
		if n != 1 || f.rows(t) != 0 {
			t.Errorf("%d migrations, %d keys", n, f.rows(t))
		}
	})
}

func TestNewRefusesHalfOptions(t *testing.T) {
	t.Parallel()
	db := newSource(t, sqlstore.SQLite).open(t)
	for name, o := range map[string]sqlstore.Options{
		"no DB": {Dialect: sqlstore.SQLite}, "no dialect": {DB: db}, "a dialect that is none": {DB: db, Dialect: 9},
		"Write alone":   {DB: db, Dialect: sqlstore.SQLite, Write: func(context.Context, func(*sql.Tx) error) error { return nil }},
		"Unknown alone": {DB: db, Dialect: sqlstore.SQLite, Unknown: func(error) bool { return false }},
	} {
		if s, err := sqlstore.New(o); err == nil || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
