package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Snapshot is the store as one commit left it, held for a copy while others go
// on writing.
type Snapshot struct {
	dialect dialect
	pool    *sql.DB
	conn    *sql.Conn
	// name is what the engine calls it for others, empty on SQLite.
	name     string
	identity [16]byte
}

// CopyParams say where a snapshot is copied to.
type CopyParams struct {
	// Path is the file that is made; it must not exist.
	Path string
	// Tool is the program pg_dump, for PostgreSQL; empty means the one in PATH.
	Tool string
	// Progress is told how many bytes of how many have been copied, if the
	// engine says so.
	Progress func(done, all int64)
}

// OpenSnapshot opens a snapshot of an existing store, which may be in use by
// another process. It changes nothing of what is stored, the schema included;
// on SQLite it may bring into the file what a killed process has left beside
// it. ErrMissing says that there is no store, ErrNewer that this program does not
// know it. The snapshot must be closed.
func OpenSnapshot(ctx context.Context, o Options) (*Snapshot, error) {
	dialect, err := dialectOf(o)
	if err != nil {
		return nil, err
	}
	if err := dialect.present(); err != nil {
		return nil, err
	}
	s := &Snapshot{dialect: dialect}
	if s.pool, err = dialect.observer(); err != nil {
		return nil, err
	}
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", dialect, err), s.pool.Close())
	}
	if err = s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("take a snapshot of %s: %w", dialect, err), s.Close())
	}
	return s, nil
}

func (s *Snapshot) begin(ctx context.Context) (err error) {
	if s.name, err = s.dialect.snapshot(ctx, s.conn); err != nil {
		return err
	}
	made, err := s.has(ctx, migrationsTable)
	if err == nil && !made {
		err = fmt.Errorf("%w: it has no tables", ErrMissing)
	}
	if err == nil {
		s.identity, err = readIdentity(ctx, s.conn, s.dialect)
	}
	return err
}

func (s *Snapshot) has(ctx context.Context, table string) (bool, error) {
	var n int
	if err := s.conn.QueryRowContext(ctx, s.dialect.hasTable(), table).Scan(&n); err != nil {
		return false, fmt.Errorf("look for the table %s: %w", table, err)
	}
	return n > 0, nil
}

// Identity returns the 16 bytes the store was created with.
func (s *Snapshot) Identity() [16]byte { return s.identity }

// ListReplayBlobs returns at most so many names of blobs that chunks of session
// replays have, in order, after one. A store from before there were any has
// none.
func (s *Snapshot) ListReplayBlobs(ctx context.Context, after string, limit int) (names []string, err error) {
	there, err := s.has(ctx, "replay_chunks")
	if err != nil || !there {
		return nil, err
	}
	// Of an earlier version's table no other column need be there.
	rows, err := s.conn.QueryContext(ctx, `SELECT blob FROM replay_chunks WHERE blob > $1 ORDER BY blob LIMIT $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list the blobs of replays: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list the blobs of replays: %w", err)
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// FindReplayPlace returns the id of the folder or bucket that holds these blobs, and
// whether any does yet.
func (s *Snapshot) FindReplayPlace(ctx context.Context) (id [16]byte, found bool, err error) {
	there, err := s.has(ctx, "replay_place")
	if err != nil || !there {
		return id, false, err
	}
	var text []byte
	err = s.conn.QueryRowContext(ctx, `SELECT id FROM replay_place`).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return id, false, nil
	case err != nil:
		return id, false, fmt.Errorf("read where the blobs of replays are: %w", err)
	case len(text) != len(id):
		return id, false, fmt.Errorf("the id of the place of blobs has %d bytes", len(text))
	}
	return [16]byte(text), true, nil
}

// CopyTo writes the snapshot into a file: a store of its own on SQLite, a dump
// on PostgreSQL.
func (s *Snapshot) CopyTo(ctx context.Context, p CopyParams) error {
	if err := s.dialect.copySnapshot(ctx, s, p); err != nil {
		return fmt.Errorf("copy %s: %w", s.dialect, err)
	}
	return nil
}

// Close lets the snapshot go.
func (s *Snapshot) Close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(append(errs, s.pool.Close())...)
}

// LoadParams say which dump is loaded into which database.
type LoadParams struct {
	// URL is that of an empty database of PostgreSQL.
	URL string
	// Path is a file that a Snapshot was copied to.
	Path string
	// Tool is the program pg_restore; empty means the one in PATH.
	Tool string
}

// LoadDump fills an empty database of PostgreSQL from a dump, in one
// transaction: all of it is there afterwards, or nothing. ErrExists: there is a
// store already, ErrNotEmpty: there is something else; nothing was changed.
func LoadDump(ctx context.Context, p LoadParams) error {
	if err := CheckEmpty(ctx, p.URL); err != nil {
		return err
	}
	return loadDump(ctx, p)
}

// relationOfSomebody finds something in a database that neither PostgreSQL nor an
// extension has put there.
const relationOfSomebody = `SELECT COALESCE(MIN(n.nspname || '.' || c.relname), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

// CheckEmpty returns ErrExists if a database of PostgreSQL has a store, and
// ErrNotEmpty if there is anything else in it.
func CheckEmpty(ctx context.Context, url string) error {
	d, err := newPostgresDialect(url)
	if err != nil {
		return err
	}
	pool, err := d.observer()
	if err != nil {
		return err
	}
	var n int
	var foreign string
	err = pool.QueryRowContext(ctx, d.hasTable(), migrationsTable).Scan(&n)
	if err == nil && n == 0 {
		err = pool.QueryRowContext(ctx, relationOfSomebody).Scan(&foreign)
	}
	if err := errors.Join(err, pool.Close()); err != nil {
		return fmt.Errorf("look for tables in %s: %w", d, err)
	}
	if n > 0 {
		return fmt.Errorf("%w in %s", ErrExists, d)
	}
	if foreign != "" {
		return fmt.Errorf("%w: %s holds %s", ErrNotEmpty, d, foreign)
	}
	return nil
}
