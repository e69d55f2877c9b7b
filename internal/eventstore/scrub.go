package eventstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/actionpulse/actionpulse/internal/crash"
)

// filler is the table whose blocks take the place of what was given up.
const filler = "filler"

const (
	// fillStep is how many blocks of the file are filled while the writer
	// waits: 64 MiB.
	fillStep = 256
	// maxFills bounds the steps of one scrub: 1 TiB.
	maxFills = 16_384
	// pieceBytes is the size of one piece of a metadata block.
	pieceBytes = 4096
)

var errNeverFull = errors.New("blocks become free faster than they are overwritten")

// scrub overwrites every block of the file that is not in use, and every free
// piece of the blocks in which DuckDB keeps what it knows of its tables: the
// first eight characters of the least and the greatest text of a column stand
// there.
//
// What was given up before is in the list of free blocks once the last reader
// that could see it is gone and a checkpoint has been written; DuckDB fills
// free blocks before it makes the file longer.
func (s *Store) scrub(ctx context.Context) error {
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
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

// checkpoint moves the write-ahead log into the file and empties it.
func (s *Store) checkpoint(ctx context.Context) error {
	return s.writing(ctx, func() error {
		_, err := s.writer.Exec(context.WithoutCancel(ctx), "CHECKPOINT")
		return err
	})
}

// fill writes until no block is free, and a comment as long as the free pieces
// of metadata.
func (s *Store) fill(ctx context.Context) error {
	err := s.writing(ctx, func() error { return s.beginFill(ctx) })
	if err != nil {
		return err
	}
	for range maxFills {
		full := false
		err := s.writing(ctx, func() (err error) {
			full, err = s.fillSome(ctx)
			return err
		})
		if err != nil || full {
			return errors.Join(err, s.checkpoint(ctx))
		}
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

// fillSome fills up to fillStep free blocks and reports whether there was none.
func (s *Store) fillSome(ctx context.Context) (full bool, err error) {
	free, err := scalar(ctx, s.writer, `SELECT free_blocks::BIGINT FROM pragma_database_size()`)
	if err != nil || free == 0 {
		return true, err
	}
	size, err := scalar(ctx, s.writer, `SELECT block_size::BIGINT FROM pragma_database_size()`)
	if err != nil {
		return false, err
	}
	_, err = s.writer.Exec(context.WithoutCancel(ctx), `INSERT INTO `+filler+` SELECT hash(i) FROM range(?) r(i)`,
		min(free+1, fillStep)*size/8)
	return false, err
}
