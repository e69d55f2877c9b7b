package sqldb

import (
	"context"
	"fmt"
	"time"
)

const (
	// channel is what processes that share a database tell one another by that
	// something was changed. It carries no more than that.
	channel = "actionpulse_changed"

	// listenDelay is the wait before the first attempt to listen again; it
	// doubles up to listenMaxDelay.
	listenDelay    = 100 * time.Millisecond
	listenMaxDelay = 10 * time.Second
	// listenCheck is how often a silent connection is asked whether it lives.
	listenCheck = 30 * time.Second
)

// Announce tells the other processes that share the store that something they
// may have cached was changed. It is called after the change is committed.
// With SQLite there are no others.
func (d *DB) Announce(ctx context.Context) error {
	statement := d.dialect.announce()
	if statement == "" {
		return nil
	}
	if _, err := d.writer.ExecContext(ctx, statement, channel); err != nil {
		return fmt.Errorf("announce a change in %s: %w", d.dialect, err)
	}
	return nil
}

// Listen calls changed for each announcement until the context ends, and
// whenever it begins to listen, also again: what was announced in between was
// not heard. It calls lost, if not nil, with what has ended a connection or
// kept one from being made. With SQLite it hears nothing and waits. It returns
// why the context has ended.
func (d *DB) Listen(ctx context.Context, changed func(), lost func(error)) error {
	delay := listenDelay
	for ctx.Err() == nil {
		began := false
		err := d.dialect.listen(ctx, func() {
			began = true
			changed()
		})
		if ctx.Err() != nil {
			break
		}
		if lost != nil {
			lost(fmt.Errorf("listen to %s: %w", d.dialect, err))
		}
		if began {
			delay = listenDelay
		}
		if wait(ctx, delay) != nil {
			break
		}
		delay = min(2*delay, listenMaxDelay)
	}
	return context.Cause(ctx)
}
