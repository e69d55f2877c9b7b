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
// meter holds what is on its way there, and is told of the rest.
type Replays struct {
	meter *Meter
	store ReplayStore
}

// NewReplays returns the storage quota of session replays.
func NewReplays(meter *Meter, store ReplayStore) *Replays {
	return &Replays{meter: meter, store: store}
}

// ReserveReplay takes the bytes of a new chunk, received at a time, out of what
// is left of the organization's storage in that month, for replays and events
// alike. Of the functions that it returns commit must be called before the chunk's
// transaction begins, and settle once when that has ended, or when there is to be
// none, with whether it has counted the chunk: false gives the bytes back. If
// nothing is left it returns the fault quota_exceeded or
// trial_quota_exceeded; as long as anything is, a chunk is admitted whole. Plans
// without a limit of storage cost nothing.
func (r *Replays) ReserveReplay(ctx context.Context, organization string, at time.Time, bytes int64) (commit func(), settle func(counted bool), err error) {
	if !r.meter.plans.limitStorage() {
		return func() {}, func(bool) {}, nil
	}
	month := MonthOf(at)
	plan, counted, err := r.store.ReplayUsage(ctx, organization, month)
	if err != nil {
		return nil, nil, fmt.Errorf("read the usage of session replays: %w", err)
	}
	key := organizationMonth{organization, month}
	if err := r.meter.reserveReplay(key, plan, counted, bytes); err != nil {
		return nil, nil, err
	}
	one := &reservation{meter: r.meter, key: key, bytes: bytes}
	return one.commit, one.settle, nil
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

// replayTally is what an organization's session replays take of a month, in
// bytes. Who has counted them in the database is not seen there, so the meter
// keeps its own apart: of what it reads, what cannot be its own is others'. A
// chunk is therefore never counted twice, however reading, the end of its
// transaction and settling come upon each other; and what others have counted is
// hidden at most by chunks whose transaction is under way.
type replayTally struct {
	// reserved are chunks on their way, committing those of them whose transaction
	// may have begun, counted those whose transaction has ended well.
	reserved, committing, counted int64
	// others are those of other servers and of the time before the start, as far
	// as is known.
	others int64
}

func (t *replayTally) bytes() int64 { return t.reserved + t.counted + t.others }

// learn takes in what the database has counted; what was read last need not be
// the newest.
func (t *replayTally) learn(bytes int64) { t.others = max(t.others, bytes-t.committing-t.counted) }

// reservation is a chunk on its way. Its methods are called one after the other.
type reservation struct {
	meter      *Meter
	key        organizationMonth
	bytes      int64
	committing bool
}

// commit says that the database may count the chunk from now on.
func (r *reservation) commit() {
	if r.committing {
		return
	}
	r.committing = true
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	r.meter.totalOf(r.key.organization, r.key.month).replays.committing += r.bytes
}

// settle ends the reservation. If it is not known whether the chunk was counted,
// it is taken for not: the next reading finds it, if it was, as others'.
func (r *reservation) settle(counted bool) {
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	tally := &r.meter.totalOf(r.key.organization, r.key.month).replays
	tally.reserved -= r.bytes
	if r.committing {
		tally.committing -= r.bytes
	}
	if counted {
		tally.counted += r.bytes
	}
}

// reserveReplay judges a chunk of so many bytes when the database has counted so
// many, and reserves them.
func (m *Meter) reserveReplay(key organizationMonth, plan string, counted, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.totalOf(key.organization, key.month)
	total.replays.learn(counted)
	if err := m.plans.Of(plan).judgeStorage(total, key.month); err != nil {
		return err
	}
	total.replays.reserved += bytes
	return nil
}

// setReplays notes what was received of replays in a month, by organization.
func (m *Meter) setReplays(month Month, bytes map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for organization, n := range bytes {
		m.totalOf(organization, month).replays.learn(n)
	}
}
