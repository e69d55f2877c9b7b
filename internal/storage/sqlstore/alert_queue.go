package sqlstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Now implements alert.Queue.
func (s *Alerts) Now(ctx context.Context) (time.Time, error) { return s.db.Now(ctx) }

// Due implements alert.Queue. Alerts of suspended organizations are not judged.
func (s *Alerts) Due(ctx context.Context, p alert.DueParams) ([]alert.Due, error) {
	rows, err := s.db.Read().ListDueAlerts(ctx, sqldb.ListDueAlertsParams{
		Now: sqldb.NullTime(p.Now), Stored: p.Stored.UnixMicro(), Passed: p.Passed.UnixMicro(), Size: sizeOf(p.Limit), Skipped: sizeOf(p.Offset),
	})
	if err != nil {
		return nil, fmt.Errorf("read due alerts: %w", err)
	}
	all := make([]alert.Due, len(rows))
	for i, row := range rows {
		if row.Number < 1 || row.Number > math.MaxUint32 {
			return nil, fmt.Errorf("project number %d is outside of 32 bits", row.Number)
		}
		all[i] = alert.Due{
			ID: row.ID, ProjectID: row.ProjectID, Project: uint32(row.Number), CreatedAt: time.UnixMicro(row.ProjectCreatedAt).UTC(),
		}
	}
	return all, nil
}

// Values implements alert.Queue.
func (s *Alerts) Values(ctx context.Context, p alert.ValuesParams) (map[time.Time]float64, error) {
	rows, err := s.db.Read().ListAlertValues(ctx, sqldb.ListAlertValuesParams{
		AlertID: p.AlertID, Revision: p.Revision, PeriodStart: p.From.UnixMicro(), PeriodStart_2: p.To.UnixMicro(),
	})
	if err != nil {
		return nil, fmt.Errorf("read values of an alert: %w", err)
	}
	values := make(map[time.Time]float64, len(rows))
	for _, row := range rows {
		values[time.UnixMicro(row.PeriodStart).UTC()] = row.Value.Float64
	}
	return values, nil
}

// Sweep implements alert.Queue. An alert that was deleted goes when nothing is
// left of it.
func (s *Alerts) Sweep(ctx context.Context, p alert.SweepParams) (int, error) {
	size := sizeOf(p.Limit)
	total := 0
	for _, remove := range []func(*sqldb.Queries) (int64, error){
		func(q *sqldb.Queries) (int64, error) {
			return q.DeleteOldAlertEvaluations(ctx, sqldb.DeleteOldAlertEvaluationsParams{Before: p.Evaluations.UnixMicro(), Size: size})
		},
		func(q *sqldb.Queries) (int64, error) {
			return q.DeleteOldAlertEntries(ctx, sqldb.DeleteOldAlertEntriesParams{Before: p.History.UnixMicro(), Size: size})
		},
		func(q *sqldb.Queries) (int64, error) { return q.DeleteOrphanAlertEvaluations(ctx, size) },
		func(q *sqldb.Queries) (int64, error) { return q.DeleteOrphanAlertEntries(ctx, size) },
		func(q *sqldb.Queries) (int64, error) { return q.DeleteEmptiedAlerts(ctx, size) },
	} {
		n, err := (&Store{db: s.db}).sweep(ctx, remove)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}
