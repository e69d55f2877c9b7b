package sqlstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

var (
	_ webhook.Store = (*Store)(nil)
	_ webhook.Queue = (*Store)(nil)
)

// CreateEndpoint implements webhook.Store.
func (s *Store) CreateEndpoint(ctx context.Context, e webhook.Endpoint, limit int, entry auditlog.Entry) (bool, error) {
	types, thresholds, err := e.Texts()
	if err != nil {
		return false, err
	}
	made := false
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.CountWebhookEndpoints(ctx, e.ProjectID)
		if err != nil {
			return fmt.Errorf("count webhook endpoints: %w", err)
		}
		if made = n < int64(limit); !made {
			return nil
		}
		err = q.CreateWebhookEndpoint(ctx, sqldb.CreateWebhookEndpointParams{
			ID: e.ID, ProjectID: e.ProjectID, Url: e.URL, Description: e.Description, EventTypes: types, LowBalance: thresholds,
			Secret: e.Secrets.Current, CreatedAt: e.CreatedAt.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create a webhook endpoint: %w", err)
		}
		return createEntries(ctx, q, entry)
	})
	return made && err == nil, err
}

// FindEndpoint implements webhook.Store.
func (s *Store) FindEndpoint(ctx context.Context, projectID, endpointID string) (webhook.Endpoint, bool, error) {
	return findEndpoint(ctx, s.db.Read(), projectID, endpointID)
}

func findEndpoint(ctx context.Context, q *sqldb.Queries, projectID, endpointID string) (webhook.Endpoint, bool, error) {
	row, err := q.FindWebhookEndpoint(ctx, sqldb.FindWebhookEndpointParams{ProjectID: projectID, ID: endpointID})
	row, found, err := optional(row, err, "read a webhook endpoint")
	if err != nil || !found {
		return webhook.Endpoint{}, false, err
	}
	e, err := endpointOf(&row)
	return e, err == nil, err
}

