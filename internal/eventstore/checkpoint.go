package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// alarmFactor times CheckpointBytes is where a write-ahead log that cannot be
// checkpointed is reported: it costs seconds at the next start.
const alarmFactor = 8

// WALBytes returns the size of DuckDB's write-ahead log.
func (s *Store) WALBytes() (int64, error) {
	info, err := os.Stat(s.opts.Path + walSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("size of the event store's log: %w", err)
	}
	return info.Size(), nil
}

// checkpointIfDue moves the write-ahead log into the database file once it has
// grown past CheckpointBytes. The batch is stored already, so only an
// invalidated database is an error; anything else is tried again after the
// next batch.
func (s *Store) checkpointIfDue(ctx context.Context) error {
	size, err := s.WALBytes()
	if err != nil {
		return err
	}
	if size < s.opts.CheckpointBytes {
		return nil
	}
	start := time.Now()
	_, err = s.writer.Exec(context.WithoutCancel(ctx), "CHECKPOINT")
	if err == nil {
		s.opts.Log.DebugContext(ctx, "event store checkpoint",
			slog.Int64("bytes", size), slog.Duration("took", time.Since(start)))
		return nil
	}
	err = classify(err)
	if errors.Is(err, ErrInvalidated) {
		return fmt.Errorf("checkpoint: %w", err)
	}
	level := slog.LevelDebug
	if size > alarmFactor*s.opts.CheckpointBytes {
		level = slog.LevelWarn
	}
	s.opts.Log.Log(ctx, level, "event store could not be checkpointed", slog.Int64("bytes", size), slog.Any("error", err))
	return nil
}
