package privacystore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Newest implements privacy.Customers. Of webhook messages those of the whole
// project count: whom one is about is said in its body only.
func (s *Store) Newest(ctx context.Context, projectID, customer string) (time.Time, error) {
	q := s.db.Read()
	newest, err := q.NewestWebhookMessage(ctx, projectID)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the newest webhook message: %w", err)
	}
	number, found, err := s.findCustomer(ctx, projectID, customer)
	if err != nil {
		return time.Time{}, err
	}
	if found {
		hold, err := q.NewestCustomerHold(ctx, number)
		if err != nil {
			return time.Time{}, fmt.Errorf("find the newest hold of a customer: %w", err)
		}
		execution, err := q.NewestCustomerExecution(ctx, sql.NullInt64{Int64: number, Valid: true})
		if err != nil {
			return time.Time{}, fmt.Errorf("find the newest execution of a customer: %w", err)
		}
		newest = max(newest, hold, execution)
	}
	if newest == 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(newest).UTC(), nil
}

// findCustomer returns the number of a customer, and whether there is one.
func (s *Store) findCustomer(ctx context.Context, projectID, customer string) (number int64, found bool, err error) {
	if credit.ValidateCustomer(customer) != nil {
		return 0, false, nil //nolint:nilerr // nobody can have such an id
	}
	number, err = s.db.Read().FindCustomerNumber(ctx, sqldb.FindCustomerNumberParams{ProjectID: projectID, ExternalID: customer})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find a customer: %w", err)
	}
	return number, true, nil
}

// RedactCustomer implements privacy.Customers: metadata, the notes of holds,
// and what ended executions were given, have given and have said. Entries of
// the ledger, prices, usage and keys stay.
func (s *Store) RedactCustomer(ctx context.Context, p privacy.RedactParams) (done privacy.Redaction, err error) {
	customer, found, err := s.findCustomer(ctx, p.ProjectID, p.Customer)
	if err != nil || !found {
		return privacy.Redaction{}, err
	}
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		done = privacy.Redaction{}
		return redact(ctx, q, redactParams{sql.NullInt64{Int64: customer, Valid: true}, p.Before.UnixMicro(), sizeOf(p.Limit)}, &done)
	})
	if err != nil {
		return privacy.Redaction{}, fmt.Errorf("redact what is kept of a customer: %w", err)
	}
	return done, nil
}

func sizeOf(limit int) int32 { return int32(min(max(limit, 0), math.MaxInt32)) }

type redactParams struct {
	customer sql.NullInt64
	before   int64
	limit    int32
}

func redact(ctx context.Context, q *sqldb.Queries, p redactParams, done *privacy.Redaction) error {
	for _, change := range []func() (int64, error){
		func() (int64, error) { return q.ForgetCustomerMetadata(ctx, p.customer.Int64) },
		func() (int64, error) {
			return q.ForgetCustomerHolds(ctx, sqldb.ForgetCustomerHoldsParams{CustomerID: p.customer.Int64, Before: p.before, Size: p.limit})
		},
		func() (int64, error) {
			return q.ForgetCustomerCalls(ctx, sqldb.ForgetCustomerCallsParams{CustomerID: p.customer, Before: p.before, Size: p.limit})
		},
		func() (int64, error) {
			return q.ForgetCustomerSteps(ctx, sqldb.ForgetCustomerStepsParams{CustomerID: p.customer, Before: p.before, Size: p.limit})
		},
		func() (int64, error) {
			return q.ForgetCustomerExecutions(ctx, sqldb.ForgetCustomerExecutionsParams{CustomerID: p.customer, Before: p.before, Size: p.limit})
		},
	} {
		n, err := change()
		if err != nil {
			return err
		}
		done.Changed += int(n)
	}
	running, err := q.CountRunningExecutions(ctx, sqldb.CountRunningExecutionsParams{CustomerID: p.customer, Before: p.before})
	done.Running = int(running)
	return err
}

// RedactMessages implements privacy.Customers: the bodies of webhook messages
// about the customer that nobody waits for. What is still to be delivered is
// delivered as it is.
func (s *Store) RedactMessages(ctx context.Context, p privacy.RedactParams) error {
	for after := ""; ; {
		page, err := s.db.Read().ListSettledWebhookMessages(ctx, sqldb.ListSettledWebhookMessagesParams{
			ProjectID: p.ProjectID, After: after, Before: p.Before.UnixMicro(), Size: sizeOf(p.Limit),
		})
		if err != nil {
			return fmt.Errorf("read webhook messages: %w", err)
		}
		if err := s.redactMessages(ctx, page, p.Customer); err != nil {
			return fmt.Errorf("redact webhook messages: %w", err)
		}
		if len(page) < p.Limit {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

func (s *Store) redactMessages(ctx context.Context, page []sqldb.ListSettledWebhookMessagesRow, customer string) error {
	redacted := map[string][]byte{}
	for _, m := range page {
		if body, ok := redactBody(m.Body, customer); ok {
			redacted[m.ID] = body
		}
	}
	if len(redacted) == 0 {
		return nil
	}
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		for messageID, body := range redacted {
			if _, err := q.SetWebhookMessageBody(ctx, sqldb.SetWebhookMessageBodyParams{ID: messageID, Body: body}); err != nil {
				return err
			}
		}
		return nil
	})
}

// about is what a message says of whom it is about.
type about struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		Customer string `json:"customer"`
		Movement struct {
			Customer string `json:"customer"`
		} `json:"movement"`
	} `json:"data"`
}

// redactBody returns what stays of a message about a customer, and whether it
// is about that one.
func redactBody(body []byte, customer string) ([]byte, bool) {
	var m about
	if !bytes.Contains(body, []byte("customer")) || json.Unmarshal(body, &m) != nil {
		return nil, false
	}
	if m.Data.Customer != customer && m.Data.Movement.Customer != customer {
		return nil, false
	}
	text, err := json.Marshal(map[string]any{"type": m.Type, "timestamp": m.Timestamp, "data": map[string]bool{"erased": true}})
	return text, err == nil
}

// Scrub implements privacy.Customers.
func (s *Store) Scrub(ctx context.Context) error { return s.db.Scrub(ctx) }
