package quota

import (
	"context"
	"fmt"
	"time"
)

// ReplayStore knows how many bytes of session replays were received in a month.
type ReplayStore interface {
	// ReplayUsage returns an organization's own plan, and what its projects
	// have received.
	ReplayUsage(ctx context.Context, organization string, month Month) (plan string, bytes int64, err error)
	// ProjectReplays returns what the projects of an organization have received,
	// by their number.
	ProjectReplays(ctx context.Context, organization string, month Month) (map[uint32]int64, error)
	// AllReplays returns what was received by organization.
	AllReplays(ctx context.Context, month Month) (map[string]int64, error)
}

// Replays decides whether session replays may be added. They are counted where
// they are stored, in another store than events and maybe by other servers; the
// meter is told.
type Replays struct {
	meter *Meter
	store ReplayStore
}

// NewReplays returns the storage quota of session replays.
func NewReplays(meter *Meter, store ReplayStore) *Replays {
	return &Replays{meter: meter, store: store}
}

// AdmitReplay returns the fault quota_exceeded or trial_quota_exceeded if the
// organization's storage is used up in the month of a time. Chunks that are
// being stored at the moment are not counted yet. Plans without a limit of
// storage cost nothing.
func (r *Replays) AdmitReplay(ctx context.Context, organization string, at time.Time) error {
	if !r.meter.plans.limitStorage() {
		return nil
	}
	month := MonthOf(at)
	plan, bytes, err := r.store.ReplayUsage(ctx, organization, month)
	if err != nil {
		return fmt.Errorf("read the usage of session replays: %w", err)
	}
	return r.meter.admitReplay(organization, plan, month, bytes)
}

// Refresh tells the meter what was received of session replays in the month of
// a time, so that it counts for events too.
func (r *Replays) Refresh(ctx context.Context, at time.Time) error {
	if !r.meter.plans.limitStorage() {
		return nil
	}
	month := MonthOf(at)
	all, err := r.store.AllReplays(ctx, month)
	if err != nil {
		return fmt.Errorf("read the usage of session replays: %w", err)
	}
	r.meter.setReplays(month, all)
	return nil
}

// limitStorage reports whether any plan does.
func (p Plans) limitStorage() bool {
	for _, plan := range p.byName {
		if plan.Storage > 0 {
			return true
		}
	}
	return false
}

// admitReplay judges a replay of an organization whose replays of the month have
// this many bytes.
func (m *Meter) admitReplay(organization, plan string, month Month, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.totalOf(organization, month)
	total.replays = max(total.replays, bytes) // what was read last need not be the newest
	return m.plans.Of(plan).judgeStorage(total, month)
}

// setReplays notes what was received of replays in a month, by organization.
func (m *Meter) setReplays(month Month, bytes map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for organization, n := range bytes {
		total := m.totalOf(organization, month)
		total.replays = max(total.replays, n)
	}
}
