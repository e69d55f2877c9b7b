package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

const (
	movementConnections = 64
	manyCustomers       = 10_000
	goalMovements       = 15_000
	goalReplays         = 30_000
	// databaseVariable says where the server under test keeps accounts and
	// credits.
	databaseVariable = "ACTIONPULSE_DATABASE"
)

// measureMovements measures topups, charges and repeats of charges, of one
// customer and of many, on SQLite and on a PostgreSQL that syncs every commit.
func (b *bench) measureMovements(ctx context.Context) error {
	if err := b.measureMovementsOn(ctx, "SQLite"); err != nil {
		return err
	}
	return b.onPostgreSQL(func() error { return b.measureMovementsOn(ctx, "PostgreSQL") })
}

// onPostgreSQL runs a measurement whose servers keep their accounts in a
// PostgreSQL of its own.
func (b *bench) onPostgreSQL(measure func() error) error {
	address, stop, err := pgtest.StartDurable()
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	b.postgres = address
	err = measure()
	b.postgres = ""
	return errors.Join(err, os.Unsetenv(databaseVariable), stop())
}

func (b *bench) measureMovementsOn(ctx context.Context, engine string) error {
	for _, customers := range []int64{manyCustomers, 1} {
		var topups, charges, replays keyedRun
		for range b.runs {
			err := b.with(ctx, func(s *server) error { return b.moveCredits(ctx, s, customers, &topups, &charges, &replays) })
			if err != nil {
				return err
			}
		}
		who := fmt.Sprintf("%d customers", customers)
		if customers == 1 {
			who = "one customer"
		}
		for _, r := range []struct {
			what string
			run  keyedRun
			goal float64
		}{{"topup", topups, goalMovements}, {"charge", charges, goalMovements}, {"repeat of a charge", replays, goalReplays}} {
			b.add(row{
				what: fmt.Sprintf("%s, %s, %s, %d connections", r.what, who, engine, movementConnections),
				goal: fmt.Sprintf("≥ %g k/s", r.goal/1000), measured: r.run.format(), cpu: r.run.cpu.format("µs/request"),
				baseline: "the textbook form: see benchmarks-keys.md", met: met(r.run.rate.median() >= r.goal),
			})
		}
	}
	return nil
}

// moveCredits tops customers up, charges them, and charges them again with the
// same keys.
func (b *bench) moveCredits(ctx context.Context, s *server, customers int64, topups, charges, replays *keyedRun) error {
	p := func(kind, amount string) keyedParams {
		return keyedParams{
			Requests: b.scaled(40_000), Connections: movementConnections,
			Request: func(dst []byte, n int64) []byte { return s.moveRequest(dst, kind, amount, n, n%customers) },
		}
	}
	if err := topups.run(ctx, s, p("topup", "1000"), "200"); err != nil {
		return err
	}
	if err := charges.run(ctx, s, p("charge", "0.25"), "200"); err != nil {
		return err
	}
	return replays.run(ctx, s, p("charge", "0.25"), "200")
}

// moveRequest appends a request to move credits.
func (s *server) moveRequest(dst []byte, kind, amount string, n, customer int64) []byte {
	body := fmt.Sprintf(`{"credit_type":"main","amount":%q}`, amount)
	return fmt.Appendf(dst, "POST /v1/customers/customer-%d/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nIdempotency-Key: %s-%d\r\nContent-Length: %d\r\n\r\n%s",
		customer, kind, s.address, s.ProjectKey, kind, n, len(body), body)
}
