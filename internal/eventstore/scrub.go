package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// filler is the table whose blocks take the place of what was given up.
const filler = "filler"

const (
	// fillStep is how many blocks of the file are filled while the writer
	// waits: 64 MiB.
	fillStep = 256
	// fillMore is how many blocks more than are free a step fills: what does not
	// make a whole row group is put together with its neighbours.
	fillMore = 8
	// spareFills is how many steps more than were needed at first there may be.
	spareFills = 16
	// pieceBytes is the size of one piece of a metadata block.
	pieceBytes = 4096
	// firstCheckpointWait is how long DuckDB has for clearing away before it is
	// asked for a checkpoint again; it doubles, up to lastCheckpointWait.
	firstCheckpointWait, lastCheckpointWait = time.Millisecond, 4 * time.Second
)

var errNeverFull = errors.New("blocks become free faster than they are overwritten")

// scrub overwrites every block of the file that is not in use, and every free
// piece of the blocks in which DuckDB keeps what it knows of its tables: the
// first eight characters of the least and the greatest text of a column stand
// there.
//
// What was given up before is in the list of free blocks once the last reader
// that could see it is gone and a checkpoint has been written, which DuckDB
// refuses before; it fills free blocks before it makes the file longer.
func (s *Store) scrub(ctx context.Context) error {
	if err := s.readers.turnOver(ctx); err != nil {
		return err
	}
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	crash.Point("eventstore.filled")
	err := s.writing(ctx, func() error {
		_, err := s.writer.Exec(context.WithoutCancel(ctx), `DROP TABLE `+filler)
		return err
	})
	if err != nil {
		return err
	}
	return s.checkpoint(ctx)
}

// checkpoint moves the write-ahead log into the file and empties it. DuckDB
// refuses that while a reader is older than the newest change of a table, and for
// a moment after, as long as it clears away what was kept for that reader. So it
// is asked again once those have gone who were there when it refused.
func (s *Store) checkpoint(ctx context.Context) error {
	for wait := firstCheckpointWait; ; wait *= 2 {
		err := s.writing(ctx, func() error {
			_, err := s.writer.Exec(context.WithoutCancel(ctx), "CHECKPOINT")
			return err
		})
		if wait > lastCheckpointWait || !duck.Busy(err) {
			return err
		}
		if err := s.readers.turnOver(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// fill writes until no block is free, and a comment as long as the free pieces
// of metadata.
func (s *Store) fill(ctx context.Context) error {
	err := s.writing(ctx, func() error { return s.beginFill(ctx) })
	if err != nil {
		return err
	}
	if err := s.checkpoint(ctx); err != nil { // which writes the comment
		return err
	}
	for left := int64(math.MaxInt64); left > 0; left-- {
		free := int64(0)
		err := s.writing(ctx, func() (err error) {
			free, err = s.fillSome(ctx)
			return err
		})
		if duck.Busy(err) {
			err = s.checkpoint(ctx)
		}
		if err != nil || free == 0 {
			return err
		}
		left = min(left, free/fillStep+spareFills)
	}
	return errNeverFull
}

// beginFill makes the table and its comment.
func (s *Store) beginFill(ctx context.Context) error {
	calm := context.WithoutCancel(ctx)
	pieces, err := scalar(ctx, s.writer, `SELECT coalesce(sum(free_blocks), 0)::BIGINT FROM pragma_metadata_info()`)
	if err != nil {
		return fmt.Errorf("count free metadata: %w", err)
	}
	comment := strings.Repeat("x", int(pieces+1)*pieceBytes)
	for _, statement := range []string{
		`CREATE TABLE ` + filler + ` (x UBIGINT NOT NULL)`,
		`COMMENT ON TABLE ` + filler + ` IS '` + comment + `'`,
	} {
		if _, err := s.writer.Exec(calm, statement); err != nil {
			return err
		}
	}
	return nil
}

// fillSome fills up to fillStep free blocks and returns how many were free
// before. DuckDB writes what does not make a whole row group when it checkpoints,
// which is before anybody else writes: a checkpoint of that would free other blocks.
func (s *Store) fillSome(ctx context.Context) (free int64, err error) {
	free, err = scalar(ctx, s.writer, `SELECT free_blocks::BIGINT FROM pragma_database_size()`)
	if err != nil || free == 0 {
		return free, err
	}
	size, err := scalar(ctx, s.writer, `SELECT block_size::BIGINT FROM pragma_database_size()`)
	if err != nil {
		return free, err
	}
	calm := context.WithoutCancel(ctx)
	_, err = s.writer.Exec(calm, `INSERT INTO `+filler+` SELECT hash(i) FROM range(?) r(i)`, (min(free, fillStep)+fillMore)*size/8)
	if err != nil {
		return free, err
	}
	_, err = s.writer.Exec(calm, "CHECKPOINT")
	return free, err
}
