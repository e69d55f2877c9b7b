package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
)

// unsure is a store whose COMMITs are not confirmed as planned.
type unsure struct {
	*ledger.Store

	groups atomic.Int64
	// plan says of a group, numbered from 1, whether it is committed and
	// whether that is heard.
	plan func(n int64) (lands, heard bool)
	// between is called after a COMMIT that was not heard.
	between func()
}

// Apply implements credit.Ledger.
func (u *unsure) Apply(ctx context.Context, g credit.Group) error {
	lands, heard := u.plan(u.groups.Add(1))
	if !lands {
		// Everything is decided, and then the transaction is gone.
		undo := &credit.Op{
			ProjectID: g.Ops[0].ProjectID, Subject: credit.Subject{Customer: "ada", CreditType: "main"},
			Decide: func(*credit.State) (credit.Effect, error) { return credit.Effect{}, errUndo },
		}
		g.Ops = append(slices.Clip(g.Ops), undo)
	}
	err := u.Store.Apply(ctx, g)
	switch {
	case lands && (heard || err != nil):
		return err
	case !lands && !errors.Is(err, errUndo):
		return fmt.Errorf("the group was to be undone: %w", err)
	}
	if u.between != nil {
		u.between()
	}
	return fault.New(api.CodeUnavailable, "the database did not confirm the change").With("applied", "unknown")
}

var errUndo = errors.New("undone by the test")

// through makes a service on a store whose COMMITs are not all confirmed.
func (b *bench) through(t *testing.T, u *unsure) *bench {
	t.Helper()
	u.Store = ledger.New(b.db)
	other := *b
	other.service = credit.NewService(credit.Params{
		Store: u, Workers: 1, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(b.db.Keys().AddCounts), Clock: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(other.service.Close)
	return &other
}

// K2: eight at once charge the whole balance with eight keys. Whether a COMMIT
// was lost before or after it landed: one hears success, once, and the others
// are refused because of what is really there.
func TestVerdictsAfterLostCommits(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]func(n int64) (lands, heard bool){
		"the first lands":        func(n int64) (bool, bool) { return true, n != 1 },
		"the first is gone":      func(n int64) (bool, bool) { return n != 1, n != 1 },
		"two are gone":           func(n int64) (bool, bool) { return n > 2, n > 2 },
		"one gone, one lands":    func(n int64) (bool, bool) { return n > 1, n > 2 },
		"every other is unheard": func(n int64) (bool, bool) { return n%4 != 1, n%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, b *bench) {
				if _, err := b.move(t, credit.Topup, "t", "ada", "100"); err != nil {
					t.Fatal(err)
				}
				broken := b.through(t, &unsure{plan: plan})
				var made, refused atomic.Int64
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						m, err := broken.move(t, credit.Charge, fmt.Sprint("k", i), "ada", "100")
						switch {
						case err == nil && !m.Replayed:
							made.Add(1)
						case fault.CodeOf(err) == api.CodeInsufficientCredits:
							refused.Add(1)
						default:
							t.Errorf("%+v %v", m, err)
						}
					})
				}
				all.Wait()
				if made.Load() != 1 || refused.Load() != 7 || b.count(t, "movements WHERE kind = 'charge'") != 1 {
					t.Errorf("%d made, %d refused", made.Load(), refused.Load())
				}
				b.want(t, "ada", "main", "0/0")
			})
		})
	}
}

// K2: a refusal that rested on what was not committed is not heard.
func TestRefusalOfALostCommit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		if _, err := b.move(t, credit.Topup, "t", "ada", "5"); err != nil {
			t.Fatal(err)
		}
		broken := b.through(t, &unsure{
			plan: func(n int64) (bool, bool) { return n > 1, n > 1 },
			between: func() { // and meanwhile somebody pays in
				if _, err := b.move(t, credit.Topup, "t2", "ada", "5"); err != nil {
					t.Error(err)
				}
			},
		})
		if _, err := broken.move(t, credit.Charge, "k", "ada", "10"); err != nil {
			t.Errorf("refused for a balance that was never there: %v", err)
		}
		b.want(t, "ada", "main", "0/0")
	})
}

// Whatever is heard of a COMMIT that stays unknown, the same request finds what
// has become of it.
func TestCommitStaysUnknown(t *testing.T) {
	t.Parallel()
	for name, lands := range map[string]bool{"landed": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, b *bench) {
				if _, err := b.move(t, credit.Topup, "t", "ada", "10"); err != nil {
					t.Fatal(err)
				}
				broken := b.through(t, &unsure{plan: func(n int64) (bool, bool) { return lands && n == 1, false }})
				_, err := broken.move(t, credit.Charge, "k", "ada", "10")
				if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["applied"] != "unknown" {
					t.Fatal(err)
				}
				m, err := b.move(t, credit.Charge, "k", "ada", "10")
				if err != nil || m.Replayed != lands {
					t.Errorf("%+v %v", m, err)
				}
				b.want(t, "ada", "main", "0/0")
			})
		})
	}
}
