package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// Statement is one statement of a batch.
type Statement struct {
	Text string
	Args []any
	// Row is called for each row that the statement returns; nil if it returns
	// none that matter.
	Row func(scan func(dest ...any) error) error
}

// Batch is a transaction that runs statements in batches: on PostgreSQL they
// travel together and are answered together, on SQLite each text is prepared
// once.
type Batch struct {
	dialect dialect
	conn    *sql.Conn
	tx      *sql.Tx
	// known are statements prepared before, made those of this transaction.
	known *preparations
	made  map[string]*sql.Stmt
}

// WriteBatch is Write for those who do the same to many rows, again and again.
func (d *DB) WriteBatch(ctx context.Context, fn func(*Batch) error) error {
	var made map[string]*sql.Stmt
	err := d.write(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		made = map[string]*sql.Stmt{}
		return fn(&Batch{dialect: d.dialect, conn: conn, tx: tx, known: &d.prepared, made: made})
	})
	if err == nil {
		d.prepared.keep(d.writer, made)
	}
	return err
}

// preparations are the statements of batches on SQLite, which has one
// connection that writes.
type preparations struct {
	mu     sync.RWMutex
	byText map[string]*sql.Stmt
}

func (p *preparations) find(text string) *sql.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byText[text]
}

// keep prepares for later what a transaction had to prepare for itself. It is
// called when the connection is free. What cannot be prepared now will be
// prepared again by the next transaction, which says what is wrong with it.
func (p *preparations) keep(db *sql.DB, made map[string]*sql.Stmt) {
	for text := range made {
		one, err := db.PrepareContext(context.Background(), text)
		if err != nil {
			continue
		}
		p.mu.Lock()
		if p.byText[text] != nil { // by another meanwhile
			_ = one.Close() // nobody uses it
			p.mu.Unlock()
			continue
		}
		if p.byText == nil {
			p.byText = map[string]*sql.Stmt{}
		}
		p.byText[text] = one
		p.mu.Unlock()
	}
}

// close closes the statements.
func (p *preparations) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, one := range p.byText {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// Queries returns queries that run in the batch's transaction, one by one.
func (b *Batch) Queries() *Queries { return New(b.tx) }

// Tx returns the batch's transaction.
func (b *Batch) Tx() *sql.Tx { return b.tx }

// Locking returns a SELECT that keeps others from changing the rows it finds
// until the transaction ends.
func (b *Batch) Locking(text string) string { return text + b.dialect.forUpdate() }

// Sharing returns a SELECT that keeps others from changing the rows it finds,
// but not from the same, until the transaction ends.
func (b *Batch) Sharing(text string) string { return text + b.dialect.forShare() }

// Claiming returns a SELECT that locks the rows it finds and passes over those
// that others have locked.
func (b *Batch) Claiming(text string) string { return text + b.dialect.forUpdateSkipping() }

// Rows is a statement about many rows.
type Rows = keystore.Rows

// Rows returns the statements to run for many rows. On SQLite, where a
// statement crosses no network, each is about one.
func (b *Batch) Rows(r Rows) []Statement {
	list := r.Statements(b.dialect.rowsAtOnce())
	out := make([]Statement, len(list))
	for i, one := range list {
		out[i] = Statement(one)
	}
	return out
}

// Run runs statements in order. The first one that fails ends the batch, and
// the transaction cannot be committed any more.
func (b *Batch) Run(ctx context.Context, statements []Statement) error {
	if len(statements) == 0 {
		return nil
	}
	return b.dialect.batch(ctx, b, statements)
}

// forUpdate is nothing: a transaction that writes has the store for itself.
func (s sqliteDialect) forUpdate() string { return "" }

func (s sqliteDialect) forShare() string { return "" }

func (s sqliteDialect) forUpdateSkipping() string { return "" }

func (s sqliteDialect) rowsAtOnce() int { return 1 }

// batch runs the statements one by one; there is no network to cross.
func (s sqliteDialect) batch(ctx context.Context, b *Batch, statements []Statement) error {
	for i := range statements {
		one := &statements[i]
		prepared, err := b.prepare(ctx, one.Text)
		if err != nil {
			return fmt.Errorf("statement %d of a batch: %w", i, err)
		}
		if err := runPrepared(ctx, prepared, one); err != nil {
			return fmt.Errorf("statement %d of a batch: %w", i, err)
		}
	}
	return nil
}

// prepare returns a text prepared for the transaction, which closes it.
func (b *Batch) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if here, ok := b.made[text]; ok {
		return here, nil
	}
	if known := b.known.find(text); known != nil {
		return b.tx.StmtContext(ctx, known), nil
	}
	made, err := b.tx.PrepareContext(ctx, text)
	if err == nil {
		b.made[text] = made
	}
	return made, err
}

func runPrepared(ctx context.Context, prepared *sql.Stmt, one *Statement) (err error) {
	if one.Row == nil {
		_, err := prepared.ExecContext(ctx, one.Args...)
		return err
	}
	rows, err := prepared.QueryContext(ctx, one.Args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := one.Row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (p postgresDialect) forUpdate() string { return " FOR UPDATE" }

func (p postgresDialect) forShare() string { return " FOR SHARE" }

func (p postgresDialect) rowsAtOnce() int { return 64 }

func (p postgresDialect) forUpdateSkipping() string { return " FOR UPDATE SKIP LOCKED" }

// batch sends the statements together.
func (p postgresDialect) batch(ctx context.Context, b *Batch, statements []Statement) error {
	return b.conn.Raw(func(driver any) error {
		conn, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("a connection to PostgreSQL is a %T", driver)
		}
		var batch pgx.Batch
		for i := range statements {
			batch.Queue(statements[i].Text, statements[i].Args...)
		}
		results := conn.Conn().SendBatch(ctx, &batch)
		for i := range statements {
			if err := readResult(results, &statements[i]); err != nil {
				return errors.Join(fmt.Errorf("statement %d of a batch: %w", i, err), results.Close())
			}
		}
		return results.Close()
	})
}

func readResult(results pgx.BatchResults, one *Statement) error {
	if one.Row == nil {
		_, err := results.Exec()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := one.Row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
