package app

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/record"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// waitingPage is about how many waiting items are read at once.
const waitingPage = 20_000

// startMeter makes the meter, and tells of organizations whose plan the settings
// do not have any more. The default plan counts for them: a start that was
// refused for one would be refused for all.
func (s *server) startMeter(ctx context.Context) (err error) {
	plans := plansOf(s.params.Config.Quota)
	if s.meter, err = newMeter(ctx, s.stores, plans); err != nil {
		return err
	}
	s.replayQuota = quota.NewReplays(s.meter, sqlstore.New(s.stores.sql))
	if err := s.replayQuota.Refresh(ctx, s.params.Clock.Wall()); err != nil {
		return err
	}
	_, accounts := newAccounts(s.stores.sql, retention.Rules{})
	all, err := allOrganizations(ctx, accounts.Organizations)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Plan != nil && !plans.Has(*o.Plan) {
			s.params.Log.Warn("an organization has a plan that the settings do not have; the default plan counts for it",
				"organization", o.ID, "plan", *o.Plan, "default_plan", plans.Of("").Name)
		}
	}
	return nil
}

// replayRefresh is how long session replays may not count for events yet.
const replayRefresh = 10 * time.Second

// countReplays tells the meter of session replays until ctx is done.
func (s *server) countReplays(ctx context.Context) {
	ticker := time.NewTicker(replayRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := s.replayQuota.Refresh(ctx, s.params.Clock.Wall()); err != nil && ctx.Err() == nil {
			s.params.Log.Warn("session replays do not count for the storage of events yet", "error", err)
		}
	}
}

// newMeter returns a meter that has counted what is in the stores: what the
// event store has counted when it stored it, and what waits to be stored.
// Neither store may be written to meanwhile.
func newMeter(ctx context.Context, s *stores, plans quota.Plans) (*quota.Meter, error) {
	owners, err := sqlstore.New(s.sql).ProjectOwners(ctx)
	if err != nil {
		return nil, err
	}
	mark, err := s.events.Mark(ctx)
	if err != nil {
		return nil, err
	}
	first, err := firstMonth(s.intake, mark.Position+1)
	if err != nil {
		return nil, err
	}
	meter := quota.NewMeter(plans, first)
	stored, err := s.events.Usage(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range stored {
		if month := quota.Month(u.Month); month >= first {
			meter.Count(quota.Addition{
				Organization: owners[u.Project], Project: u.Project, At: month.Begin().UnixMilli(), Events: u.Events, Bytes: u.Bytes,
			})
		}
	}
	return meter, countWaiting(meter, s.intake, owners, mark.Position+1)
}

// firstMonth is the month from which on the event store alone may lack
// something: that of the oldest waiting record or, if none waits, of the newest
// window time. No later record is of an earlier one.
func firstMonth(intake *intakestore.Store, from uint64) (quota.Month, error) {
	waiting, err := intake.Records(from, 1)
	if err != nil {
		return 0, fmt.Errorf("read what waits to be stored: %w", err)
	}
	if len(waiting) > 0 {
		return quota.MonthAt(waiting[0].Received), nil
	}
	return quota.MonthAt(intake.State().Received), nil
}

// countWaiting counts the records from a position on.
func countWaiting(meter *quota.Meter, intake *intakestore.Store, owners map[uint32]string, from uint64) error {
	for {
		records, err := intake.Records(from, waitingPage)
		if err != nil {
			return fmt.Errorf("read what waits to be stored: %w", err)
		}
		if len(records) == 0 {
			return nil
		}
		for i := range records {
			meter.Count(additionOf(&records[i], owners))
		}
		from = records[len(records)-1].Last() + 1
	}
}

// additionOf is what a record adds: of an item that makes an event one event
// and its encoded bytes, as the event store counts it.
func additionOf(r *record.Record, owners map[uint32]string) quota.Addition {
	a := quota.Addition{Organization: owners[r.Project], Project: r.Project, At: r.Received}
	for i := range r.Items {
		if it := &r.Items[i]; it.Type == record.ItemEvent || it.Type == record.ItemIdentify {
			a.Events++
			a.Bytes += int64(record.EncodedSize(it))
		}
	}
	return a
}

// usageHistory is the event store as the history of usage.
type usageHistory struct{ events *eventstore.Store }

// StoredUsage implements quota.History.
func (h usageHistory) StoredUsage(ctx context.Context, month quota.Month) (map[uint32]quota.Usage, error) {
	all, err := h.events.Usage(ctx)
	if err != nil {
		return nil, err
	}
	of := map[uint32]quota.Usage{}
	for _, u := range all {
		if quota.Month(u.Month) == month {
			of[u.Project] = quota.Usage{Events: u.Events, Bytes: u.Bytes}
		}
	}
	return of, nil
}
