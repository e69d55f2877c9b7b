package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Alerts keeps alerts, what was judged of them and their history.
type Alerts struct{ db *sqldb.DB }

var (
	_ alert.Store = (*Alerts)(nil)
	_ alert.Queue = (*Alerts)(nil)
)

// NewAlerts returns Alerts that read and write db, which stays the caller's to
// close.
func NewAlerts(db *sqldb.DB) *Alerts { return &Alerts{db: db} }

// Create implements alert.Store. The project is locked, so that two at once
// are counted one after the other.
func (s *Alerts) Create(ctx context.Context, a alert.Alert, limit int, entry auditlog.Entry) (bool, error) {
	condition, err := json.Marshal(a.Condition)
	if err != nil {
		return false, fmt.Errorf("encode the condition of an alert: %w", err)
	}
	made := false
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		if _, err := q.LockProjectOfAlerts(ctx, a.ProjectID); err != nil {
			return fmt.Errorf("lock a project: %w", err)
		}
		n, err := q.CountAlerts(ctx, a.ProjectID)
		if err != nil {
			return fmt.Errorf("count alerts: %w", err)
		}
		if made = n < int64(limit); !made {
			return nil
		}
		err = q.CreateAlert(ctx, sqldb.CreateAlertParams{
			ID: a.ID, ProjectID: a.ProjectID, Name: a.Name, Source: string(a.Kind), Metric: string(a.Metric),
			Period: string(a.Length), Timezone: a.Timezone, Condition: string(condition), ForPeriods: a.For, ResolveAfter: a.ResolveAfter,
			NextStart: a.Next.Start.UnixMicro(), NextEnd: a.Next.End.UnixMicro(), At: a.CreatedAt.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create an alert: %w", err)
		}
		return createEntries(ctx, q, entry)
	})
	return made && err == nil, err
}

// Find implements alert.Store.
func (s *Alerts) Find(ctx context.Context, projectID, alertID string) (alert.Alert, bool, error) {
	return findAlert(ctx, s.db.Read(), projectID, alertID)
}

func findAlert(ctx context.Context, q *sqldb.Queries, projectID, alertID string) (alert.Alert, bool, error) {
	row, err := q.FindAlert(ctx, sqldb.FindAlertParams{ProjectID: projectID, ID: alertID})
	row, found, err := optional(row, err, "read an alert")
	if err != nil || !found {
		return alert.Alert{}, false, err
	}
	a, err := alertOf(&row)
	return a, err == nil, err
}

// List implements alert.Store.
func (s *Alerts) List(ctx context.Context, projectID, after string, limit int) ([]alert.Alert, error) {
	rows, err := s.db.Read().ListAlerts(ctx, sqldb.ListAlertsParams{ProjectID: projectID, ID: after, Limit: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	all := make([]alert.Alert, len(rows))
	for i := range rows {
		if all[i], err = alertOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// History implements alert.Store.
func (s *Alerts) History(ctx context.Context, p alert.HistoryParams) ([]alert.Entry, error) {
	before := p.Before
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.db.Read().ListAlertHistory(ctx, sqldb.ListAlertHistoryParams{
		AlertID: p.AlertID, Number: before, Limit: sizeOf(p.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of an alert: %w", err)
	}
	all := make([]alert.Entry, len(rows))
	for i := range rows {
		if all[i], err = alertEntryOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func alertOf(row *sqldb.Alert) (alert.Alert, error) {
	a := alert.Alert{
		ID: row.ID, ProjectID: row.ProjectID, Revision: row.Revision, Next: periodOf(row.NextStart, row.NextEnd),
		Definition: alert.Definition{
			Name: row.Name, Source: alert.Source{Kind: alert.Kind(row.Source)}, Length: alert.Length(row.Period),
			Timezone: row.Timezone, For: row.ForPeriods, ResolveAfter: row.ResolveAfter,
		},
		Status: alert.Status{
			State: alert.State(row.State), GoodRun: row.GoodRun, BadRun: row.BadRun,
			FiringSince: sqldb.TimeOf(row.FiringSince), FiredEntry: row.FiredEntry.String, Told: row.Told != 0,
			Problem: alert.Problem(row.Problem.String), ProblemSince: sqldb.TimeOf(row.ProblemSince),
			Attempts: row.Attempts, RetryAt: sqldb.TimeOf(row.RetryAt),
		},
		Mute:      alert.Mute{MutedAt: sqldb.TimeOf(row.MutedAt), MutedUntil: sqldb.TimeOf(row.MutedUntil)},
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), UpdatedAt: time.UnixMicro(row.UpdatedAt).UTC(), DeletedAt: sqldb.TimeOf(row.DeletedAt),
	}
	if row.Metric != "" {
		a.Metric = json.RawMessage(row.Metric)
	}
	if err := json.Unmarshal([]byte(row.Condition), &a.Condition); err != nil {
		return a, fmt.Errorf("read the condition of alert %s: %w", row.ID, err)
	}
	if row.LastStart.Valid {
		a.Last = &alert.Evaluation{
			Period: periodOf(row.LastStart.Int64, row.LastEnd.Int64), At: sqldb.TimeOf(row.LastAt),
			Judgement: alert.Judgement{
				Verdict: alert.Verdict(row.LastVerdict.String), Problem: alert.Problem(row.LastProblem.String),
				Value: sqldb.FloatOf(row.LastValue), Baseline: sqldb.FloatOf(row.LastBaseline),
			},
		}
	}
	return a, nil
}

func periodOf(start, end int64) alert.Period {
	return alert.Period{Start: time.UnixMicro(start).UTC(), End: time.UnixMicro(end).UTC()}
}

func alertEntryOf(row *sqldb.AlertHistory) (alert.Entry, error) {
	e := alert.Entry{
		Number: row.Number, ID: row.ID, Kind: alert.EntryKind(row.Kind), At: time.UnixMicro(row.At).UTC(), UserID: row.UserID.String,
		Reason: alert.Reason(row.Reason.String), Value: sqldb.FloatOf(row.Value), Baseline: sqldb.FloatOf(row.Baseline),
		Problem: alert.Problem(row.Problem.String), Until: sqldb.TimeOf(row.Until), Periods: row.Periods.Int64, Muted: row.Muted != 0,
	}
	if row.PeriodStart.Valid {
		e.Period = periodOf(row.PeriodStart.Int64, row.PeriodEnd.Int64)
	}
	if err := json.Unmarshal([]byte(row.Releases), &e.Releases); err != nil {
		return e, fmt.Errorf("read the releases of entry %s of an alert: %w", row.ID, err)
	}
	return e, nil
}

// flag is a column that is 1 for true.
func flag(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// nullCount is a column that is null for 0.
func nullCount(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n != 0} }
