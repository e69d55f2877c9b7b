package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// found is what the server has at the end.
type found struct {
	// names counts stored events by name.
	names map[string]int64
	// count and moved are how many movements there are of each kind, and what
	// they have moved; for runs, of the captures that paid for them.
	count [kinds]int64
	moved [kinds]credit.Amount
	// succeeded runs, of all that there are.
	runs, succeeded int64
	// right customers have the balance that they should have.
	right int
	// posted is what all customers have together.
	posted credit.Amount
}

// ask reads everything from the server, by a network that does not break.
func ask(ctx context.Context, s *server, want *shop) (*found, error) {
	address := "http://" + s.address
	client, err := actionpulse.New(address, s.keys.ProjectKey)
	if err != nil {
		return nil, err
	}
	app, err := actionpulse.NewApp(address, actionpulse.WithTokens(api.Tokens{AccessToken: s.keys.AccessToken}))
	if err != nil {
		return nil, err
	}
	f := &found{names: map[string]int64{}}
	return f, errors.Join(
		f.readEvents(ctx, app, s.keys.ProjectID),
		f.readMovements(ctx, client),
		f.readRuns(ctx, client),
		f.readCustomers(ctx, client, want),
	)
}

// readEvents counts events by name, once everything that was acknowledged can
// be queried.
func (f *found) readEvents(ctx context.Context, app *actionpulse.App, project string) error {
	now := time.Now()
	question := api.BreakdownQuery{By: "event", Limit: 1000, Question: api.Question{From: "2024-01-01T00:00:00Z", To: "2024-07-01T00:00:00Z"}}
	for {
		answer, err := app.Queries.Breakdown(ctx, project, question)
		if err != nil {
			return fmt.Errorf("count the events: %w", err)
		}
		through, err := time.Parse(time.RFC3339Nano, answer.StoredThrough)
		if err != nil {
			return fmt.Errorf("count the events: %w", err)
		}
		if through.After(now) {
			for _, item := range answer.Items {
				f.names[*item.Key] = item.Value
			}
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// readMovements adds up the ledger.
func (f *found) readMovements(ctx context.Context, client *actionpulse.Client) error {
	kindOf := map[string]kind{"topup": topUps, "charge": charges, "capture": runs}
	for m, err := range client.Movements.All(ctx, actionpulse.ListMovements{Page: actionpulse.Page{Limit: 200}}) {
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		k, known := kindOf[m.Kind]
		delta, err := credit.ParseAmount(m.Delta)
		if err != nil || !known {
			return fmt.Errorf("the ledger has a movement that nobody asked for: %+v", m)
		}
		f.count[k]++
		f.moved[k] += delta
	}
	return nil
}

func (f *found) readRuns(ctx context.Context, client *actionpulse.Client) error {
	for x, err := range client.Executions.All(ctx, actionpulse.ListExecutions{Page: actionpulse.Page{Limit: 200}}) {
		if err != nil {
			return fmt.Errorf("read the executions: %w", err)
		}
		f.runs++
		if x.Status == "succeeded" {
			f.succeeded++
		}
	}
	return nil
}

// readCustomers compares each balance with what the orders say.
func (f *found) readCustomers(ctx context.Context, client *actionpulse.Client, want *shop) error {
	for i := range want.customers {
		c := &want.customers[i]
		is, err := client.Customers.Get(ctx, c.id)
		if err != nil {
			return fmt.Errorf("read a customer: %w", err)
		}
		b := is.Balances["main"]
		posted, err := credit.ParseAmount(b.Posted)
		if err != nil {
			return fmt.Errorf("read a balance: %w", err)
		}
		f.posted += posted
		if posted == c.left() && b.Held == "0" && b.Available == b.Posted {
			f.right++
		}
	}
	return nil
}

func amountText(a credit.Amount) string { return a.String() }

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
