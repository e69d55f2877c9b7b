package executionstore

import (
	"database/sql"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// until is the end of a lease as SQL: null where leases end with their process.
func until(lease time.Duration) string {
	if lease == 0 {
		return "NULL"
	}
	return databaseNow + " + " + strconv.FormatInt(lease.Microseconds(), 10)
}

// AlongCreation implements execution.Store.
func (s *Store) AlongCreation(c *execution.Creation) any { return creation{c} }

type creation struct{ *execution.Creation }

var _ ledger.Along = creation{}

// Order implements ledger.Along: what is not there yet is locked by nobody.
func (c creation) Order() int64 { return 0 }

// Read implements ledger.Along.
func (c creation) Read(*sqldb.Batch) []sqldb.Statement { return nil }

// Write implements ledger.Along.
func (c creation) Write(*credit.Outcome) ([]sqldb.Statement, error) {
	x := &c.Execution
	end := "NULL)"
	if x.Status == execution.Running {
		end = until(c.LeaseFor) + ")"
	}
	code, message := failure(x.Failure)
	return []sqldb.Statement{{
		Text: createExecutionText + end + " RETURNING number",
		Args: []any{
			x.ID, x.ProjectID, x.FlowID, x.Version, sqldb.NullString(x.Customer), x.Key, string(x.Mode), string(x.Status), string(x.Input),
			nullJSON(x.Context), code, message, owner(x), x.Lease.Epoch, x.CreatedAt.UnixMicro(), sqldb.NullTime(x.StartedAt),
			sqldb.NullTime(x.FinishedAt),
		},
		Row: func(scan func(...any) error) error { return scan(&x.Number) },
	}}, nil
}

// owner is the column of who runs an execution.
func owner(x *execution.Execution) []byte {
	if x.Status != execution.Running {
		return nil
	}
	return x.Lease.Owner[:]
}

func failure(f *execution.Failure) (code, message sql.NullString) {
	if f == nil {
		return code, message
	}
	return sql.NullString{String: string(f.Code), Valid: true}, sql.NullString{String: f.Message, Valid: true}
}

// AlongProgress implements execution.Store.
func (s *Store) AlongProgress(p *execution.Progress) any { return progress{p} }

type progress struct{ *execution.Progress }

var _ ledger.Along = progress{}

// Order implements ledger.Along.
func (p progress) Order() int64 { return p.Number }

// Read implements ledger.Along.
func (p progress) Read(b *sqldb.Batch) []sqldb.Statement {
	p.Seen = execution.Seen{}
	return []sqldb.Statement{{
		Text: b.Locking(seenText), Args: []any{p.Number}, Row: func(scan func(...any) error) error {
			var by []byte
			var cancel sql.NullInt64
			seen := execution.Seen{Found: true}
			err := scan((*string)(&seen.Status), &by, &seen.Lease.Epoch, &cancel)
			copy(seen.Lease.Owner[:], by)
			seen.CancelAsked = cancel.Valid
			p.Seen = seen
			return err
		},
	}}
}

// Write implements ledger.Along.
func (p progress) Write(*credit.Outcome) ([]sqldb.Statement, error) {
	statements := make([]sqldb.Statement, 0, len(p.Steps)+len(p.Calls))
	for i := range p.Steps {
		s := &p.Steps[i]
		code, message := failure(s.Failure)
		statements = append(statements, sqldb.Statement{Text: putStepText, Args: []any{
			p.Number, s.Step, s.Iteration, s.Type, string(s.State), s.Attempt, nullJSON(s.Output), int64(s.Price), code, message,
			s.StartedAt.UnixMicro(), sqldb.NullTime(s.FinishedAt),
		}})
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		statements = append(statements, sqldb.Statement{Text: putCallText, Args: []any{
			c.ID, p.Number, p.ProjectID, c.Step, c.Iteration, c.Attempt, c.Kind, string(c.Status), sqldb.NullString(c.Provider),
			sqldb.NullString(c.Model),
			sql.NullInt64{Int64: int64(c.HTTPStatus), Valid: c.HTTPStatus != 0},
			c.Usage.Input, c.Usage.Output, c.Usage.Cached, c.Usage.Reasoning, int64(c.Price), c.DerivedKey, sqldb.NullString(c.ProviderRequestID),
			nullJSON(c.Request), nullJSON(c.Response), sqldb.NullString(c.Message), c.StartedAt.UnixMicro(), sqldb.NullTime(c.FinishedAt),
		}})
	}
	return statements, nil
}

// AlongEnd implements execution.Store.
func (s *Store) AlongEnd(e *execution.End) any { return end{progress{&e.Progress}, e} }

type end struct {
	progress

	to *execution.End
}

var _ ledger.Along = end{}

// Write implements ledger.Along.
func (e end) Write(o *credit.Outcome) ([]sqldb.Statement, error) {
	statements, err := e.progress.Write(o)
	x := &e.to.Execution
	code, message := failure(x.Failure)
	return append(statements, sqldb.Statement{Text: endExecutionText, Args: []any{
		x.Number, string(x.Status), nullJSON(x.Output), code, message, int64(x.Charged), int64(x.Unbilled),
		x.Usage.Input, x.Usage.Output, x.Usage.Cached, x.Usage.Reasoning, x.FinishedAt.UnixMicro(),
	}}), err
}
