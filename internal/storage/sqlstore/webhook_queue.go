package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// DueEndpoints implements webhook.Queue.
func (s *Store) DueEndpoints(ctx context.Context, now time.Time) ([]string, error) {
	all, err := s.db.Read().ListDueWebhookEndpoints(ctx, sqldb.NullTime(now))
	if err != nil {
		return nil, fmt.Errorf("find due webhook deliveries: %w", err)
	}
	slices.Sort(all) // byte by byte, whatever the engine's collation
	return all, nil
}

// The statements of a claim. They are not generated, because what is locked is
// passed over on one engine and cannot be locked on the other.
const (
	findDueDeliveriesText = `SELECT number FROM webhook_deliveries
WHERE endpoint_id = $1 AND state = 'pending' AND next_attempt_at <= $2
ORDER BY next_attempt_at, number LIMIT $3`

	claimDeliveryText = `UPDATE webhook_deliveries
SET epoch = epoch + 1, attempts = attempts + 1, last_attempt_at = $2, next_attempt_at = $3
WHERE number = $1`

	readClaimText = `SELECT d.id, d.endpoint_id, d.epoch, d.attempts, e.url, e.secret, e.old_secret, e.old_secret_until, m.id, m.body
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id JOIN webhook_messages m ON m.id = d.message_id
WHERE d.number = $1 AND e.state = 'enabled'`
)

// Claim implements webhook.Queue.
func (s *Store) Claim(ctx context.Context, p webhook.ClaimParams) ([]webhook.Claimed, error) {
	var claimed []webhook.Claimed
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		claimed = nil
		var numbers []int64
		var finds []sqldb.Statement
		for _, l := range p.Limits {
			finds = append(finds, sqldb.Statement{
				Text: b.Claiming(findDueDeliveriesText), Args: []any{l.EndpointID, p.Now.UnixMicro(), int64(l.Limit)},
				Row: func(scan func(...any) error) error {
					var n int64
					err := scan(&n)
					numbers = append(numbers, n)
					return err
				},
			})
		}
		if err := b.Run(ctx, finds); err != nil {
			return fmt.Errorf("find due webhook deliveries: %w", err)
		}
		var claims []sqldb.Statement
		for _, n := range numbers {
			claims = append(claims,
				sqldb.Statement{Text: claimDeliveryText, Args: []any{n, p.Now.UnixMicro(), p.Until.UnixMicro()}},
				sqldb.Statement{Text: readClaimText, Args: []any{n}, Row: claimedInto(&claimed)})
		}
		if err := b.Run(ctx, claims); err != nil {
			return fmt.Errorf("claim webhook deliveries: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func claimedInto(all *[]webhook.Claimed) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var c webhook.Claimed
		var old sql.NullString
		var until sql.NullInt64
		err := scan(&c.ID, &c.EndpointID, &c.Epoch, &c.Attempt, &c.URL, &c.Secrets.Current, &old, &until, &c.Message.ID, &c.Message.Body)
		c.Secrets.Old, c.Secrets.OldUntil = old.String, sqldb.TimeOf(until)
		*all = append(*all, c)
		return err
	}
}

// Record implements webhook.Queue. Endpoints are changed in one order, so that
// no two processes wait for each other.
func (s *Store) Record(ctx context.Context, results []webhook.Result) error {
	sorted := slices.SortedFunc(slices.Values(results), func(a, b webhook.Result) int {
		return cmp.Or(cmp.Compare(a.EndpointID, b.EndpointID), a.At.Compare(b.At))
	})
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		for i := range sorted {
			if err := record(ctx, q, &sorted[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func record(ctx context.Context, q *sqldb.Queries, r *webhook.Result) error {
	p := sqldb.FinishWebhookDeliveryParams{
		ID: r.ID, Epoch: r.Epoch, State: string(r.State), NextAttemptAt: sqldb.NullTime(r.NextAttemptAt),
		LastStatus: sql.NullInt64{Int64: int64(r.Status), Valid: r.Status != 0}, LastError: sqldb.NullString(r.Error),
	}
	if r.State != webhook.Pending {
		p.FinishedAt = sqldb.NullTime(r.At)
	}
	n, err := q.FinishWebhookDelivery(ctx, p)
	if err != nil {
		return fmt.Errorf("record a webhook delivery: %w", err)
	}
	if n == 0 { // somebody has claimed it since, or sent it again
		return nil
	}
	if err := recordEndpoint(ctx, q, r); err != nil {
		return fmt.Errorf("record how a webhook endpoint does: %w", err)
	}
	return nil
}

// recordEndpoint notes what an attempt says of its endpoint.
func recordEndpoint(ctx context.Context, q *sqldb.Queries, r *webhook.Result) error {
	at := sqldb.NullTime(r.At)
	if r.State == webhook.Delivered {
		return q.NoteWebhookSuccess(ctx, r.EndpointID)
	}
	if r.Gone {
		_, err := q.DisableWebhookEndpoint(ctx, sqldb.DisableWebhookEndpointParams{
			ID: r.EndpointID, DisabledReason: sqldb.NullString(string(webhook.Gone)), EndedAt: at,
		})
		return err
	}
	if err := q.NoteWebhookFailure(ctx, sqldb.NoteWebhookFailureParams{ID: r.EndpointID, At: at}); err != nil {
		return err
	}
	_, err := q.DisableFailingWebhookEndpoint(ctx, sqldb.DisableFailingWebhookEndpointParams{
		ID: r.EndpointID, At: at, Since: sqldb.NullTime(r.At.Add(-webhook.FailingLimit)),
	})
	return err
}

// Sweep implements webhook.Queue. A message goes when its last delivery has
// gone.
func (s *Store) Sweep(ctx context.Context, p webhook.SweepParams) (int, error) {
	total := 0
	for _, remove := range []func(*sqldb.Queries) (int64, error){
		func(q *sqldb.Queries) (int64, error) { return q.DeleteOrphanWebhookDeliveries(ctx, sizeOf(p.Limit)) },
		func(q *sqldb.Queries) (int64, error) {
			return q.DeleteOldWebhookDeliveries(ctx, sqldb.DeleteOldWebhookDeliveriesParams{
				Before: sqldb.NullTime(p.Before), Size: sizeOf(p.Limit),
			})
		},
		func(q *sqldb.Queries) (int64, error) {
			return q.DeleteOldWebhookMessages(ctx, sqldb.DeleteOldWebhookMessagesParams{
				Before: p.Before.UnixMicro(), Size: sizeOf(p.Limit),
			})
		},
	} {
		n, err := s.sweep(ctx, remove)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}
