package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/record"
)

// erasureMemory is how long it is known that an erasure was applied: whoever
// asked for it has looked by then.
const erasureMemory = 35 * 24 * time.Hour

// recall reads what the writer keeps in mind.
func (s *Store) recall(ctx context.Context) (err error) {
	if s.usageRows, err = scalar(ctx, s.writer, `SELECT count(*) FROM usage`); err != nil {
		return err
	}
	s.usageLimit = usageSlack
	s.keepsFrom, err = scalar(ctx, s.writer, `SELECT coalesce(min(received), ?) FROM (
		SELECT received FROM erased_claims UNION ALL SELECT received FROM erasures)`, int64(math.MaxInt64))
	return err
}

// keepFrom notes that claims from a receipt time on are being kept.
func (s *Store) keepFrom(received int64) { s.keepsFrom = min(s.keepsFrom, received) }

// forget drops the claims of erased rows whose window has passed by the time
// of a record, a little late so that it is not at every batch, and with them
// what is known of old erasures.
func (s *Store) forget(ctx context.Context, received, window int64) error {
	since := received - window
	if s.keepsFrom >= since-window/8 {
		return nil
	}
	for _, table := range []struct {
		name   string
		before int64
	}{
		{"erased_claims", since}, {"erasures", received - erasureMemory.Milliseconds()}, {"taken_spans", received - erasureMemory.Milliseconds()},
	} {
		if _, err := s.writer.Exec(ctx, `DELETE FROM `+table.name+` WHERE received < ?`, table.before); err != nil {
			return fmt.Errorf("forget %s: %w", table.name, err)
		}
	}
	s.keepsFrom = since
	return nil
}

// ClaimsKept returns the receipt time, in milliseconds since 1970, from which
// on the claim of every row that was erased is kept.
func (n *Snapshot) ClaimsKept() int64 { return n.mark.Received - n.window }

// Claims calls fn with each claimed identity that was received at or after
// since, in milliseconds since 1970, in order of position and therefore of
// receipt. Rows that were erased and quarantined items hold their claims too
// and are included. It stops at fn's first error and returns it.
func (n *Snapshot) Claims(ctx context.Context, since int64, fn func(id record.Identity, received int64, fingerprint uint32) error) error {
	aside, err := n.quarantinedClaims(ctx, since)
	if err != nil {
		return fmt.Errorf("read claims: %w", classify(err))
	}
	rows, err := n.conn.Stream(ctx, `
		SELECT seq, project, key_kind, event_id, received, fingerprint FROM events WHERE claimed AND received >= $1
		UNION ALL
		SELECT seq, project, key_kind, event_id, received, fingerprint FROM erased_claims WHERE received >= $1
		ORDER BY seq`, since)
	if err != nil {
		return fmt.Errorf("read claims: %w", classify(err))
	}
	for rows.Next() {
		seq := uint64(rows.Int64(0))
		for len(aside) > 0 && aside[0].Position < seq {
			if err := aside[0].claim(fn); err != nil {
				return errors.Join(err, rows.Close())
			}
			aside = aside[1:]
		}
		id := record.Identity{Project: rows.Uint32(1), KeyKind: record.KeyKind(rows.Uint8(2)), EventID: rows.UUID(3)}
		if err := fn(id, rows.Int64(4), rows.Uint32(5)); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if err := rows.Close(); err != nil {
		return fmt.Errorf("read claims: %w", classify(err))
	}
	for i := range aside {
		if err := aside[i].claim(fn); err != nil {
			return err
		}
	}
	return nil
}

// quarantinedClaims returns the quarantined items that hold a claim.
func (n *Snapshot) quarantinedClaims(ctx context.Context, since int64) ([]Quarantined, error) {
	var claimed []Quarantined
	for after := uint64(0); ; {
		page, err := listQuarantined(ctx, n.conn, after, redrivePage)
		if err != nil || len(page) == 0 {
			return claimed, err
		}
		for i := range page {
			if page[i].Record.Items[0].Claimed && page[i].Record.Received >= since {
				claimed = append(claimed, page[i])
			}
		}
		after = page[len(page)-1].Position
	}
}

func (q *Quarantined) claim(fn func(record.Identity, int64, uint32) error) error {
	it := &q.Record.Items[0]
	id := record.Identity{Project: q.Record.Project, KeyKind: q.Record.KeyKind, EventID: it.EventID}
	return fn(id, q.Record.Received, it.Fingerprint)
}
