package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// Change implements alert.Store. The row of the evaluation comes first: of two
// that judge one period, the second waits for the first one's COMMIT and then
// finds it judged.
func (s *Alerts) Change(ctx context.Context, p alert.ChangeParams) (a alert.Alert, found bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		if err := createEvaluation(ctx, q, &p); err != nil {
			return err
		}
		n, err := q.LockAlert(ctx, sqldb.LockAlertParams{ProjectID: p.ProjectID, ID: p.AlertID})
		if err != nil {
			return fmt.Errorf("lock an alert: %w", err)
		}
		if found = n > 0; !found {
			return gone(&p)
		}
		if a, _, err = findAlert(ctx, q, p.ProjectID, p.AlertID); err != nil {
			return err
		}
		if x := p.Expect; x != nil && (a.Revision != x.Revision || a.Next != x.Next) {
			return alert.ErrStale
		}
		err = step(ctx, q, &p, &a)
		if p.Evaluation != nil {
			crash.Point("alert.written")
		}
		return err
	})
	return a, found && err == nil, err
}

// gone undoes an evaluation of an alert that was deleted meanwhile.
func gone(p *alert.ChangeParams) error {
	if p.Evaluation != nil {
		return alert.ErrStale
	}
	return nil
}

func createEvaluation(ctx context.Context, q *sqldb.Queries, p *alert.ChangeParams) error {
	e := p.Evaluation
	if e == nil {
		return nil
	}
	n, err := q.CreateAlertEvaluation(ctx, sqldb.CreateAlertEvaluationParams{
		AlertID: p.AlertID, PeriodStart: e.Period.Start.UnixMicro(), PeriodEnd: e.Period.End.UnixMicro(), Revision: p.Expect.Revision,
		Verdict: string(e.Verdict), Problem: sqldb.NullString(string(e.Problem)),
		Value: sqldb.NullFloat(e.Value), Baseline: sqldb.NullFloat(e.Baseline), EvaluatedAt: e.At.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create an evaluation of an alert: %w", err)
	}
	if n == 0 {
		return alert.ErrStale
	}
	return nil
}

// step makes the step with the locked alert and writes what has come of it.
func step(ctx context.Context, q *sqldb.Queries, p *alert.ChangeParams, a *alert.Alert) error {
	near := p.Near
	if near.End.IsZero() {
		near = alert.Period{Start: p.At, End: p.At}
	}
	releases, err := releasesNear(ctx, q, p.ProjectID, near)
	if err != nil {
		return err
	}
	made := alert.Step{Alert: a, At: p.At, Releases: releases, NewID: p.NewID, UserID: p.UserID}
	if err := p.Step(&made); err != nil {
		return err
	}
	if err := updateAlert(ctx, q, a); err != nil {
		return err
	}
	for i := range made.Entries {
		if err := createAlertEntry(ctx, q, a.ID, &made.Entries[i]); err != nil {
			return err
		}
	}
	if err := tell(ctx, q, &made); err != nil || p.Audit == nil {
		return err
	}
	return createEntries(ctx, q, *p.Audit)
}

func releasesNear(ctx context.Context, q *sqldb.Queries, projectID string, p alert.Period) ([]alert.Release, error) {
	from, to := alert.Near(p)
	rows, err := q.ListMarkers(ctx, sqldb.ListMarkersParams{
		ProjectID: projectID, FromTs: from.UnixMicro(), ToTs: to.UnixMicro(), BeforeTs: math.MaxInt64,
		AnyEnvironment: 1, RowLimit: alert.MaxReleases,
	})
	if err != nil {
		return nil, fmt.Errorf("read release markers: %w", err)
	}
	markers := make([]release.Marker, len(rows))
	for i := range rows {
		if markers[i], err = markerOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return alert.ReleasesOf(markers), nil
}

func updateAlert(ctx context.Context, q *sqldb.Queries, a *alert.Alert) error {
	condition, err := json.Marshal(a.Condition)
	if err != nil {
		return fmt.Errorf("encode the condition of an alert: %w", err)
	}
	p := sqldb.UpdateAlertParams{
		ProjectID: a.ProjectID, ID: a.ID, Name: a.Name, Source: string(a.Kind), Metric: string(a.Metric), Period: string(a.Length),
		Timezone: a.Timezone, Condition: string(condition), ForPeriods: a.For, ResolveAfter: a.ResolveAfter, Revision: a.Revision,
		NextStart: a.Next.Start.UnixMicro(), NextEnd: a.Next.End.UnixMicro(), Attempts: a.Attempts, RetryAt: sqldb.NullTime(a.RetryAt),
		Problem: sqldb.NullString(string(a.Problem)), ProblemSince: sqldb.NullTime(a.ProblemSince), State: string(a.State),
		GoodRun: a.GoodRun, BadRun: a.BadRun, FiringSince: sqldb.NullTime(a.FiringSince), FiredEntry: sqldb.NullString(a.FiredEntry),
		Told: flag(a.Told), MutedAt: sqldb.NullTime(a.MutedAt), MutedUntil: sqldb.NullTime(a.MutedUntil),
		UpdatedAt: a.UpdatedAt.UnixMicro(), DeletedAt: sqldb.NullTime(a.DeletedAt),
	}
	if l := a.Last; l != nil {
		p.LastStart, p.LastEnd, p.LastAt = sqldb.NullTime(l.Period.Start), sqldb.NullTime(l.Period.End), sqldb.NullTime(l.At)
		p.LastVerdict, p.LastProblem = sqldb.NullString(string(l.Verdict)), sqldb.NullString(string(l.Problem))
		p.LastValue, p.LastBaseline = sqldb.NullFloat(l.Value), sqldb.NullFloat(l.Baseline)
	}
	if _, err := q.UpdateAlert(ctx, p); err != nil {
		return fmt.Errorf("change an alert: %w", err)
	}
	return nil
}

func createAlertEntry(ctx context.Context, q *sqldb.Queries, alertID string, e *alert.Entry) error {
	releases, err := json.Marshal(e.Releases)
	if err != nil {
		return fmt.Errorf("encode the releases of an alert: %w", err)
	}
	p := sqldb.CreateAlertEntryParams{
		ID: e.ID, AlertID: alertID, Kind: string(e.Kind), At: e.At.UnixMicro(), UserID: sqldb.NullString(e.UserID),
		Reason: sqldb.NullString(string(e.Reason)), Value: sqldb.NullFloat(e.Value), Baseline: sqldb.NullFloat(e.Baseline),
		Problem: sqldb.NullString(string(e.Problem)), Until: sqldb.NullTime(e.Until), Periods: nullCount(e.Periods),
		Muted: flag(e.Muted), Releases: string(releases),
	}
	if !e.Period.End.IsZero() {
		p.PeriodStart, p.PeriodEnd = sqldb.NullTime(e.Period.Start), sqldb.NullTime(e.Period.End)
	}
	if err := q.CreateAlertEntry(ctx, p); err != nil {
		return fmt.Errorf("create an entry of an alert's history: %w", err)
	}
	return nil
}

// tell writes the messages of a step, with a delivery for each endpoint that
// wants one.
func tell(ctx context.Context, q *sqldb.Queries, made *alert.Step) error {
	if len(made.Messages) == 0 {
		return nil
	}
	subscribers, err := subscribersOf(ctx, q, made.Alert.ProjectID)
	if err != nil {
		return err
	}
	for _, m := range made.Messages {
		n, err := webhook.FactNotice(&webhook.Fact{
			Ref: m.Ref, ProjectID: made.Alert.ProjectID, Type: m.Type, At: made.At, Data: m.Data,
		}, subscribers)
		if err != nil {
			return err //nolint:wrapcheck // it says what it was for
		}
		if err := createNotice(ctx, q, &n, made.NewID); err != nil {
			return err
		}
	}
	return nil
}

func subscribersOf(ctx context.Context, q *sqldb.Queries, projectID string) ([]webhook.Subscriber, error) {
	rows, err := q.ListWebhookSubscribers(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("read who wants webhooks: %w", err)
	}
	all := make([]webhook.Subscriber, len(rows))
	for i, row := range rows {
		all[i].EndpointID = row.ID
		if all[i].Wishes, err = webhook.ParseWishes(row.EventTypes, row.LowBalance); err != nil {
			return nil, err //nolint:wrapcheck // it says what it was for
		}
	}
	return all, nil
}

// createNotice writes a message with a delivery to each of its endpoints; none
// if nobody wants it.
func createNotice(ctx context.Context, q *sqldb.Queries, n *webhook.Notice, newID func() (string, error)) error {
	if len(n.Endpoints) == 0 {
		return nil
	}
	err := q.CreateWebhookMessage(ctx, sqldb.CreateWebhookMessageParams{
		ID: n.ID, ProjectID: n.ProjectID, Type: string(n.Type), Body: n.Body, CreatedAt: n.At.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a webhook message: %w", err)
	}
	for _, endpoint := range n.Endpoints {
		id, err := newID()
		if err != nil {
			return err
		}
		err = q.CreateWebhookDelivery(ctx, sqldb.CreateWebhookDeliveryParams{
			ID: id, EndpointID: endpoint, MessageID: n.ID, At: sqldb.NullTime(n.At),
		})
		if err != nil {
			return fmt.Errorf("create a webhook delivery: %w", err)
		}
	}
	return nil
}
