package ledger_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// damages are what no code of ours does, each with what the audit says of it.
// Statements are run one by one, with what guards the tables switched off.
var damages = map[string]struct {
	statements []string
	says       string
}{
	"an entry is changed": {
		[]string{`UPDATE movements SET delta = delta + 1 WHERE work_key = 'c'`}, "says that the balance after it is",
	},
	"an entry is missing": {
		[]string{`DELETE FROM movements WHERE work_key = 'c'`}, "says that the balance after it is",
	},
	"the last entry is missing": {
		[]string{`DELETE FROM movements WHERE hold IS NOT NULL`}, "posted, and its entries sum to",
	},
	"a charge gives":    {[]string{`UPDATE movements SET kind = 'charge' WHERE work_key = 'u'`}, "which is not what its kind does"},
	"posted is changed": {[]string{`UPDATE balances SET posted = posted + 1 WHERE held > 0`}, "posted, and its entries sum to"},
	"held is changed":   {[]string{`UPDATE balances SET held = held + 1 WHERE held > 0`}, "held, and its open holds sum to"},
	"a hold is closed without its balance": {
		[]string{`UPDATE holds SET state = 'released', closed_at = 1 WHERE hold_id = 'open'`}, "held, and its open holds sum to",
	},
	"a pin is missing": {[]string{`DELETE FROM hold_pins`}, "pinned, and open holds pin"},
	"a pin is larger than its hold": {
		[]string{`UPDATE hold_pins SET amount = 999`, `UPDATE grants SET pinned = 0`}, "and pins 999 of grants",
	},
	"a grant has more left than the balance": {
		[]string{`UPDATE grants SET amount = 1000000, remaining = 1000000`}, "of its grants",
	},
	"grants are forgotten":                  {[]string{`UPDATE balances SET has_grants = 0`}, "with something left"},
	"a grant is larger than its topup":      {[]string{`UPDATE grants SET amount = amount + 1`}, " has 101, and its topup"},
	"a hold says another amount was used":   {[]string{`UPDATE holds SET captured = captured + 1 WHERE hold_id = 'used'`}, "and its capture is of"},
	"a key names a movement that is not":    {[]string{`UPDATE idempotency_keys SET resource_id = 'none' WHERE idempotency_key = 'c'`}, "is another's or does not exist"},
	"a key is free again":                   {[]string{`DELETE FROM idempotency_keys WHERE idempotency_key = 'c'`}, "which is free"},
	"a key names another movement":          {[]string{`UPDATE idempotency_keys SET resource_id = (SELECT id FROM movements WHERE work_key = 't') WHERE idempotency_key = 'c'`}, "is another's"},
	"a key remembers another movement":      {[]string{`UPDATE idempotency_keys SET tombstone = (SELECT tombstone FROM idempotency_keys WHERE idempotency_key = 'c2') WHERE idempotency_key = 'c'`}, "remembers another [amount]"},
	"a key remembers nothing that is known": {[]string{`UPDATE idempotency_keys SET tombstone = owner WHERE idempotency_key = 'c'`}, "cannot be read"},
	"a hold outlives its time":              {[]string{`UPDATE holds SET expires_at = 1 WHERE hold_id = 'open'`}, "and is open"},
}

func TestAuditFindsDamage(t *testing.T) {
	t.Parallel()
	for name, open := range engines {
		for what, test := range damages {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				o := open(t, storagetest.Accounts)
				b := newBenchOn(t, o)
				b.live(t)
				if a := b.audit(t); a.Movements != 6 || a.Balances != 2 || a.OpenHolds != 1 {
					t.Fatalf("got %+v", a)
				}
				damage(t, o, test.statements)
				a, err := ledger.New(b.db).Audit(t.Context(), ledger.AuditParams{Now: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				if all := strings.Join(a.Differences, "\n"); !strings.Contains(all, test.says) {
					t.Errorf("%q does not say %q", all, test.says)
				}
			})
		}
	}
}

// live makes one of everything.
func (b *bench) live(t *testing.T) {
	t.Helper()
	never := time.Time{}
	b.must(t, b.op(t, order{kind: credit.Topup, key: "t", customer: "ada", amount: 100_000}))
	b.must(t, b.op(t, order{kind: credit.Topup, key: "u", customer: "bob", amount: 100, grant: credit.Grant{Priority: 1}}))
	b.must(t, b.op(t, order{kind: credit.Charge, key: "c", customer: "ada", amount: 10}))
	b.must(t, b.op(t, order{kind: credit.Charge, key: "c2", customer: "ada", amount: 20}))
	b.must(t, b.op(t, order{kind: credit.Adjust, key: "d", customer: "ada", amount: -20}))
	b.must(t, b.place("bob", "open", 30, never), b.place("ada", "used", 30, never))
	b.must(t, b.capture("ada", "used", 20))
}

// damage changes rows as nobody may.
func damage(t *testing.T, o sqldb.Options, statements []string) {
	t.Helper()
	driver, source := "pgx", o.URL
	before := []string{`ALTER TABLE movements DISABLE TRIGGER USER`, `SET session_replication_role = 'replica'`}
	if o.Path != "" {
		driver, source = "sqlite", "file:"+filepath.ToSlash(o.Path)
		before = []string{`DROP TRIGGER movements_stay`, `DROP TRIGGER movements_kept`, `PRAGMA ignore_check_constraints = 1`, `PRAGMA foreign_keys = 0`}
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	db.SetMaxOpenConns(1)
	for _, text := range append(before, statements...) {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
