// Package executionstore keeps executions and their journal in the
// transactional store. What belongs to credits it writes along with the ops of
// package ledger. It decides nothing about what an execution may do.
//
// Invariants:
//   - what is read to decide about a run is read of a row that is locked until
//     the transaction ends;
//   - an execution is claimed by one owner at a time, and each claim has an
//     epoch of its own.
package executionstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements execution.Store.
type Store struct{ db *sqldb.DB }

var _ execution.Store = (*Store)(nil)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// Judge implements execution.Store.
func (s *Store) Judge(ctx context.Context, r idempotency.Request) (idempotency.Result, bool, error) {
	return s.db.Keys().Judge(ctx, r)
}

// Find implements execution.Store.
func (s *Store) Find(ctx context.Context, projectID, executionID string) (execution.Execution, bool, error) {
	x, err := scanExecution(s.db.Often().QueryRowContext(ctx, findExecutionText, projectID, executionID).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return execution.Execution{}, false, nil
	}
	if err != nil {
		return execution.Execution{}, false, fmt.Errorf("read an execution: %w", err)
	}
	return x, true, nil
}

// Journal implements execution.Store.
func (s *Store) Journal(ctx context.Context, number int64) ([]execution.Step, []execution.Call, error) {
	var steps []execution.Step
	err := s.each(ctx, journalStepsText, []any{number}, func(scan func(...any) error) error {
		one, err := scanStep(scan)
		steps = append(steps, one)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the steps of an execution: %w", err)
	}
	var calls []execution.Call
	err = s.each(ctx, journalCallsText, []any{number}, func(scan func(...any) error) error {
		one, err := scanCall(scan)
		calls = append(calls, one)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the calls of an execution: %w", err)
	}
	return steps, calls, nil
}

// each calls row for each row that a query finds.
func (s *Store) each(ctx context.Context, text string, args []any, row func(scan func(...any) error) error) (err error) {
	rows, err := s.db.Reader().QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanExecution reads the columns of executionColumns.
func scanExecution(scan func(...any) error) (x execution.Execution, err error) {
	var customer, given, output, code, message sql.NullString
	var input string
	var owner []byte
	var cancel, started, finished sql.NullInt64
	var created, held int64
	err = scan(&x.Number, &x.ID, &x.ProjectID, &x.FlowID, &x.Flow, &x.Version, &customer, &x.Key, (*string)(&x.Mode), (*string)(&x.Status),
		&input, &given, &output, &code, &message, &x.Charged, &x.Unbilled, &x.Usage.Input, &x.Usage.Output, &x.Usage.Cached, &x.Usage.Reasoning,
		&owner, &x.Lease.Epoch, &cancel, &created, &started, &finished, &held)
	if err != nil {
		return x, err
	}
	x.Customer, x.Input, x.Context, x.Output = customer.String, []byte(input), jsonOf(given), jsonOf(output)
	if code.Valid {
		x.Failure = &execution.Failure{Code: api.Code(code.String), Message: message.String}
	}
	copy(x.Lease.Owner[:], owner)
	x.CancelAsked, x.Held = cancel.Valid, held != 0
	x.CreatedAt, x.StartedAt, x.FinishedAt = time.UnixMicro(created).UTC(), sqldb.TimeOf(started), sqldb.TimeOf(finished)
	return x, nil
}

// scanStep reads the columns of journalStepsText.
func scanStep(scan func(...any) error) (s execution.Step, err error) {
	var output, code, message sql.NullString
	var started int64
	var finished sql.NullInt64
	err = scan(&s.Step, &s.Iteration, &s.Type, (*string)(&s.State), &s.Attempt, &output, &s.Price, &code, &message, &started, &finished)
	s.Output = jsonOf(output)
	if code.Valid {
		s.Failure = &execution.Failure{Code: api.Code(code.String), Message: message.String}
	}
	s.StartedAt, s.FinishedAt = time.UnixMicro(started).UTC(), sqldb.TimeOf(finished)
	return s, err
}

// scanCall reads the columns of journalCallsText.
func scanCall(scan func(...any) error) (c execution.Call, err error) {
	var provider, model, requestID, request, response, message sql.NullString
	var status, finished sql.NullInt64
	var started int64
	err = scan(&c.ID, &c.ExecutionID, &c.Step, &c.Iteration, &c.Attempt, &c.Kind, (*string)(&c.Status), &provider, &model, &status,
		&c.Usage.Input, &c.Usage.Output, &c.Usage.Cached, &c.Usage.Reasoning, &c.Price, &c.DerivedKey, &requestID, &request, &response, &message,
		&started, &finished)
	c.Provider, c.Model, c.ProviderRequestID, c.Message = provider.String, model.String, requestID.String, message.String
	c.HTTPStatus = int(status.Int64)
	c.Request, c.Response = jsonOf(request), jsonOf(response)
	c.StartedAt, c.FinishedAt = time.UnixMicro(started).UTC(), sqldb.TimeOf(finished)
	return c, err
}

func jsonOf(text sql.NullString) []byte {
	if !text.Valid {
		return nil
	}
	return []byte(text.String)
}

func nullJSON(text []byte) sql.NullString {
	return sql.NullString{String: string(text), Valid: text != nil}
}
