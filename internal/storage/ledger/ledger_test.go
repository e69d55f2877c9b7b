package ledger_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/proptest"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childRun) != "" {
		os.Exit(child())
	}
	proptest.Checks(20)
	pgtest.Main(m)
}

var engines = map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL}

// bench is a service on a store of its own.
type bench struct {
	db      *sqldb.DB
	service *credit.Service
	project string
	now     func() time.Time
}

func newBench(t testing.TB, open storagetest.OpenFunc) *bench {
	t.Helper()
	return newBenchOn(t, open(t, storagetest.Accounts))
}

// newBenchOn is newBench on a store with accounts.
func newBenchOn(t testing.TB, o sqldb.Options) *bench {
	t.Helper()
	b := &bench{db: storagetest.Open(t, o), project: storagetest.SetupOf(t, o).Project.ID, now: time.Now}
	b.service = credit.NewService(credit.Params{
		Store: ledger.New(b.db), Workers: 4, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(b.db.Keys().AddCounts), Clock: func() time.Time { return b.now() }, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(b.service.Close)
	return b
}

// move asks for a movement of the main credits.
func (b *bench) move(t testing.TB, kind credit.Kind, key, customer, amount string) (credit.Moved, error) {
	t.Helper()
	body := fmt.Appendf(nil, `{"credit_type":"main","amount":%q}`, amount)
	return b.service.Move(t.Context(), credit.MoveParams{
		ProjectID: b.project, Customer: customer, Kind: kind, Key: key, Body: body,
		Decode: func() (credit.Move, error) {
			a, err := credit.ParseAmount(amount)
			return credit.Move{CreditType: "main", Amount: a, Grant: credit.Grant{Priority: credit.DefaultPriority}}, err
		},
		Render: func(m *credit.Movement, balance credit.Balance) ([]byte, error) {
			return json.Marshal(map[string]string{"id": m.ID, "posted": balance.Posted.String()})
		},
	})
}

func TestMove(t *testing.T) {
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, open)
			if _, err := b.move(t, credit.Charge, "k0", "ada", "1"); fault.CodeOf(err) != api.CodeCustomerNotFound {
				t.Fatal(err)
			}
			first, err := b.move(t, credit.Topup, "k1", "ada", "100")
			if err != nil || first.Replayed {
				t.Fatal(err)
			}
			again, err := b.move(t, credit.Topup, "k1", "ada", "100")
			if err != nil || !again.Replayed || string(again.Answer.Body) != string(first.Answer.Body) {
				t.Fatalf("%v %+v", err, again)
			}
			if _, err := b.move(t, credit.Charge, "k1", "ada", "100"); !errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}) {
				t.Fatal(err)
			}
			if _, err := b.move(t, credit.Charge, "k2", "ada", "100.000001"); fault.CodeOf(err) != api.CodeInsufficientCredits {
				t.Fatal(err)
			}
			if _, err := b.move(t, credit.Charge, "k2", "ada", "0.3"); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var fresh, replayed atomic.Int64
			for range 50 {
				all.Go(func() {
					m, err := b.move(t, credit.Charge, "k3", "ada", "99.7")
					if err != nil {
						t.Error(err)
					}
					if m.Replayed {
						replayed.Add(1)
					} else {
						fresh.Add(1)
					}
				})
			}
			all.Wait()
			if fresh.Load() != 1 || replayed.Load() != 49 {
				t.Errorf("%d first, %d replays", fresh.Load(), replayed.Load())
			}
		})
	}
}

func BenchmarkMove(b *testing.B) {
	for name, open := range engines {
		for _, customers := range []int64{1, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, customers), func(b *testing.B) {
				h := newBench(b, open)
				for i := range customers {
					if _, err := h.move(b, credit.Topup, fmt.Sprintf("t%d", i), fmt.Sprintf("c%d", i), "100000000"); err != nil {
						b.Fatal(err)
					}
					if i >= 200 {
						break
					}
				}
				var n atomic.Int64
				b.SetParallelism(64)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						i := n.Add(1)
						if _, err := h.move(b, credit.Topup, fmt.Sprintf("k%d", i), fmt.Sprintf("c%d", i%customers), "1"); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}
