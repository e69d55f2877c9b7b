package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Statement is one statement of a group.
type Statement struct {
	Text string
	Args []any
	// Row is called for each row that the statement returns; nil if it returns
	// none that matter.
	Row func(scan func(dest ...any) error) error
}

// Batch runs statements in one transaction, in their order.
type Batch func(ctx context.Context, statements []Statement) error

// Member is one request of a group and what became of its claim.
type Member struct {
	Request *idempotency.Request
	// Token names the member as the owner of its key, however often its
	// transaction is run.
	Token [16]byte

	// Claim is filled in by [Store.ClaimGroup]. Its verdict is Fresh if the
	// member may do its work.
	Claim idempotency.Claim
	// Mine says that the key was taken by this very member, in a transaction
	// whose COMMIT was not confirmed.
	Mine bool
}

// ClaimGroup is the claim of [Store.Do] for several requests that share a
// transaction: it must be the first thing the transaction does. No two members
// may have the same key. Keys are locked in their order, so that groups cannot
// deadlock, but fewer statements cross the network. A member that is refused
// its work must be given to [Store.FreeGroup], one that has done it to
// [Store.CompleteGroup], in the same transaction.
func (s *Store) ClaimGroup(ctx context.Context, batch Batch, members []*Member) error {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b *Member) int {
		return compareRefs(a.Request.Ref(), b.Request.Ref())
	})
	inserts := make([]Statement, len(sorted))
	claimed := make([]bool, len(sorted))
	for i, m := range sorted {
		if err := checkRef(m.Request.Ref()); err != nil {
			return err
		}
		args, err := s.claimArgs(claimant{request: m.Request, token: m.Token})
		if err != nil {
			return err
		}
		inserts[i] = Statement{Text: s.sql.insert, Args: args, Row: func(scan func(...any) error) error {
			claimed[i] = true
			m.Claim.Owner = idempotency.Owner{Token: m.Token}
			var expires, now int64
			var kind, id string
			return scan(&m.Claim.Owner.Epoch, &expires, &kind, &id, &now)
		}}
	}
	for _, m := range sorted {
		m.Claim, m.Mine = idempotency.Claim{}, false
	}
	if err := batch(ctx, inserts); err != nil {
		return fmt.Errorf("claim idempotency keys: %w", err)
	}
	var taken []*Member
	for i, m := range sorted {
		if !claimed[i] {
			taken = append(taken, m)
		}
	}
	return s.judgeGroup(ctx, batch, taken)
}

// judgeGroup reads the records of keys that are taken, in statements that see
// what was committed while the claims waited.
func (s *Store) judgeGroup(ctx context.Context, batch Batch, members []*Member) error {
	finds := make([]Statement, len(members))
	rows := make([]row, len(members))
	found := make([]bool, len(members))
	for i, m := range members {
		ref := m.Request.Ref()
		finds[i] = Statement{
			Text: s.sql.find, Args: []any{s.now(), ref.Scope, ref.Namespace, ref.Key},
			Row: func(scan func(...any) error) error {
				found[i] = true
				return rows[i].scan(scan)
			},
		}
	}
	if err := batch(ctx, finds); err != nil {
		return fmt.Errorf("read idempotency keys: %w", err)
	}
	for i, m := range members {
		if !found[i] {
			return errContended
		}
		rec, err := rows[i].record(m.Request.Ref())
		if err != nil {
			return err
		}
		m.Mine = rec.Owner.Token == m.Token
		m.Claim.Judgement = idempotency.Judge(m.Request, &rec, rows[i].at())
		m.Claim.Record = rec
		if m.Claim.Judgement.Verdict == idempotency.Fresh {
			return errContended // forgotten keys are for Do alone
		}
	}
	return nil
}

// CompleteGroup takes the keys of members that have done their work; answers
// has one for each.
func (s *Store) CompleteGroup(members []*Member, answers []idempotency.Answer) ([]Statement, error) {
	statements := make([]Statement, len(members))
	for i, m := range members {
		args, err := s.completeArgs(m.Request, m.Claim.Owner, &answers[i])
		if err != nil {
			return nil, err
		}
		statements[i] = Statement{Text: s.sql.complete, Args: args}
	}
	return statements, nil
}

// FreeGroup returns statements that free the keys of members that were refused
// their work, as if they had never been claimed.
func (s *Store) FreeGroup(members []*Member) []Statement {
	statements := make([]Statement, len(members))
	for i, m := range members {
		ref := m.Request.Ref()
		statements[i] = Statement{Text: s.sql.unclaim, Args: []any{ref.Scope, ref.Namespace, ref.Key, m.Token[:]}}
	}
	return statements
}