// ListEndpoints implements webhook.Store.
func (s *Store) ListEndpoints(ctx context.Context, projectID, after string, limit int) ([]webhook.Endpoint, error) {
	rows, err := s.db.Read().ListWebhookEndpoints(ctx, sqldb.ListWebhookEndpointsParams{
		ProjectID: projectID, ID: after, Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	all := make([]webhook.Endpoint, 0, len(rows))
	for i := range rows {
		e, err := endpointOf(&rows[i])
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// UpdateEndpoint implements webhook.Store.
func (s *Store) UpdateEndpoint(ctx context.Context, p webhook.UpdateParams) (e webhook.Endpoint, found bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.LockWebhookEndpoint(ctx, sqldb.LockWebhookEndpointParams{ProjectID: p.ProjectID, ID: p.EndpointID})
		if found = n > 0; err != nil || !found {
			return err
		}
		if e, found, err = findEndpoint(ctx, q, p.ProjectID, p.EndpointID); err != nil {
			return err
		}
		if err := p.Change(&e); err != nil {
			return err
		}
		if err := updateEndpoint(ctx, q, &e); err != nil {
			return err
		}
		return createEntries(ctx, q, p.Entry)
	})
	return e, found && err == nil, err
}

func updateEndpoint(ctx context.Context, q *sqldb.Queries, e *webhook.Endpoint) error {
	types, thresholds, err := e.Texts()
	if err != nil {
		return err
	}
	_, err = q.UpdateWebhookEndpoint(ctx, sqldb.UpdateWebhookEndpointParams{
		ProjectID: e.ProjectID, ID: e.ID, Url: e.URL, Description: e.Description, EventTypes: types, LowBalance: thresholds,
		Secret: e.Secrets.Current, OldSecret: sqldb.NullString(e.Secrets.Old), OldSecretUntil: sqldb.NullTime(e.Secrets.OldUntil),
		State: string(e.State), DisabledReason: sqldb.NullString(string(e.Reason)), FailingSince: sqldb.NullTime(e.FailingSince),
		EndedAt: sqldb.NullTime(e.EndedAt),
	})
	if err != nil {
		return fmt.Errorf("change a webhook endpoint: %w", err)
	}
	return nil
}

// FindDelivery implements webhook.Store.
func (s *Store) FindDelivery(ctx context.Context, endpointID, deliveryID string) (webhook.Delivery, bool, error) {
	row, err := s.db.Read().FindWebhookDelivery(ctx, sqldb.FindWebhookDeliveryParams{EndpointID: endpointID, ID: deliveryID})
	row, found, err := optional(row, err, "read a webhook delivery")
	if err != nil || !found {
		return webhook.Delivery{}, false, err
	}
	return deliveryOf((*sqldb.ListWebhookDeliveriesRow)(&row)), true, nil
}

// ListDeliveries implements webhook.Store.
func (s *Store) ListDeliveries(ctx context.Context, p webhook.ListParams) ([]webhook.Delivery, error) {
	before := p.Before
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.db.Read().ListWebhookDeliveries(ctx, sqldb.ListWebhookDeliveriesParams{
		EndpointID: p.EndpointID, Before: before, State: string(p.State), Size: sizeOf(p.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read webhook deliveries: %w", err)
	}
	all := make([]webhook.Delivery, len(rows))
	for i := range rows {
		all[i] = deliveryOf(&rows[i])
	}
	return all, nil
}

// Resend implements webhook.Store.
func (s *Store) Resend(ctx context.Context, endpointID, deliveryID string, at time.Time) (bool, error) {
	var n int64
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		n, err = q.ResendWebhookDelivery(ctx, sqldb.ResendWebhookDeliveryParams{
			EndpointID: endpointID, ID: deliveryID, At: at.UnixMicro(),
		})
		return err
	})
	return n > 0 && err == nil, err
}

// CreateMessage implements webhook.Store.
func (s *Store) CreateMessage(ctx context.Context, m webhook.Message, endpointID, deliveryID string) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		err := q.CreateWebhookMessage(ctx, sqldb.CreateWebhookMessageParams{
			ID: m.ID, ProjectID: m.ProjectID, Type: string(m.Type), Body: m.Body, CreatedAt: m.At.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create a webhook message: %w", err)
		}
		err = q.CreateWebhookDelivery(ctx, sqldb.CreateWebhookDeliveryParams{
			ID: deliveryID, EndpointID: endpointID, MessageID: m.ID, At: sqldb.NullTime(m.At),
		})
		if err != nil {
			return fmt.Errorf("create a webhook delivery: %w", err)
		}
		return nil
	})
}

func endpointOf(row *sqldb.WebhookEndpoint) (e webhook.Endpoint, err error) {
	e = webhook.Endpoint{
		ID: row.ID, ProjectID: row.ProjectID,
		Content: webhook.Content{URL: row.Url, Description: row.Description},
		Secrets: webhook.Secrets{Current: row.Secret, Old: row.OldSecret.String, OldUntil: sqldb.TimeOf(row.OldSecretUntil)},
		State:   webhook.State(row.State), Reason: webhook.Reason(row.DisabledReason.String),
		FailingSince: sqldb.TimeOf(row.FailingSince), CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), EndedAt: sqldb.TimeOf(row.EndedAt),
	}
	e.Wishes, err = webhook.ParseWishes(row.EventTypes, row.LowBalance)
	return e, err
}

func deliveryOf(row *sqldb.ListWebhookDeliveriesRow) webhook.Delivery {
	return webhook.Delivery{
		Number: row.Number, ID: row.ID, EndpointID: row.EndpointID,
		Message: webhook.Message{ID: row.MessageID, Type: webhook.Type(row.Type), Body: row.Body},
		State:   webhook.DeliveryState(row.State), Attempts: row.Attempts,
		NextAttemptAt: sqldb.TimeOf(row.NextAttemptAt), LastAttemptAt: sqldb.TimeOf(row.LastAttemptAt),
		LastStatus: row.LastStatus.Int64, LastError: row.LastError.String,
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), FinishedAt: sqldb.TimeOf(row.FinishedAt),
	}
}
