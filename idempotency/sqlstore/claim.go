package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// claimAttempts bounds how often a claim begins anew because the row that was
// in its way went before it was read.
const claimAttempts = 10

var errContended = errors.New("the idempotency key changes faster than it can be read")

// claim is the first thing a transaction does. It makes the caller the owner
// of the key, or judges the request by the record that is in the way, which it
// reads in a statement of its own: the one that made it may have committed
// since this transaction's first statement.
func (s *Store) claim(ctx context.Context, tx *sql.Tx, r *idempotency.Request, lease time.Duration) (idempotency.Claim, error) {
	if err := checkRef(r.Ref()); err != nil {
		return idempotency.Claim{}, err
	}
	token := newToken()
	args, err := s.claimArgs(r, token, lease)
	if err != nil {
		return idempotency.Claim{}, err
	}
	for range claimAttempts {
		n, err := exec(ctx, tx, s.sql.insert, args...)
		if err != nil {
			return idempotency.Claim{}, fmt.Errorf("claim an idempotency key: %w", err)
		}
		if n == 1 {
			return idempotency.Claim{Owner: idempotency.Owner{Token: token, Epoch: 1}}, nil
		}
		rec, now, found, err := s.find(ctx, tx, r.Ref())
		if err != nil {
			return idempotency.Claim{}, err
		}
		if !found { // it was forgotten in between
			continue
		}
		j := idempotency.Judge(r, &rec, now)
		if j.Verdict != idempotency.Fresh {
			return idempotency.Claim{Judgement: j, Record: rec}, nil
		}
		claim, ok, err := s.takeOver(ctx, tx, &rec, args)
		if ok || err != nil {
			return claim, err
		}
	}
	return idempotency.Claim{}, errContended
}

// claimArgs are the parameters of the statements that claim.
func (s *Store) claimArgs(r *idempotency.Request, token [16]byte, lease time.Duration) ([]any, error) {
	printed, err := r.Policy.Compare.Print(r).MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode a fingerprint: %w", err)
	}
	tombstone := []byte{}
	if r.Policy.Retention.Tombstone != nil {
		if tombstone, err = r.Policy.Retention.Tombstone.Print(r).MarshalBinary(); err != nil {
			return nil, fmt.Errorf("encode a fingerprint: %w", err)
		}
	}
	return []any{
		s.now(), r.Scope, r.Policy.Namespace, r.Key, token[:], lease.Microseconds(), printed, tombstone,
		span(r.Policy.Retention.Key),
	}, nil
}

// takeOver claims a row that was read as abandoned, free or forgotten, if it
// is still as it was read.
func (s *Store) takeOver(
	ctx context.Context, tx *sql.Tx, rec *idempotency.Record, args []any,
) (idempotency.Claim, bool, error) {
	anew, lease := 1, int64(0)
	if rec.State == idempotency.Claimed {
		lease = rec.Owner.ExpiresAt.UnixMicro()
		if rec.KeyExpiresAt.IsZero() || rec.Owner.ExpiresAt.Before(rec.KeyExpiresAt) {
			anew = 0
		}
	}
	n, err := exec(ctx, tx, s.sql.takeOver, append(args, anew, rec.Owner.Epoch, string(rec.State), lease)...)
	if err != nil {
		return idempotency.Claim{}, false, fmt.Errorf("take an idempotency key over: %w", err)
	}
	token, _ := args[4].([]byte)
	claim := idempotency.Claim{Owner: idempotency.Owner{Token: [16]byte(token), Epoch: rec.Owner.Epoch + 1}}
	if anew == 0 {
		claim.Record = *rec
	}
	return claim, n == 1, nil
}

func exec(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// complete takes the key for good.
func (s *Store) complete(
	ctx context.Context, tx *sql.Tx, r *idempotency.Request, o idempotency.Owner, a *idempotency.Answer,
) (int64, error) {
	kept, err := keptAnswer(r.Policy, a)
	if err != nil {
		return 0, err
	}
	ref := r.Ref()
	n, err := exec(ctx, tx, s.sql.complete, s.now(), ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch,
		kept.status, kept.contentType, kept.header, kept.body, a.Resource.Kind, a.Resource.ID,
		span(r.Policy.Retention.Answer), span(r.Policy.Retention.Key))
	if err != nil {
		return 0, fmt.Errorf("complete an idempotency key: %w", err)
	}
	return n, nil
}
