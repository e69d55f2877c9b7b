package sqldb

import (
	"context"
	"database/sql"
)

// Often returns the reading connections for fixed texts that are asked for with
// nearly every request. SQLite's driver compiles a statement each time it is
// given its text, which takes longer than to run it: here each text is prepared
// once and kept. PostgreSQL's driver does so by itself.
func (d *DB) Often() DBTX {
	if d.reader == d.writer {
		return d.reader
	}
	return often{d.reader, &d.read}
}

// often is a reader that keeps what it has prepared.
type often struct {
	*sql.DB

	kept *preparations
}

// QueryRowContext implements DBTX.
func (o often) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if one := o.prepared(text); one != nil {
		return one.QueryRowContext(ctx, args...)
	}
	return o.DB.QueryRowContext(ctx, text, args...)
}

// QueryContext implements DBTX.
func (o often) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if one := o.prepared(text); one != nil {
		return one.QueryContext(ctx, args...)
	}
	return o.DB.QueryContext(ctx, text, args...)
}

// prepared returns the statement of a text, nil if it cannot be prepared now:
// then who asks says what is wrong with it.
func (o often) prepared(text string) *sql.Stmt {
	if one := o.kept.find(text); one != nil {
		return one
	}
	o.kept.keep(o.DB, map[string]*sql.Stmt{text: nil})
	return o.kept.find(text)
}
