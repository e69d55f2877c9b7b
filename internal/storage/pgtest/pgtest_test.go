package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := New(t), New(t)
	for _, url := range []string{first, second} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (id bigint)"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A template is filled once, however many ask for it, and its copies have
// nothing to do with each other.
func TestCopiesOfATemplate(t *testing.T) {
	t.Parallel()
	filled := 0
	template := NewTemplate(func(url string) error {
		filled++
		return run(url, "CREATE TABLE mine (id bigint); INSERT INTO mine VALUES (1)")
	})
	for range 3 {
		// Fails where the table is missing, or has more than its one row.
		if err := run(template.New(t), "INSERT INTO mine SELECT 1 / (2 - count(*)) + count(*) FROM mine; ALTER TABLE mine ADD UNIQUE (id)"); err != nil {
			t.Error(err)
		}
	}
	if filled != 1 {
		t.Errorf("filled %d times", filled)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/usr/lib/postgresql/9/bin/postgres":      9,
		"/usr/lib/postgresql/15/bin/postgres":     15,
		"/usr/lib/postgresql/custom/bin/postgres": 0,
	} {
		if got := version(path); got != want {
			t.Errorf("version(%s) = %d, want %d", path, got, want)
		}
	}
}
