package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

	prints prints
}

// errTwice says that a group has two members with one key.
var errTwice = errors.New("two members of a group have the same idempotency key")

// ClaimGroup is the claim of [Store.Do] for several requests that share a
// transaction: it must be the first thing the transaction does. No two members
// may have the same key. Keys are locked in their order, so that groups cannot
// deadlock, but fewer statements cross the network. A member that is refused
// its work must be given to [Store.FreeGroup], one that has done it to
// [Store.CompleteGroup], in the same transaction.
//
// On SQLite a transaction that writes has the database for itself, and one that
// has only read cannot write once another has: that a key is not there is as
// good as a claim, and its row is written once, by CompleteGroup.
func (s *Store) ClaimGroup(ctx context.Context, batch Batch, members []*Member) error {
	open := make([]*groupClaim, len(members))
	for i, m := range members {
		c, err := s.groupClaim(m)
		if err != nil {
			return err
		}
		open[i] = c
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
		if err := s.claimNew(ctx, batch, open); err != nil {
			return err
		}
		var err error
		if open, err = s.judgeTaken(ctx, batch, open); err != nil {
			return err
		}
	}
	return errContended
}

// groupClaim is a member that is being claimed or judged.
type groupClaim struct {
	*Member

	ref idempotency.Ref
	// owned says that the claim is the member's, found that there is a record
	// in its way, which is in row.
	owned, found bool
	row          row
}

func (s *Store) groupClaim(m *Member) (*groupClaim, error) {
	c := &groupClaim{Member: m, ref: m.Request.Ref()}
	if err := checkRef(c.ref); err != nil {
		return nil, err
	}
	var err error
	m.prints, err = printsOf(m.Request)
	m.Claim, m.Mine = idempotency.Claim{}, false
	return c, err
}

// rowsAtOnce is how many rows a statement of a group is about. On SQLite, where
// a statement crosses no network, more than one cost more than they save.
func (s *Store) rowsAtOnce() int {
	if s.options.Dialect == SQLite {
		return 1
	}
	return groupRows
}

// groupRows is the largest number of rows of one statement.
const groupRows = 64

// claimNew claims the keys that are not there.
func (s *Store) claimNew(ctx context.Context, batch Batch, open []*groupClaim) error {
	if s.options.Dialect == SQLite {
		return nil
	}
	byRef := make(map[idempotency.Ref]*groupClaim, len(open))
	claims := Rows{Text: s.sql.claimAll, Each: s.sql.claimEach, Shared: []any{s.now()}}
	for _, c := range open {
		byRef[c.ref] = c
		claims.Args = append(claims.Args, []any{
			c.ref.Scope, c.ref.Namespace, c.ref.Key, c.Token[:], c.prints.compare, c.prints.tombstone, span(c.Request.Policy.Retention.Key),
		})
	}
	claims.Row = func(scan func(...any) error) error {
		var ref idempotency.Ref
		var epoch, now int64
		if err := scan(&ref.Scope, &ref.Namespace, &ref.Key, &epoch, &now); err != nil {
			return err
		}
		byRef[ref].own(epoch, now)
		return nil
	}
	if err := batch(ctx, claims.Statements(s.rowsAtOnce())); err != nil {
		return fmt.Errorf("claim idempotency keys: %w", err)
	}
	return nil
}

// own notes that a key that was not there is the member's.
func (c *groupClaim) own(epoch, now int64) {
	c.owned = true
	c.Claim = idempotency.Claim{Owner: idempotency.Owner{Token: c.Token, Epoch: epoch, ExpiresAt: time.UnixMicro(now).UTC()}}
}

// judgeTaken judges the members that have claimed nothing by what is in their
// way, and takes over what may be taken over. It returns those that have to
// begin anew, because what was in their way has gone.
func (s *Store) judgeTaken(ctx context.Context, batch Batch, open []*groupClaim) ([]*groupClaim, error) {
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
		if !c.found && s.options.Dialect == SQLite {
			c.own(1, s.now().Int64)
			continue
		}
		t, fresh, err := c.judge()
		switch {
		case err != nil:
			return nil, err
		case fresh:
			again = append(again, c)
		}
		if fresh && c.found { // abandoned, free or forgotten by another form or policy
			t.args = s.claimArgs(claimant{request: c.Request, token: c.Token}, c.prints)
			takeOvers = append(takeOvers, Statement{Text: s.sql.takeOver, Args: t.takeOverArgs(), Row: c.takeOver})
		}
	}
	if err := batch(ctx, takeOvers); err != nil {
		return nil, fmt.Errorf("take over idempotency keys: %w", err)
	}
	return slices.DeleteFunc(again, func(c *groupClaim) bool { return c.owned }), nil
}

// takeOver reads what the statement says that has taken a key over.
func (c *groupClaim) takeOver(scan func(...any) error) error {
	var epoch, expires, now int64
	var made idempotency.Resource
	if err := scan(&epoch, &expires, &made.Kind, &made.ID, &now); err != nil {
		return err
	}
	c.own(epoch, now)
	c.Claim.Record.Resource = made
	return nil
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
		return taken{rec: rec, now: c.row.at()}, true, nil
	}
	c.Mine = rec.State == idempotency.Done && rec.Owner.Token == c.Token
	c.Claim = idempotency.Claim{Judgement: j, Record: rec}
	return taken{}, false, nil
}

// CompleteGroup takes the keys of members that have done their work; answers
// has one for each.
func (s *Store) CompleteGroup(members []*Member, answers []idempotency.Answer) ([]Statement, error) {
	ends := Rows{Text: s.sql.finishAll, Each: s.sql.finishEach, Shared: []any{s.now()}}
	for i, m := range members {
		a := &answers[i]
		kept, err := keptAnswer(m.Request.Policy, a)
		if err != nil {
			return nil, err
		}
		ref, keep := m.Request.Ref(), &m.Request.Policy.Retention
		ends.Args = append(ends.Args, []any{
			ref.Scope, ref.Namespace, ref.Key, m.Token[:], m.prints.compare, m.prints.tombstone, span(keep.Key), m.Claim.Owner.Epoch,
			kept.status, kept.contentType, kept.header, kept.body, a.Resource.Kind, a.Resource.ID, span(keep.Answer),
		})
	}
	return ends.Statements(s.rowsAtOnce()), nil
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
