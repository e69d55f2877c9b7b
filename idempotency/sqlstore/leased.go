package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Claim implements [idempotency.Store]. A repeat, a conflict and a wait write
// nothing: only what looks free is claimed, and the claim decides. If its
// COMMIT is not confirmed, it asks again and knows its own claim; a claim of
// which nobody hears ends with its lease.
func (s *Store) Claim(ctx context.Context, r idempotency.Request, lease time.Duration) (claim idempotency.Claim, err error) {
	if claim, err = s.look(ctx, &r); err != nil || claim.Judgement.Verdict != idempotency.Fresh {
		return claim, err
	}
	c := claimant{request: &r, token: newToken(), lease: lease}
	for range runAttempts {
		err = s.options.Write(ctx, func(tx *sql.Tx) (err error) {
			claim, err = s.claim(ctx, tx, c)
			return err
		})
		if err == nil {
			s.step("leased")
			return claim, nil
		}
		if !s.options.Unknown(err) || ctx.Err() != nil {
			break
		}
	}
	return idempotency.Claim{}, err
}

// Renew implements [idempotency.Store].
func (s *Store) Renew(ctx context.Context, ref idempotency.Ref, o idempotency.Owner, lease time.Duration) error {
	return s.asOwner(ctx, func(tx *sql.Tx) (int64, error) {
		return exec(ctx, tx, s.sql.renew, s.now(), ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch, lease.Microseconds())
	})
}

// Made implements [idempotency.Store].
func (s *Store) Made(ctx context.Context, ref idempotency.Ref, o idempotency.Owner, made idempotency.Resource) error {
	return s.asOwner(ctx, func(tx *sql.Tx) (int64, error) {
		return exec(ctx, tx, s.sql.made, ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch, made.Kind, made.ID)
	})
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, r idempotency.Request, o idempotency.Owner, a idempotency.Answer) error {
	s.step("answered")
	err := s.asOwner(ctx, func(tx *sql.Tx) (int64, error) {
		n, err := s.complete(ctx, tx, &r, o, &a)
		if n == 1 || err != nil {
			return n, err
		}
		return s.endedBy(ctx, tx, r.Ref(), o, idempotency.Done)
	})
	s.step("recorded")
	return err
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, ref idempotency.Ref, o idempotency.Owner) error {
	return s.asOwner(ctx, func(tx *sql.Tx) (int64, error) {
		n, err := exec(ctx, tx, s.sql.release, s.now(), ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch, []byte{})
		if n == 1 || err != nil {
			return n, err
		}
		return s.endedBy(ctx, tx, ref, o, idempotency.Free)
	})
}

// endedBy returns 1 if the owner itself has brought the key into a state
// before, when the answer to that was lost.
func (s *Store) endedBy(
	ctx context.Context, tx *sql.Tx, ref idempotency.Ref, o idempotency.Owner, state idempotency.State,
) (int64, error) {
	rec, _, found, err := s.find(ctx, tx, ref)
	if err != nil || !found || rec.State != state || rec.Owner.Token != o.Token {
		return 0, err
	}
	return 1, nil
}

// asOwner runs a write that must change one row: the owner's.
func (s *Store) asOwner(
	ctx context.Context, write func(*sql.Tx) (int64, error),
) error {
	return s.options.Write(ctx, func(tx *sql.Tx) error {
		n, err := write(tx)
		if err != nil {
			return fmt.Errorf("write to an idempotency key: %w", err)
		}
		if n != 1 {
			return idempotency.ErrLeaseLost
		}
		return nil
	})
}
