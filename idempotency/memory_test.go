package idempotency_test

import (
	"context"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// memory is a store for tests whose time is not real; no database can take part
// in those. It holds no rule of its own: idempotency.Judge decides.
type memory struct {
	mu      sync.Mutex
	records map[idempotency.Ref]*idempotency.Record
}

func newMemory() *memory {
	return &memory{records: map[idempotency.Ref]*idempotency.Record{}}
}

func (m *memory) Claim(_ context.Context, r idempotency.Request, lease time.Duration) (idempotency.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.records[r.Ref()]
	if !ok {
		rec = &idempotency.Record{Ref: r.Ref(), State: idempotency.Free}
		m.records[r.Ref()] = rec
	}
	j := idempotency.Judge(&r, rec, time.Now())
	if j.Verdict != idempotency.Fresh {
		return idempotency.Claim{Judgement: j, Record: *rec}, nil
	}
	before := *rec
	rec.Owner = idempotency.Owner{Token: [16]byte{byte(before.Owner.Epoch + 1)}, Epoch: before.Owner.Epoch + 1, ExpiresAt: time.Now().Add(lease)}
	rec.Print = r.Policy.Compare.Print(&r)
	if before.State != idempotency.Claimed {
		before, rec.CreatedAt = idempotency.Record{}, time.Now()
	}
	rec.State = idempotency.Claimed
	return idempotency.Claim{Owner: rec.Owner, Record: before}, nil
}

// owned changes the record of an owner that still holds it.
func (m *memory) owned(ref idempotency.Ref, o idempotency.Owner, change func(*idempotency.Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.records[ref]
	if !ok || rec.State != idempotency.Claimed || rec.Owner.Token != o.Token || rec.Owner.Epoch != o.Epoch {
		return idempotency.ErrLeaseLost
	}
	change(rec)
	return nil
}

func (m *memory) Renew(_ context.Context, ref idempotency.Ref, o idempotency.Owner, lease time.Duration) error {
	return m.owned(ref, o, func(rec *idempotency.Record) { rec.Owner.ExpiresAt = time.Now().Add(lease) })
}

func (m *memory) Made(_ context.Context, ref idempotency.Ref, o idempotency.Owner, made idempotency.Resource) error {
	return m.owned(ref, o, func(rec *idempotency.Record) { rec.Resource = made })
}

func (m *memory) Complete(_ context.Context, r idempotency.Request, o idempotency.Owner, a idempotency.Answer) error {
	return m.owned(r.Ref(), o, func(rec *idempotency.Record) {
		rec.State, rec.Answer, rec.Resource = idempotency.Done, &a, a.Resource
	})
}

func (m *memory) Release(_ context.Context, ref idempotency.Ref, o idempotency.Owner) error {
	return m.owned(ref, o, func(rec *idempotency.Record) {
		rec.State, rec.Resource = idempotency.Free, idempotency.Resource{}
	})
}

func (m *memory) Find(_ context.Context, ref idempotency.Ref) (idempotency.Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.records[ref]
	if !ok || rec.State == idempotency.Free {
		return idempotency.Record{}, false, nil
	}
	return *rec, true, nil
}

var _ idempotency.Store = (*memory)(nil)
