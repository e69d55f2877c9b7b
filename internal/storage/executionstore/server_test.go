package executionstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/executionstore"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
)

// server is one process that runs executions.
type server struct {
	*execution.Service

	engine *execution.Engine
	// cancel ends what the engine does beside its runs, stop stops it in order.
	cancel, stop func()
}

// serve starts a server; with slots 0 it runs nothing.
func (b *bench) serve(t *testing.T, slots int, change ...func(*execution.Params)) *server {
	t.Helper()
	s := b.start(slots, change...)
	t.Cleanup(s.stop)
	return s
}

// start starts a server, which must be stopped.
func (b *bench) start(slots int, change ...func(*execution.Params)) *server {
	p := execution.Params{
		Store: executionstore.New(b.db), Ledger: b.credits, Flows: b.flows, Slots: slots, LeaseFor: b.engine.lease,
		Guard: func() error { return nil }, Tally: idempotency.NewTally(b.db.Keys().AddCounts), Clock: time.Now, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler), TraceRetention: time.Hour,
	}
	_, _ = rand.Read(p.Owner[:]) // cannot fail
	for _, one := range change {
		one(&p)
	}
	e := execution.NewEngine(p)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	s := &server{Service: execution.NewService(e), engine: e}
	s.cancel = func() {
		cancel()
		running.Wait()
	}
	s.stop = sync.OnceFunc(func() {
		s.engine.Drain()
		s.cancel()
		stopping, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		e.Stop(stopping)
	})
	return s
}

// next publishes a flow for one of several cases, gives a customer of the same
// name 10 credits, and has the callee answer as the case says.
func (b *bench) next(t *testing.T, yaml string, one answer) string {
	t.Helper()
	slug := fmt.Sprint("case", b.count(t, "flows"))
	b.publish(t, slug, yaml)
	b.topup(t, slug, "10")
	b.callee.say(one)
	return slug
}

// cut stops a server without waiting for what it does.
func (s *server) cut() {
	s.cancel()
	now, done := context.WithCancel(context.Background())
	done()
	s.engine.Stop(now)
}

// exec changes rows as no code of ours does.
func (b *bench) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	if err := b.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// expire ends the leases of all executions.
func (b *bench) expire(t *testing.T) {
	t.Helper()
	b.exec(t, `UPDATE executions SET lease_until = 1 WHERE lease_until IS NOT NULL`)
}

// eventually asks until it is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-again.C:
		case <-end:
			t.Fatalf("it never was so that %s", what)
		}
	}
}

// count counts rows.
func (b *bench) count(t *testing.T, from string, args ...any) int {
	t.Helper()
	var n int
	if err := b.db.Reader().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// audit says what is wrong with the ledger.
func (b *bench) audit(t *testing.T) {
	t.Helper()
	a, err := ledger.New(b.db).Audit(t.Context(), ledger.AuditParams{Now: b.now()})
	if err != nil || len(a.Differences) > 0 {
		t.Fatalf("%v %q", err, a.Differences)
	}
}

// settled says that nothing is left of what was held for executions.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	b.audit(t)
	if n := b.count(t, `holds WHERE state = 'open'`); n != 0 {
		t.Fatalf("%d holds are open", n)
	}
	if n := b.count(t, `executions WHERE finished_at IS NULL`); n != 0 {
		t.Fatalf("%d executions have not ended", n)
	}
}

// ended returns an execution once it has ended.
func (s *server) ended(t *testing.T, b *bench, id string) execution.Execution {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last execution.Execution
	if err := s.Follow(ctx, b.project, id, func(e execution.Event) error {
		if e.Execution != nil {
			last = *e.Execution
		}
		return nil
	}); err != nil || !last.Status.Ended() {
		t.Fatalf("%s is %s: %v", id, last.Status, err)
	}
	return last
}

// must returns what was executed.
func (s *server) must(t *testing.T, b *bench, o order) execution.Execution {
	t.Helper()
	done, err := s.execute(t, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return done.Execution
}

// order is a request to run a flow.
type order struct {
	key, flow, customer, input string
	mode                       execution.Mode
	// body is what is compared, if it is not made of the rest.
	body string
	wait *time.Duration
}

func (s *server) execute(t *testing.T, b *bench, o order) (execution.Executed, error) {
	t.Helper()
	return s.executeUntil(t.Context(), b, o)
}

// executeUntil has the client leave when the context ends.
func (s *server) executeUntil(ctx context.Context, b *bench, o order) (execution.Executed, error) {
	if o.input == "" {
		o.input = "{}"
	}
	if o.mode == "" {
		o.mode = execution.Sync
	}
	body := fmt.Appendf(nil, `{"flow":%q,"customer":%q,"input":%s,"mode":%q}`, o.flow, o.customer, o.input, o.mode)
	if o.body != "" {
		body = []byte(o.body)
	}
	return s.Execute(ctx, execution.ExecuteParams{
		ProjectID: b.project, Key: o.key, Body: body, Wait: o.wait, Decode: func() (execution.Request, error) {
			return execution.Request{Flow: o.flow, Customer: o.customer, Input: json.RawMessage(o.input), Mode: o.mode}, nil
		},
	})
}
