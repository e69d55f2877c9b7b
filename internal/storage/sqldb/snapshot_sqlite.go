package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
)

// copyPages is how much of a file is copied between two looks at the context:
// 8 MB of the usual pages.
const copyPages = 2048

// observer is one connection that only reads. The file may be another
// process's at the same time.
func (s sqliteDialect) observer() (*sql.DB, error) {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return nil, fmt.Errorf("find the path of the store: %w", err)
	}
	return openSQLite(path, 1, url.Values{"mode": {"rw"}, "_busy_timeout": {busyTimeout}, "_query_only": {"1"}})
}

// snapshot begins a transaction whose first read fixes what it sees. It ends
// with the connection.
func (s sqliteDialect) snapshot(ctx context.Context, conn *sql.Conn) (string, error) {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return "", err
	}
	var n int
	return "", conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&n)
}

// copySnapshot uses SQLite's own way to copy a file in use. It reads within
// the transaction of its connection, so it does not begin anew when somebody
// writes.
func (s sqliteDialect) copySnapshot(ctx context.Context, from *Snapshot, p CopyParams) error {
	path, err := filepath.Abs(p.Path)
	if err != nil {
		return err
	}
	return from.conn.Raw(func(driver any) error {
		source, ok := driver.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the driver does not copy")
		}
		to := url.URL{Scheme: "file", Path: path}
		b, err := source.NewBackup(to.String())
		if err != nil {
			return err
		}
		return errors.Join(stepThrough(ctx, b, p.Progress), b.Finish())
	})
}

func stepThrough(ctx context.Context, b *sqlite.Backup, progress func(done, all int64)) error {
	const page = 4096
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if more, err = b.Step(copyPages); err != nil {
			return err
		}
		if progress != nil {
			all := int64(b.PageCount())
			progress((all-int64(b.Remaining()))*page, all*page)
		}
	}
	return nil
}
