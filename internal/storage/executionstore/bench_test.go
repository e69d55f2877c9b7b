package executionstore_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/branch"
	"github.com/actionpulse/actionpulse/internal/flow/step/parallel"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/step/wait"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/proptest"
	"github.com/actionpulse/actionpulse/internal/storage/flowstore"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childProject) != "" {
		os.Exit(child())
	}
	proptest.Checks(4) // each of their steps is a transaction and more
	pgtest.Main(m)
}

// engine is a store to test on.
type engine struct {
	name string
	open storagetest.OpenFunc
	// lease is how long leases are there.
	lease time.Duration
}

func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	for _, e := range []engine{{"SQLite", storagetest.SQLite, 0}, {"PostgreSQL", storagetest.PostgreSQL, time.Minute}} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, e))
		})
	}
}

// answer is what a callee says.
type answer func(ctx context.Context, r *step.Run, name string) (step.Result, error)

// callee is what steps that call reach: what a test makes of it.
type callee struct {
	mu     sync.Mutex
	counts map[string]int
	// called hears of each call before it is answered; nil if nobody listens.
	called chan string
	answer answer
}

func (c *callee) call(ctx context.Context, r *step.Run, name string) (step.Result, error) {
	c.mu.Lock()
	c.counts[r.Key]++
	answer, called := c.answer, c.called
	c.mu.Unlock()
	if called != nil {
		called <- r.Key
	}
	if answer == nil {
		return step.Result{Value: map[string]any{"output": name}}, nil
	}
	return answer(ctx, r, name)
}

// say has the callee answer in another way from now on, and forget what it was
// asked. It returns what hears of each call.
func (c *callee) say(one answer) <-chan string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts, c.answer, c.called = map[string]int{}, one, make(chan string, 1000)
	return c.called
}

// count is how often a derived key was seen.
func (c *callee) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[key]
}

func (c *callee) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, one := range c.counts {
		n += one
	}
	return n
}

// callType stands in for a type that calls: it calls the callee.
type callType struct {
	callee *callee
	name   string
}

func (t callType) Name() string { return t.name }

func (callType) Schema() json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false}`)
}

func (t callType) Compile(c *step.Compiler) (step.Program, error) {
	name, err := c.Template("name")
	return callProgram{t.callee, name}, err
}

type callProgram struct {
	callee *callee
	name   *template.Template
}

func (callProgram) Effect() step.Effect { return step.Calls }

func (p callProgram) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	name := ""
	if p.name != nil {
		value, err := p.name.Eval(r.Scope)
		if err != nil {
			return step.Result{}, step.Failed(err, "name")
		}
		name = fmt.Sprint(value)
	}
	return p.callee.call(ctx, r, name)
}

// bench is a store with flows, credits and servers that run executions on it.
type bench struct {
	engine engine
	// options are where the store is, if this test has made it.
	options sqldb.Options
	db      *sqldb.DB
	project string
	callee  *callee
	flows   *flow.Service
	credits *credit.Service
	// ahead is how far the clock of the credits is ahead.
	ahead *atomic.Int64
}

func newBench(t *testing.T, e engine) *bench {
	t.Helper()
	o := e.open(t, storagetest.Accounts)
	b := openBench(storagetest.Open(t, o), storagetest.SetupOf(t, o).Project.ID, e)
	b.options = o
	t.Cleanup(b.credits.Close)
	return b
}

// openBench returns a bench on a store; its credits must be closed.
func openBench(db *sqldb.DB, project string, e engine) *bench {
	b := &bench{engine: e, db: db, project: project, callee: &callee{counts: map[string]int{}}, ahead: new(atomic.Int64)}
	b.flows = flow.NewService(flow.Params{
		Store: flowstore.New(db), Guard: func() error { return nil }, Clock: time.Now,
		Types: []step.Type{
			transform.Type{}, branch.Type{}, parallel.Type{}, wait.Type{}, callType{b.callee, "http"}, callType{b.callee, "model"},
		},
	})
	workers := 4
	if e.lease == 0 {
		workers = 1
	}
	b.credits = credit.NewService(credit.Params{
		Store: ledger.New(db), Workers: workers, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(db.Keys().AddCounts), Clock: b.now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
	return b
}

// now is what time it is for credits.
func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

// publish publishes a flow.
func (b *bench) publish(t *testing.T, slug, yaml string) {
	t.Helper()
	_, _, err := b.flows.Publish(t.Context(), flow.PublishParams{ProjectID: b.project, Slug: slug, Source: []byte(yaml), Format: flow.YAML})
	if err != nil {
		t.Fatal(err)
	}
}

// topup gives credits.
func (b *bench) topup(t *testing.T, customer, amount string) {
	t.Helper()
	b.grant(t, customer, amount, time.Time{})
}

// grant gives credits that expire.
func (b *bench) grant(t *testing.T, customer, amount string, expires time.Time) {
	t.Helper()
	a, err := credit.ParseAmount(amount)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.credits.Move(t.Context(), credit.MoveParams{
		ProjectID: b.project, Customer: customer, Kind: credit.Topup, Key: rand.Text(), Body: fmt.Appendf(nil, `{"credit_type":"main","amount":%q}`, amount),
		Decode: func() (credit.Move, error) {
			return credit.Move{CreditType: "main", Amount: a, Grant: credit.Grant{Priority: credit.DefaultPriority, ExpiresAt: expires}}, nil
		},
		Render: func(*credit.Movement, credit.Balance) ([]byte, error) { return []byte("{}"), nil },
	}); err != nil {
		t.Fatal(err)
	}
}

// balance says what a customer has.
func (b *bench) balance(t *testing.T, customer string) string {
	t.Helper()
	balance, _, err := ledger.New(b.db).FindBalance(t.Context(), b.project, customer, "main")
	if err != nil {
		t.Fatal(err)
	}
	return balance.Posted.String() + " held " + balance.Held.String()
}
