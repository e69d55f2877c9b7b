// Package audit compares the intake store and the event store and rebuilds the
// one from the other where that is possible. It never changes a stored event.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// maxDifferences is how many differences a report spells out.
const maxDifferences = 20

// Report says whether the stores agree.
type Report struct {
	OK bool `json:"ok"`
	// LastPosition is the position assigned last, StoredPosition the last one
	// the event store holds; Backlog items lie between them.
	LastPosition   uint64 `json:"last_position"`
	StoredPosition uint64 `json:"stored_position"`
	Backlog        uint64 `json:"backlog"`
	// Rows are the stored events, Quarantined the items set aside.
	Rows        int64 `json:"rows"`
	Quarantined int64 `json:"quarantined"`
	// Claims are the live claims of the window, ExpectedClaims those that the
	// rows and the backlog call for. Older claims of an identity that has a
	// newer one may be missing and do not count then.
	Claims         int64 `json:"claims"`
	ExpectedClaims int64 `json:"expected_claims"`
	// Movements, Balances and OpenHolds are what the ledger of credits holds.
	Movements int64 `json:"movements"`
	Balances  int64 `json:"balances"`
	OpenHolds int64 `json:"open_holds"`
	// ReplayChunks are the chunks of session recordings.
	ReplayChunks int64 `json:"replay_chunks"`
	// Differences are the first ones found, in words.
	Differences []string `json:"differences"`
}

func (r *Report) add(format string, args ...any) {
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// AddLedger adds what an audit of the ledger has found, whose differences are
// spelt out beside those of the stores.
func (r *Report) AddLedger(a credit.Audit) {
	r.Movements, r.Balances, r.OpenHolds = a.Movements, a.Balances, a.OpenHolds
	r.Differences = append(r.Differences, a.Differences...)
	r.OK = r.OK && len(a.Differences) == 0
}

// AddReplays adds what a look at the blobs of session recordings has found.
func (r *Report) AddReplays(a replay.Audit) {
	r.ReplayChunks = a.Chunks
	r.Differences = append(r.Differences, a.Differences...)
	r.OK = r.OK && len(a.Differences) == 0
}

// Stores are the two sides.
type Stores struct {
	Intake *intakestore.Store
	Events *eventstore.Store
}

// view is both stores at moments that overlap: an item that the one side lacks
// is in the backlog of the other.
type view struct {
	intake *intakestore.Snapshot
	events *eventstore.Snapshot
	// since is the receipt time from which on claims are alive.
	since int64
}

func (s Stores) view(ctx context.Context) (*view, error) {
	v := &view{}
	var err error
	v.intake, err = s.Intake.Snapshot(func() (err error) {
		v.events, err = s.Events.Snapshot(ctx)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	v.since = v.intake.State.Received - v.intake.State.Window
	return v, nil
}

func (v *view) close() error {
	var err error
	if v.events != nil {
		err = v.events.Close()
	}
	if v.intake != nil {
		err = errors.Join(err, v.intake.Close())
	}
	return err
}

// expected calls fn for every claim that the rows and the backlog call for, in
// order of receipt.
func (v *view) expected(ctx context.Context, since int64, fn func(record.Identity, dedup.Claim) error) error {
	err := v.events.Claims(ctx, since, func(id record.Identity, received int64, fingerprint uint32) error {
		return fn(id, dedup.Claim{Received: received, Fingerprint: fingerprint})
	})
	if err != nil {
		return fmt.Errorf("read claims of rows: %w", err)
	}
	return v.intake.Records(v.events.Mark().Position+1, func(r record.Record) error {
		for _, it := range r.Items {
			if !it.Claimed || r.Received < since {
				continue
			}
			id := record.Identity{Project: r.Project, KeyKind: r.KeyKind, EventID: it.EventID}
			if err := fn(id, dedup.Claim{Received: r.Received, Fingerprint: it.Fingerprint}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Verify compares the stores as they are at one moment; they may be in use.
// Differences are in the report; an error means that the comparison could not
// be made.
func (s Stores) Verify(ctx context.Context) (Report, error) {
	v, err := s.view(ctx)
	if err != nil {
		return Report{}, err
	}
	report, err := v.verify(ctx)
	return report, errors.Join(err, v.close())
}

func (v *view) verify(ctx context.Context) (Report, error) {
	mark := v.events.Mark()
	r := Report{
		LastPosition: v.intake.State.Last, StoredPosition: mark.Position,
		Rows: mark.Rows, Quarantined: mark.Quarantined, Differences: []string{},
	}
	if mark.Position > r.LastPosition {
		r.add("the event store holds position %d, the intake store assigned only %d", mark.Position, r.LastPosition)
		return r, nil
	}
	r.Backlog = r.LastPosition - mark.Position
	if err := v.verifyRows(ctx, &r); err != nil {
		return r, err
	}
	if err := v.verifyClaims(ctx, &r); err != nil {
		return r, err
	}
	r.OK = len(r.Differences) == 0
	return r, nil
}

// verifyRows checks that there are as many rows as were stored and not taken
// away since, and that no identity has two rows which the window forbids.
func (v *view) verifyRows(ctx context.Context, r *Report) error {
	rows, err := v.events.RowCount(ctx)
	if err != nil {
		return fmt.Errorf("count rows: %w", err)
	}
	if rows != r.Rows {
		r.add("the event store has %d rows and counted %d", rows, r.Rows)
	}
	repeats, err := v.events.Repeated(ctx, maxDifferences)
	if err != nil {
		return fmt.Errorf("look for repeated rows: %w", err)
	}
	for _, p := range repeats {
		r.add("event %s is stored twice within the window: positions %d and %d, %s apart", name(p.Identity),
			p.First, p.Second, time.Duration(p.SecondReceived-p.FirstReceived)*time.Millisecond)
	}
	return nil
}

func name(id record.Identity) string {
	return fmt.Sprintf("%s (project %d, %s key)", uuid.UUID(id.EventID), id.Project, id.KeyKind)
}
