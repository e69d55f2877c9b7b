package sqlstore

import (
	"context"
	"errors"
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

// errTwice says that a group has two members with one key.
var errTwice = errors.New("two members of a group have the same idempotency key")

// ClaimGroup is the claim of [Store.Do] for several requests that share a
// transaction: it must be the first thing the transaction does. No two members
// may have the same key. Keys are locked in their order, so that groups cannot
// deadlock, but fewer statements cross the network. A member that is refused
// its work must be given to [Store.FreeGroup], one that has done it to
// [Store.CompleteGroup], in the same transaction.
func (s *Store) ClaimGroup(ctx context.Context, batch Batch, members []*Member) error {
	open := make([]*groupClaim, len(members))
	for i, m := range members {
		if err := checkRef(m.Request.Ref()); err != nil {
			return err
		}
		args, err := s.claimArgs(claimant{request: m.Request, token: m.Token})
		if err != nil {
			return err
		}
		m.Claim, m.Mine = idempotency.Claim{}, false
		open[i] = &groupClaim{Member: m, ref: m.Request.Ref(), args: args}
	}
	slices.SortFunc(open, func(a, b *groupClaim) int { return compareRefs(a.ref, b.ref) })
	for i := range open[min(1, len(open)):] {
		if open[i].ref == open[i+1].ref {
			return errTwice
		}
	}
	for range claimAttempts {
		if len(open) == 0 {
			return nil
		}
		var err error
		if open, err = s.claimOpen(ctx, batch, open); err != nil {
			return err
		}
	}
	return errContended
}

// groupClaim is a member that is being claimed or judged.
type groupClaim struct {
	*Member

	ref  idempotency.Ref
	args []any
	// owned says that the claim is the member's, found that there is a record
	// in its way, which is in row.
	owned, found bool
	row          row
}

// claimOpen claims or judges members, in three batches: claims, records that
// are in the way, and those of them that may be taken over. It returns the
// members that have to begin anew, because what was in their way has gone.
func (s *Store) claimOpen(ctx context.Context, batch Batch, open []*groupClaim) ([]*groupClaim, error) {
	inserts := make([]Statement, len(open))
	for i, c := range open {
		inserts[i] = Statement{Text: s.sql.insert, Args: c.args, Row: c.own}
	}
	if err := batch(ctx, inserts); err != nil {
		return nil, fmt.Errorf("claim idempotency keys: %w", err)
	}
	taken := slices.DeleteFunc(open, func(c *groupClaim) bool { return c.owned })
	finds := make([]Statement, len(taken))
	for i, c := range taken {
		c.found = false
		finds[i] = Statement{Text: s.sql.find, Args: []any{s.now(), c.ref.Scope, c.ref.Namespace, c.ref.Key}, Row: c.read}
	}
	if err := batch(ctx, finds); err != nil {
		return nil, fmt.Errorf("read idempotency keys: %w", err)
	}
	var again []*groupClaim
	var takeOvers []Statement
	for _, c := range taken {
		t, fresh, err := c.judge()
		switch {
		case err != nil:
			return nil, err
		case fresh:
			again = append(again, c)
		}
		if fresh && c.found { // abandoned, free or forgotten by another form or policy
			takeOvers = append(takeOvers, Statement{Text: s.sql.takeOver, Args: t.takeOverArgs(), Row: c.own})
		}
	}
	if err := batch(ctx, takeOvers); err != nil {
		return nil, fmt.Errorf("take over idempotency keys: %w", err)
	}
	return slices.DeleteFunc(again, func(c *groupClaim) bool { return c.owned }), nil
}

// own reads what a statement says that has claimed the key.
func (c *groupClaim) own(scan func(...any) error) error {
	c.owned = true
	c.Claim = idempotency.Claim{Owner: idempotency.Owner{Token: c.Token}}
	var expires, now int64
	made := &c.Claim.Record.Resource
	return scan(&c.Claim.Owner.Epoch, &expires, &made.Kind, &made.ID, &now)
}

// read reads the record that is in the way.
func (c *groupClaim) read(scan func(...any) error) error {
	c.found = true
	return c.row.scan(scan)
}

// judge judges the request by the record in its way, and says whether it may
// claim the key all the same.
func (c *groupClaim) judge() (t taken, fresh bool, err error) {
	if !c.found {
		return taken{}, true, nil
	}
	rec, err := c.row.record(c.ref)
	if err != nil {
		return taken{}, false, err
	}
	j := idempotency.Judge(c.Request, &rec, c.row.at())
	if j.Verdict == idempotency.Fresh {
		return taken{rec: rec, now: c.row.at(), args: c.args}, true, nil
	}
	c.Mine = rec.State == idempotency.Done && rec.Owner.Token == c.Token
	c.Claim = idempotency.Claim{Judgement: j, Record: rec}
	return taken{}, false, nil
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
