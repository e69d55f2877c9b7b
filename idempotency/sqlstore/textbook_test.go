package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// textbook is how keys are often done, and why this package does not: look for
// the key, do the work, and insert the key last. looked is called between the
// look and the work.
type textbook struct {
	db     *sql.DB
	looked func()
}

var errDuplicateKey = errors.New("the key was inserted by another")

func (b textbook) run(ctx context.Context, key string, work func(*sql.Tx) error) (replayed bool, err error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // after COMMIT it says that there is nothing to undo
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM textbook WHERE k = $1`, key).Scan(&n); err != nil || n > 0 {
		return n > 0, err
	}
	b.looked()
	if err := work(tx); err != nil {
		return false, err
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO textbook (k) VALUES ($1) ON CONFLICT DO NOTHING`, key)
	if err != nil {
		return false, err
	}
	if inserted, err := done.RowsAffected(); inserted == 0 {
		return false, errors.Join(errDuplicateKey, err)
	}
	return false, tx.Commit()
}

func newTextbook(t *testing.T, d sqlstore.Dialect) (*fixture, textbook) {
	t.Helper()
	f := newFixture(t, d)
	_, err := f.db.ExecContext(t.Context(), `CREATE TABLE textbook (k text PRIMARY KEY)`)
	_, err2 := f.db.ExecContext(t.Context(), `INSERT INTO balance VALUES ('c1', 100)`)
	must(t, errors.Join(err, err2))
	return f, textbook{db: f.db, looked: func() {}}
}

// The contrast to TestWholeBalance: of eight equal requests that look before
// any of them has written, one is charged and seven hear of an insufficient
// balance for work that has succeeded.
func TestTextbookAnswersWrongly(t *testing.T) {
	t.Parallel()
	f, b := newTextbook(t, sqlstore.PostgreSQL)
	const requests = 8
	looked, begin := make(chan struct{}), make(chan struct{})
	b.looked = func() {
		looked <- struct{}{}
		<-begin
	}
	answers := make(chan error)
	for range requests {
		go func() {
			_, err := b.run(t.Context(), "k", func(tx *sql.Tx) error {
				_, err := charge100(t.Context(), tx)
				return err
			})
			answers <- err
		}()
	}
	for range requests {
		<-looked
	}
	close(begin)
	wrong := 0
	for range requests {
		if err := <-answers; errors.Is(err, errInsufficient) {
			wrong++
		} else if err != nil {
			t.Error(err)
		}
	}
	if wrong != requests-1 || f.units(t, "charge") != 1 {
		t.Errorf("%d wrong answers, %d entries: what makes the textbook form wrong is not there", wrong, f.units(t, "charge"))
	}
}
