package duck

import (
	"context"
	"errors"
	"fmt"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// interruptEvery is how often a cancelled call is interrupted until it ends.
// DuckDB forgets an interrupt that arrives before the call has begun.
const interruptEvery = 5 * time.Millisecond

// Conn is one connection. Its methods must not be called concurrently.
type Conn struct {
	handle bindings.Connection
}

// Close closes the connection; an open transaction is rolled back.
func (c *Conn) Close() { bindings.Disconnect(&c.handle) }

// Exec runs one statement and returns the number of rows it changed. Arguments
// are int64, uint64, float64, bool, string or []byte, or nil.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	rows, err := c.run(ctx, query, args, bindings.ExecutePrepared)
	if err != nil {
		return 0, err
	}
	changed := int64(bindings.RowsChanged(&rows.result))
	return changed, rows.Close()
}

// Query runs one statement and returns its rows, computed as a whole before
// the first is returned. The caller must close them.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	return c.run(ctx, query, args, bindings.ExecutePrepared)
}

// Stream is Query for large results: rows are computed as they are read, and
// nothing else may run on the connection until they are closed.
func (c *Conn) Stream(ctx context.Context, query string, args ...any) (*Rows, error) {
	return c.run(ctx, query, args, bindings.ExecutePreparedStreaming)
}

type execute func(bindings.PreparedStatement, *bindings.Result) bindings.State

func (c *Conn) run(ctx context.Context, query string, args []any, execute execute) (*Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	rows := &Rows{conn: c, ctx: ctx}
	err := c.interruptible(ctx, func() error {
		if bindings.Prepare(c.handle, query, &rows.stmt) == bindings.StateError {
			return &Error{Type: bindings.ErrorTypeInvalid, Message: bindings.PrepareError(rows.stmt)}
		}
		if err := bind(rows.stmt, args); err != nil {
			return err
		}
		if execute(rows.stmt, &rows.result) == bindings.StateError {
			return rows.failure()
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	rows.columns = make([]column, bindings.ColumnCount(&rows.result))
	return rows, nil
}

// interruptible runs fn, which calls into DuckDB, and makes that call end
// soon after ctx does. It returns only when nothing interrupts any more, so
// that the connection's next call is not hit.
func (c *Conn) interruptible(ctx context.Context, fn func() error) error {
	if ctx.Done() == nil {
		return fn()
	}
	done, idle := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(idle)
		c.interruptUntil(done)
	})
	err := fn()
	close(done)
	if !stop() {
		<-idle
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

func (c *Conn) interruptUntil(done <-chan struct{}) {
	tick := time.NewTicker(interruptEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		default:
			bindings.Interrupt(c.handle)
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

func bind(stmt bindings.PreparedStatement, args []any) error {
	for i, arg := range args {
		n := bindings.IdxT(i + 1)
		var state bindings.State
		switch v := arg.(type) {
		case nil:
			state = bindings.BindNull(stmt, n)
		case bool:
			state = bindings.BindBoolean(stmt, n, v)
		case int64:
			state = bindings.BindInt64(stmt, n, v)
		case uint64:
			state = bindings.BindUInt64(stmt, n, v)
		case float64:
			state = bindings.BindDouble(stmt, n, v)
		case string:
			state = bindings.BindVarcharLength(stmt, n, v, bindings.IdxT(len(v)))
		case []byte:
			state = bindings.BindBlob(stmt, n, v)
		default:
			return fmt.Errorf("bind argument %d: unsupported type %T", i+1, arg)
		}
		if state == bindings.StateError {
			return &Error{Type: bindings.ErrorTypeInvalidInput, Message: bindings.PrepareError(stmt)}
		}
	}
	return nil
}
