package eventstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/actionpulse/actionpulse/internal/crash"
)

// upgrade brings a file of an earlier schema version to this one, in one
// transaction: a process that dies meanwhile leaves the earlier version. It
// returns ErrSchema for a version that it does not know.
func (s *Store) upgrade(ctx context.Context) error {
	version, err := scalar(ctx, s.writer, `SELECT schema_version::BIGINT FROM mark`)
	if err != nil {
		return err
	}
	switch version {
	case schemaVersion:
		return nil
	case 1:
	default:
		return fmt.Errorf("%w: %d, this program knows %d", ErrSchema, version, schemaVersion)
	}
	err = transaction(ctx, s.writer, func() error {
		for _, statement := range secondSchema {
			if _, err := s.writer.Exec(ctx, statement); err != nil {
				return err
			}
		}
		if _, err := s.writer.Exec(ctx, usageOfRows); err != nil {
			return fmt.Errorf("count what is stored: %w", err)
		}
		mark, window, err := readMark(ctx, s.writer)
		if err != nil {
			return err
		}
		crash.Point("eventstore.upgrading")
		return writeMark(ctx, s.writer, mark, window)
	})
	if err != nil {
		return fmt.Errorf("upgrade from schema version %d: %w", version, classify(err))
	}
	crash.Point("eventstore.upgraded")
	s.opts.Log.InfoContext(ctx, "the event store was upgraded", "from", version, "to", schemaVersion)
	return nil
}

// usageOfRows counts what is there as it would have been counted when it was
// stored: the bytes are those of the encoded items (record.EncodedSize), whose
// every part is in its row.
var usageOfRows = fmt.Sprintf(`
INSERT INTO usage
SELECT project, (year(moment) * 100 + month(moment))::UINTEGER, count(*), sum(bytes)::BIGINT
FROM (
	SELECT project, make_timestamp(received * 1000) AS moment,
		%d + coalesce(%s, 0) + %s + %s + %s + %s + coalesce(%s, 0) + coalesce(%s, 0) AS bytes
	FROM events
)
GROUP BY ALL`,
	encodedFixed, encodedTime("client_ts"),
	encodedText("event"), encodedText("coalesce(anon_id, '')"), encodedText("coalesce(user_id, '')"), encodedText("coalesce(session_id, '')"),
	encodedText("properties"), encodedText("context"))

// encodedFixed is the size of type, flags, id and fingerprint of an item.
const encodedFixed = 1 + 1 + 16 + 4

// encodedText is the size of a text and of its length before it; NULL if there
// is none.
func encodedText(text string) string {
	return fmt.Sprintf("(strlen(%s) + %s)", text, encodedNumber("strlen("+text+")"))
}

// encodedTime is the size of a signed number, whose sign goes to its end.
func encodedTime(column string) string {
	return encodedNumber(fmt.Sprintf("(CASE WHEN %s < 0 THEN -2 * %s - 1 ELSE 2 * %s END)", column, column, column))
}

// encodedNumber is the size of a number below 2^63 in groups of seven bits;
// NULL for NULL.
func encodedNumber(number string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "(CASE WHEN %s IS NULL THEN NULL", number)
	for groups := 1; groups < 9; groups++ {
		fmt.Fprintf(&b, " WHEN %s < %d THEN %d", number, int64(1)<<(7*groups), groups)
	}
	b.WriteString(" ELSE 9 END)")
	return b.String()
}
