package actionpulse

import (
	"context"
	"errors"
	"log/slog"
)

// Flush sends what was tracked before it without waiting for more, and returns
// when the server has judged all of it. It returns the error of ctx, or a
// *PausedError when sending rests. Records of other kinds, for which there is
// no key, are not waited for.
func (t *Tracker) Flush(ctx context.Context) error {
	t.mu.Lock()
	upTo := make([]uint64, len(t.lanes))
	for i, l := range t.lanes {
		upTo[i] = l.queue.State().Last
		if ctx.Err() == nil {
			l.flushTo = max(l.flushTo, upTo[i])
		}
	}
	t.mu.Unlock()
	t.rouse()
	for {
		moved, left, paused := t.unsent(upTo)
		if !left || paused != nil {
			return paused
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unsent reports whether records up to some numbers are left, whether sending
// them rests, and what is closed when that may have changed.
func (t *Tracker) unsent(upTo []uint64) (moved <-chan struct{}, left bool, paused error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, l := range t.lanes {
		if s := l.queue.State(); l.key == "" || s.Records == 0 || s.Done >= upTo[i] {
			continue
		}
		left = true
		if l.resting() {
			paused = errors.Join(paused, l.pause)
		}
	}
	return t.moved, left, paused
}

// Close sends what there is, as Flush does, and ends the tracker. When ctx is
// done first, or sending rests, it returns a *LeftError: in a folder the rest
// waits for the next tracker, in memory it is lost and reported. A second call
// returns ErrTrackerClosed.
func (t *Tracker) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrTrackerClosed
	}
	t.closed = true
	t.mu.Unlock()
	t.taking.Wait()
	cause := t.Flush(ctx)
	t.stop()
	<-t.done
	left := t.Stats().Pending
	if t.box == nil {
		t.abandon()
	}
	err := t.closeOutbox()
	if t.own {
		t.send.http.CloseIdleConnections()
	}
	if left == 0 || cause == nil {
		return err
	}
	t.o.Logger.Warn("actionpulse: the tracker is closed with records unsent", slog.Int("records", left), slog.Bool("kept", t.box != nil))
	return errors.Join(&LeftError{Records: left, Kept: t.box != nil, Err: cause}, err)
}

// abandon reports what an outbox in memory still holds.
func (t *Tracker) abandon() {
	records, err := t.main.queue.Peek(everything)
	if err != nil {
		return
	}
	for _, r := range records {
		t.gaveUp(t.main, r, GaveUpClosed)
	}
}

func (t *Tracker) closeOutbox() error {
	if t.box == nil {
		return nil
	}
	return t.box.Close()
}
