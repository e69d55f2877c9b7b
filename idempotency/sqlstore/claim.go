package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// claimAttempts bounds how often a claim begins anew because the row that was
// in its way went before it was read.
const claimAttempts = 10

var errContended = errors.New("the idempotency key changes faster than it can be read")

// claimant is who wants a key. Its token is the same when the transaction is
// run again, so that it knows its own claim.
type claimant struct {
	request *idempotency.Request
	token   [16]byte
	lease   time.Duration
}

// claim is the first thing a transaction does. It makes the caller the owner
// of the key, or judges the request by the record that is in the way, which it
// reads in a statement of its own: the one that made it may have committed
// since this transaction's first statement.
func (s *Store) claim(ctx context.Context, tx *sql.Tx, c claimant) (idempotency.Claim, error) {
	ref := c.request.Ref()
	if err := checkRef(ref); err != nil {
		return idempotency.Claim{}, err
	}
	of, err := printsOf(c.request)
	if err != nil {
		return idempotency.Claim{}, err
	}
	args := s.claimArgs(c, of)
	for range claimAttempts {
		claim, ok, err := s.own(ctx, tx, c, s.sql.insert, args)
		if ok || err != nil {
			return claim, err
		}
		rec, now, found, err := s.find(ctx, tx, ref)
		if err != nil {
			return idempotency.Claim{}, err
		}
		s.step("read")
		if !found { // it was forgotten in between
			continue
		}
		if rec.State == idempotency.Claimed && rec.Owner.Token == c.token { // its COMMIT was not confirmed
			return idempotency.Claim{Owner: rec.Owner, Record: rec}, nil
		}
		j := idempotency.Judge(c.request, &rec, now)
		if j.Verdict != idempotency.Fresh {
			return idempotency.Claim{Judgement: j, Record: rec}, nil
		}
		claim, ok, err = s.takeOver(ctx, tx, c, taken{rec: rec, now: now, args: args})
		if ok || err != nil {
			return claim, err
		}
	}
	return idempotency.Claim{}, errContended
}

// prints are the fingerprints of a request as they are stored.
type prints struct{ compare, tombstone []byte }

func printsOf(r *idempotency.Request) (p prints, err error) {
	if p.compare, err = r.Policy.Compare.Print(r).MarshalBinary(); err != nil {
		return p, fmt.Errorf("encode a fingerprint: %w", err)
	}
	p.tombstone = []byte{}
	if r.Policy.Retention.Tombstone == nil {
		return p, nil
	}
	if p.tombstone, err = r.Policy.Retention.Tombstone.Print(r).MarshalBinary(); err != nil {
		return p, fmt.Errorf("encode a fingerprint: %w", err)
	}
	return p, nil
}

// claimArgs are the parameters of the statements that claim.
func (s *Store) claimArgs(c claimant, of prints) []any {
	p := c.request.Policy
	return []any{
		s.now(), c.request.Scope, p.Namespace, c.request.Key, c.token[:], c.lease.Microseconds(), of.compare, of.tombstone,
		span(p.Retention.Key),
	}
}

// taken is a record that is to be taken over, as it was read at a time, and the
// parameters of the claim.
type taken struct {
	rec  idempotency.Record
	now  time.Time
	args []any
}

// takeOver claims a row that was read as abandoned, free or forgotten, if it
// is still as it was read.
func (s *Store) takeOver(ctx context.Context, tx *sql.Tx, c claimant, t taken) (idempotency.Claim, bool, error) {
	claim, ok, err := s.own(ctx, tx, c, s.sql.takeOver, t.takeOverArgs())
	if !t.anew() {
		made := claim.Record.Resource // also what was made since the row was read
		claim.Record = t.rec
		claim.Record.Resource = made
	}
	return claim, ok, err
}

// anew says whether the work begins anew: what is only abandoned goes on.
func (t *taken) anew() bool {
	return t.rec.State != idempotency.Claimed || past(t.rec.KeyExpiresAt, t.now)
}

// takeOverArgs are the parameters of the statement that takes a row over. The
// token of the last owner tells it from a row of the same key that was made
// since.
func (t *taken) takeOverArgs() []any {
	anew, lease := 0, int64(0)
	if t.anew() {
		anew = 1
	}
	if t.rec.State == idempotency.Claimed {
		lease = t.rec.Owner.ExpiresAt.UnixMicro()
	}
	return slices.Concat(t.args, []any{anew, t.rec.Owner.Epoch, string(t.rec.State), lease, t.rec.Owner.Token[:]})
}

// own runs a statement that claims a row, and says whether it did. The engine
// may have worked out the lease before it waited for a transaction that was in
// its way: what is left of it must be worth having.
func (s *Store) own(ctx context.Context, tx *sql.Tx, c claimant, text string, args []any) (idempotency.Claim, bool, error) {
	claim := idempotency.Claim{Owner: idempotency.Owner{Token: c.token}}
	o := &claim.Owner
	made := &claim.Record.Resource
	var expires, now int64
	err := tx.QueryRowContext(ctx, text, args...).Scan(&o.Epoch, &expires, &made.Kind, &made.ID, &now)
	if errors.Is(err, sql.ErrNoRows) {
		return idempotency.Claim{}, false, nil
	}
	if err != nil {
		return idempotency.Claim{}, false, fmt.Errorf("claim an idempotency key: %w", err)
	}
	if lease := c.lease.Microseconds(); lease > 0 && expires-now < lease/2 {
		ref := c.request.Ref()
		err := tx.QueryRowContext(ctx, s.sql.renew+" RETURNING lease_expires_at",
			s.now(), ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch, lease).Scan(&expires)
		if err != nil {
			return idempotency.Claim{}, false, fmt.Errorf("claim an idempotency key: %w", err)
		}
	}
	o.ExpiresAt = time.UnixMicro(expires).UTC()
	return claim, true, nil
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
	args, err := s.completeArgs(r, o, a)
	if err != nil {
		return 0, err
	}
	n, err := exec(ctx, tx, s.sql.complete, args...)
	if err != nil {
		return 0, fmt.Errorf("complete an idempotency key: %w", err)
	}
	return n, nil
}

// completeArgs are the parameters of the statement that takes a key for good.
func (s *Store) completeArgs(r *idempotency.Request, o idempotency.Owner, a *idempotency.Answer) ([]any, error) {
	kept, err := keptAnswer(r.Policy, a)
	if err != nil {
		return nil, err
	}
	ref := r.Ref()
	return []any{
		s.now(), ref.Scope, ref.Namespace, ref.Key, o.Token[:], o.Epoch,
		kept.status, kept.contentType, kept.header, kept.body, a.Resource.Kind, a.Resource.ID,
		span(r.Policy.Retention.Answer), span(r.Policy.Retention.Key),
	}, nil
}
