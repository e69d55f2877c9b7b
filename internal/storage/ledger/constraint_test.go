package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// What the code must never write, the database refuses.
func TestConstraints(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO movements (id, project_id, customer_id, credit_type_id, balance_after, created_at, kind, amount, delta, %s)
SELECT '%s', project_id, customer_id, credit_type_id, 0, 0, %s FROM movements WHERE work_key = 'c'`
	unused := strings.Repeat("0", 36)
	onBoth(t, func(t *testing.T, b *bench) {
		b.live(t)
		for name, text := range map[string]string{
			"a negative available":       `UPDATE balances SET posted = held - 1 WHERE held > 0`,
			"held below zero":            `UPDATE balances SET held = -1`,
			"out of range":               `UPDATE balances SET posted = 1000000000000000000`,
			"another rule for negatives": `UPDATE balances SET allow_negative = 1`,
			"more left than granted":     `UPDATE grants SET remaining = amount + 1`,
			"more pinned than left":      `UPDATE grants SET pinned = remaining + 1`,
			"a hold of nothing":          `UPDATE holds SET amount = 0`,
			"more used than held":        `UPDATE holds SET captured = amount + 1`,
			"a closed hold that is open": `UPDATE holds SET closed_at = 1 WHERE state = 'open'`,
			"a pin of nothing":           `UPDATE hold_pins SET amount = 0`,
			"an altered entry":           `UPDATE movements SET delta = 1`,
			"an altered note":            `UPDATE movements SET reason = 'other'`,
			"an entry that is removed":   `DELETE FROM movements WHERE work_key = 'c'`,
			"two movements of a key":     fmt.Sprintf(insert, "work_key", unused, `'charge', 1, -1, 'c'`),
			"a charge without a key":     fmt.Sprintf(insert, "work_key", unused, `'charge', 1, -1, NULL`),
			"an expiry with a key":       fmt.Sprintf(insert, "work_key", unused, `'expiry', 1, -1, 'new'`),
			"an entry of nothing":        fmt.Sprintf(insert, "work_key", unused, `'charge', 0, 0, 'new'`),
			"a reversal of nothing":      fmt.Sprintf(insert, "reversal_of", unused, `'reversal', 1, 1, NULL`),
			"a kind that is not":         fmt.Sprintf(insert, "work_key", unused, `'gift', 1, 1, 'new'`),
			"two captures of a hold": fmt.Sprintf(insert, "hold", unused,
				`'capture', 1, -1, (SELECT hold FROM movements WHERE hold IS NOT NULL)`),
		} {
			err := b.db.WriteBatch(t.Context(), func(batch *sqldb.Batch) error {
				return batch.Run(t.Context(), []sqldb.Statement{{Text: text}})
			})
			if err == nil {
				t.Errorf("the database took %s", name)
			}
		}
	})
}

// External ids, credit types and keys are compared exactly: no two spellings
// are one.
func TestIdsAreExact(t *testing.T) {
	t.Parallel()
	spellings := []string{
		"ada", "Ada", "ADA", "ada ", " ada", "\u00e4da", "a\u0308da", "ád\u0061", "a\u0301da", "ada\u200b", "ａda", "аda", "a'd\"a%_\\", "ß", "ss", "ı", "i",
		strings.Repeat("ж", 63), "💳", "\u00a0", "null", "0", "00",
	}
	onBoth(t, func(t *testing.T, b *bench) {
		var ops []*credit.Op
		for i, id := range spellings {
			ops = append(ops, b.op(t, order{kind: credit.Topup, key: id, customer: id, typ: strings.TrimSpace(id) + "!", amount: credit.Amount(i + 1)}))
		}
		b.must(t, ops...)
		for i, id := range spellings {
			if err := ops[i].Outcome.Err; err != nil {
				t.Errorf("%q: %v", id, err)
			}
			b.want(t, id, strings.TrimSpace(id)+"!", credit.Amount(i+1).String()+"/0")
		}
		if n := b.count(t, "customers"); n != len(spellings) {
			t.Errorf("%d customers of %d ids", n, len(spellings))
		}
	})
}

// K8: what a repeat hears depends on the time, not on whether a sweep has run
// before it is judged.
func TestSweepBetweenClaimAndRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first := b.op(t, order{kind: credit.Topup, key: "k", customer: "ada", amount: 10})
		b.must(t, first)
		heard := map[string]string{}
		for _, when := range []string{"kept", "expired", "swept"} {
			if when == "expired" {
				b.age(t, 2*time.Hour+time.Minute)
			}
			if when == "swept" {
				if n, err := b.db.Keys().Sweep(t.Context()); err != nil || n != 1 {
					t.Fatalf("swept %d, %v", n, err)
				}
			}
			same := b.op(t, order{kind: credit.Topup, key: "k", customer: "ada", amount: 10})
			spelt := b.op(t, order{kind: credit.Topup, key: "k", customer: "ada", amount: 10})
			spelt.Key.Body = []byte(`{"amount": 0.000010, "credit_type": "main", "reason": "again"}`)
			more := b.op(t, order{kind: credit.Topup, key: "k", customer: "ada", amount: 11})
			for name, op := range map[string]*credit.Op{"same": same, "spelt": spelt, "more": more} {
				b.must(t, op)
				o := &op.Outcome
				switch {
				case o.Err != nil:
					heard[when+" "+name] = "conflict"
				case !o.Key.Replayed:
					heard[when+" "+name] = "done again"
				case o.Key.Answer != nil:
					heard[when+" "+name] = "the answer"
				default:
					heard[when+" "+name] = "the movement"
				}
			}
		}
		for name, want := range map[string]string{
			"kept same": "the answer", "kept spelt": "conflict", "kept more": "conflict",
			"expired same": "the movement", "expired spelt": "the movement", "expired more": "conflict",
			"swept same": "the movement", "swept spelt": "the movement", "swept more": "conflict",
		} {
			if heard[name] != want {
				t.Errorf("%s heard %s, want %s", name, heard[name], want)
			}
		}
		b.want(t, "ada", "main", "0.00001/0")
	})
}

// age makes every answer as much older.
func (b *bench) age(t *testing.T, by time.Duration) {
	t.Helper()
	err := b.db.WriteBatch(t.Context(), func(batch *sqldb.Batch) error {
		return batch.Run(t.Context(), []sqldb.Statement{{
			Text: `UPDATE idempotency_keys SET answer_expires_at = answer_expires_at - CAST($1 AS bigint)`, Args: []any{by.Microseconds()},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
}
