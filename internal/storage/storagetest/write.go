package storagetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

func testWrite(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *sqldb.DB){
		"a failure writes nothing":              testWriteFails,
		"a panic writes nothing":                testWritePanics,
		"a cancelled caller writes nothing":     testWriteCancelled,
		"a commit under way is not cancelled":   testWriteCancelledLate,
		"what is committed can be read at once": testWriteVisible,
		"writers at once do not lose updates":   testWriteConcurrently,
		"a statement that fails, fails alone":   testWriteGoesOn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, New(t, open))
		})
	}
}

// next takes the next project number.
func next(ctx context.Context, t testing.TB, db *sqldb.DB) int64 {
	t.Helper()
	var n int64
	err := db.Write(ctx, func(q *sqldb.Queries) (err error) {
		n, err = q.NextNumber(ctx, sqldb.CounterProject)
		return err
	})
	if err != nil {
		t.Errorf("take a number: %v", err)
	}
	return n
}

// mustBeFirst checks that nothing took a number before.
func mustBeFirst(t *testing.T, db *sqldb.DB) {
	t.Helper()
	if n := next(t.Context(), t, db); n != 1 {
		t.Errorf("the next number is %d, want 1: something was written", n)
	}
}

func testWriteFails(t *testing.T, db *sqldb.DB) {
	want := errors.New("refused")
	err := db.Write(t.Context(), func(q *sqldb.Queries) error {
		if _, err := q.NextNumber(t.Context(), sqldb.CounterProject); err != nil {
			return err
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	mustBeFirst(t, db)
}

func testWritePanics(t *testing.T, db *sqldb.DB) {
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic did not reach the caller")
			}
		}()
		err := db.Write(t.Context(), func(q *sqldb.Queries) error {
			if _, err := q.NextNumber(t.Context(), sqldb.CounterProject); err != nil {
				return err
			}
			panic("boom")
		})
		t.Errorf("returned %v", err)
	}()
	mustBeFirst(t, db)
}

func testWriteCancelled(t *testing.T, db *sqldb.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Write(ctx, func(*sqldb.Queries) error {
		t.Error("a cancelled caller's function ran")
		return nil
	})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeUnavailable || f.Details["applied"] != false || !errors.Is(err, context.Canceled) {
		t.Errorf("before it began: got %v, want unavailable, applied false", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = db.Write(ctx, func(q *sqldb.Queries) error {
		if _, err := q.NextNumber(ctx, sqldb.CounterProject); err != nil {
			return err
		}
		cancel()
		_, err := q.NextNumber(ctx, sqldb.CounterProject)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("in the middle: got %v, want context.Canceled", err)
	}
	mustBeFirst(t, db)
}

func testWriteCancelledLate(t *testing.T, db *sqldb.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Write(ctx, func(q *sqldb.Queries) error {
		_, err := q.NextNumber(ctx, sqldb.CounterProject)
		cancel()
		return err
	})
	if err != nil {
		t.Errorf("got %v, want a commit", err)
	}
	if n := next(t.Context(), t, db); n != 2 {
		t.Errorf("the next number is %d, want 2", n)
	}
}

func testWriteVisible(t *testing.T, db *sqldb.DB) {
	for range 20 {
		n := next(t.Context(), t, db)
		seen, err := db.Read().GetCounter(t.Context(), sqldb.CounterProject)
		if err != nil || seen != n {
			t.Fatalf("read %d, %v after writing %d", seen, err, n)
		}
	}
}

func testWriteConcurrently(t *testing.T, db *sqldb.DB) {
	const writers, each = 16, 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []int64
	for range writers {
		wg.Go(func() {
			for range each {
				n := next(t.Context(), t, db)
				mu.Lock()
				got = append(got, n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	for i, n := range got {
		if n != int64(i+1) {
			t.Fatalf("the numbers are %v, want 1 to %d, each once", got, writers*each)
		}
	}
}

func testWriteGoesOn(t *testing.T, db *sqldb.DB) {
	broken := func(q *sqldb.Queries) error {
		return q.CreateOrganization(t.Context(), sqldb.CreateOrganizationParams{ID: "short", Name: "x"})
	}
	for range 5 {
		if err := db.Write(t.Context(), broken); err == nil {
			t.Fatal("a row that breaks a constraint was written")
		}
	}
	mustBeFirst(t, db)
}
