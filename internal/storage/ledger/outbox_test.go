package ledger_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// hooks is a bench with webhooks and a clock that tests move.
type hooks struct {
	*bench

	store   *sqlstore.Store
	manager *webhook.Service
	mu      sync.Mutex
	at      time.Time
}

func newHooks(t *testing.T, open storagetest.OpenFunc) *hooks {
	t.Helper()
	h := &hooks{bench: newBench(t, open), at: time.Now().UTC().Truncate(time.Microsecond)}
	h.store = sqlstore.New(h.db)
	h.manager = webhook.NewService(webhook.Params{
		Store: h.store, AllowPrivate: true, Clock: h.clock, Random: rand.Reader, Wake: func() {},
	})
	return h
}

func (h *hooks) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hooks) wait(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

// endpoint makes an endpoint that hears of movements and of thresholds.
func (h *hooks) endpoint(t *testing.T, below ...credit.Amount) webhook.Place {
	t.Helper()
	at := webhook.Place{OrganizationID: h.organization(t), ProjectID: h.project}
	c := webhook.Content{URL: "http://127.0.0.1/hook", Wishes: webhook.Wishes{Types: []webhook.Type{webhook.MovementCreated}}}
	for _, b := range below {
		c.Types = []webhook.Type{webhook.MovementCreated, webhook.BalanceLow}
		c.LowBalance = append(c.LowBalance, webhook.Threshold{CreditType: "main", Below: b})
	}
	e, _, err := h.manager.Create(t.Context(), at, c)
	if err != nil {
		t.Fatal(err)
	}
	at.EndpointID = e.ID
	return at
}

func (h *hooks) organization(t *testing.T) string {
	t.Helper()
	var id string
	if err := h.db.Reader().QueryRowContext(t.Context(), `SELECT organization_id FROM projects WHERE id = $1`, h.project).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (h *hooks) deliveries(t *testing.T, at webhook.Place) []webhook.Delivery {
	t.Helper()
	all, err := h.manager.Deliveries(t.Context(), h.project, webhook.ListParams{EndpointID: at.EndpointID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// only returns the one delivery of an endpoint.
func (h *hooks) only(t *testing.T, at webhook.Place) webhook.Delivery {
	t.Helper()
	all := h.deliveries(t, at)
	if len(all) != 1 {
		t.Fatalf("%d deliveries, want 1", len(all))
	}
	return all[0]
}

func (h *hooks) claim(t *testing.T, at webhook.Place) []webhook.Claimed {
	t.Helper()
	claimed, err := h.store.Claim(t.Context(), webhook.ClaimParams{
		Limits: []webhook.ClaimLimit{{EndpointID: at.EndpointID, Limit: 10}}, Now: h.clock(), Until: h.clock().Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

func (h *hooks) rows(t *testing.T, table string) int {
	t.Helper()
	var n int
	if err := h.db.Reader().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// receiver is a sender whose other side answers as a test says.
type receiver struct {
	mu     sync.Mutex
	got    []webhook.Request
	answer func(n int) webhook.Response
	heard  chan struct{}
}

func newReceiver(answer func(n int) webhook.Response) *receiver {
	return &receiver{answer: answer, heard: make(chan struct{}, 10_000)}
}

func (r *receiver) Send(_ context.Context, request webhook.Request) webhook.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, request)
	r.heard <- struct{}{}
	return r.answer(len(r.got))
}

func (r *receiver) requests() []webhook.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// run runs a worker until it is told to stop, and then waits for it.
func (h *hooks) run(t *testing.T, r *receiver) (w *webhook.Worker, stop func()) {
	t.Helper()
	w = webhook.NewWorker(webhook.WorkerParams{
		Queue: h.store, Sender: r, Clock: h.clock, Chance: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return w, stop
}

func (r *receiver) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-r.heard:
		case <-time.After(time.Minute):
			t.Fatal("nothing was sent")
		}
	}
}

func each(t *testing.T, test func(t *testing.T, h *hooks)) {
	t.Helper()
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newHooks(t, open))
		})
	}
}

func mustMove(t *testing.T, h *hooks, kind credit.Kind, key, amount string) {
	t.Helper()
	if _, err := h.move(t, kind, key, "ada", amount); err != nil {
		t.Fatal(err)
	}
}

// TestOutboxTellsOfMovements: each that was made once, under one id for every
// endpoint; none that was refused, repeated, made before the endpoint or while
// it was disabled.
func TestOutboxTellsOfMovements(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		mustMove(t, h, credit.Topup, "k1", "10")
		if n := h.rows(t, "webhook_messages"); n != 0 {
			t.Fatalf("%d messages for nobody", n)
		}
		one, two := h.endpoint(t), h.endpoint(t)
		mustMove(t, h, credit.Charge, "k2", "4.5")
		mustMove(t, h, credit.Charge, "k2", "4.5")
		if _, err := h.move(t, credit.Charge, "k3", "ada", "6"); fault.CodeOf(err) != api.CodeInsufficientCredits {
			t.Fatal(err)
		}
		a, b := h.only(t, one), h.only(t, two)
		if a.Message.ID != b.Message.ID || a.ID == b.ID || h.rows(t, "webhook_messages") != 1 {
			t.Errorf("%s and %s", a.Message.ID, b.Message.ID)
		}
		var body struct {
			Type string
			Data struct {
				Movement api.Movement
				Balance  api.Balance
			}
		}
		if err := json.Unmarshal(a.Message.Body, &body); err != nil {
			t.Fatal(err)
		}
		m := body.Data.Movement
		if body.Type != "movement.created" || "msg_"+m.ID != a.Message.ID || m.Kind != "charge" || m.Customer != "ada" || m.Amount != "4.5" ||
			m.Delta != "-4.5" || m.BalanceAfter != "5.5" || body.Data.Balance.Available != "5.5" {
			t.Errorf("%s", a.Message.Body)
		}
		if _, err := h.manager.Update(t.Context(), one, webhook.Edit{Enabled: new(false)}); err != nil {
			t.Fatal(err)
		}
		if err := h.manager.Delete(t.Context(), two); err != nil {
			t.Fatal(err)
		}
		mustMove(t, h, credit.Charge, "k4", "1")
		if n := h.rows(t, "webhook_deliveries"); n != 2 {
			t.Errorf("%d deliveries, want the 2 from before", n)
		}
	})
}

// TestOutboxOfAGroupThatFails: what is rolled back is not told.
func TestOutboxOfAGroupThatFails(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		h.endpoint(t, 5_000_000)
		mustMove(t, h, credit.Topup, "k1", "10")
		before, told := h.rows(t, "webhook_messages"), 0
		store := ledger.New(h.db)
		store.OnMessages(func() { told++ })
		failure := errors.New("it cannot be answered")
		charge := &credit.Op{
			ProjectID: h.project, Subject: credit.Subject{Customer: "ada", CreditType: "main"},
			Decide: func(st *credit.State) (credit.Effect, error) {
				e, err := st.Account.Spend(credit.Charge, 6_000_000, 6_000_000, st.Now)
				return credit.Effect{Movements: []credit.Movement{{
					ID: "01980000-0000-7000-8000-000000000001", ProjectID: h.project, Customer: "ada", CreditType: "main", Entry: e, Key: "k",
				}}}, err
			},
		}
		policy := idempotency.CreditMovement(time.Hour)
		bad := &credit.Op{
			ProjectID: h.project, Subject: charge.Subject, Decide: charge.Decide,
			Key:    &idempotency.Request{Policy: &policy, Scope: h.project, Key: "bad"},
			Answer: func(*credit.Outcome) (idempotency.Answer, error) { return idempotency.Answer{}, failure },
		}
		bad.Decide = func(*credit.State) (credit.Effect, error) { return credit.Effect{}, nil }
		err := store.Apply(t.Context(), credit.Group{
			Ops: []*credit.Op{charge, bad}, Now: h.clock(), NewID: func() (string, error) { return "01980000-0000-7000-8000-000000000009", nil },
		})
		if !errors.Is(err, failure) {
			t.Fatal(err)
		}
		if n := h.rows(t, "webhook_messages"); n != before || told != 0 {
			t.Errorf("%d messages instead of %d, %d times told", n, before, told)
		}
	})
}

// TestOutboxCrossesOnce: however many charges there are at once, a threshold is
// crossed once, and once more after it was left upwards.
func TestOutboxCrossesOnce(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		mustMove(t, h, credit.Topup, "k0", "100")
		at := h.endpoint(t, 50_000_000)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				if _, err := h.move(t, credit.Charge, fmt.Sprintf("c%d", i), "ada", "2"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		low := func() (messages []string) {
			for _, d := range h.deliveries(t, at) {
				if d.Message.Type == webhook.BalanceLow {
					messages = append(messages, string(d.Message.Body))
				}
			}
			return messages
		}
		if got := low(); len(got) != 1 {
			t.Fatalf("crossed %d times: %q", len(got), got)
		}
		var body struct{ Data api.BalanceLow }
		if err := json.Unmarshal([]byte(low()[0]), &body); err != nil || body.Data.Below != "50" || body.Data.Balance.Available != "48" || body.Data.MovementID == nil {
			t.Errorf("%v %s", err, low()[0])
		}
		mustMove(t, h, credit.Topup, "k1", "50")
		mustMove(t, h, credit.Charge, "k2", "1")
		if got := low(); len(got) != 2 {
			t.Errorf("crossed %d times", len(got))
		}
	})
}

// TestWorkerRetries: an endpoint that fails is tried by the table, always with
// the same id and bytes; the delivery dies, and can be sent again.
func TestWorkerRetries(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		mustMove(t, h, credit.Topup, "k1", "10")
		h.wait(time.Minute)
		fails := newReceiver(func(int) webhook.Response { return webhook.Response{Status: 500} })
		for attempt := int64(1); attempt <= webhook.MaxAttempts; attempt++ {
			_, stop := h.run(t, fails)
			fails.wait(t, 1)
			stop() // which records
			d := h.only(t, at)
			if d.Attempts != attempt || d.LastStatus != 500 || d.LastError == "" {
				t.Fatalf("after attempt %d: %+v", attempt, d)
			}
			if attempt == webhook.MaxAttempts {
				break
			}
			if d.State != webhook.Pending || !d.NextAttemptAt.After(h.clock()) {
				t.Fatalf("after attempt %d: %+v", attempt, d)
			}
			h.wait(d.NextAttemptAt.Sub(h.clock()) - time.Microsecond)
			if claimed := h.claim(t, at); len(claimed) != 0 {
				t.Fatalf("attempt %d would come too soon", attempt+1)
			}
			h.wait(time.Microsecond)
		}
		d := h.only(t, at)
		if d.State != webhook.Dead || d.FinishedAt.IsZero() {
			t.Fatalf("%+v", d)
		}
		again, err := h.manager.Resend(t.Context(), at, d.ID)
		if err != nil || again.State != webhook.Pending || again.Attempts != 0 {
			t.Fatalf("%+v %v", again, err)
		}
		if _, err := h.manager.Resend(t.Context(), at, d.ID); fault.CodeOf(err) != api.CodeConflict {
			t.Errorf("what is pending was sent again: %v", err)
		}
		works := newReceiver(func(int) webhook.Response { return webhook.Response{Status: 204} })
		_, stop := h.run(t, works)
		works.wait(t, 1)
		stop()
		if d := h.only(t, at); d.State != webhook.Delivered || d.Attempts != 1 || d.LastError != "" {
			t.Errorf("%+v", d)
		}
		all := slices.Concat(fails.requests(), works.requests())
		if len(all) != int(webhook.MaxAttempts)+1 {
			t.Errorf("%d attempts", len(all))
		}
		for _, r := range all {
			if r.ID != d.Message.ID || string(r.Body) != string(d.Message.Body) {
				t.Errorf("an attempt with id %s and body %s", r.ID, r.Body)
			}
		}
	})
}

// TestWorkerDiesBeforeRecording: the attempt is made again with the same id
// once the claim has ended, and what the dead worker says late does not count.
func TestWorkerDiesBeforeRecording(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		mustMove(t, h, credit.Topup, "k1", "10")
		h.wait(time.Minute)
		first := h.claim(t, at)
		if len(first) != 1 || first[0].Attempt != 1 {
			t.Fatalf("%+v", first)
		}
		h.wait(time.Minute - time.Microsecond)
		if second := h.claim(t, at); len(second) != 0 {
			t.Fatalf("it was claimed twice: %+v", second)
		}
		h.wait(time.Microsecond)
		second := h.claim(t, at)
		if len(second) != 1 || second[0].Attempt != 2 || second[0].Message.ID != first[0].Message.ID || second[0].Epoch == first[0].Epoch {
			t.Fatalf("%+v after %+v", second, first)
		}
		late := webhook.Result{ID: first[0].ID, EndpointID: at.EndpointID, Epoch: first[0].Epoch, State: webhook.Dead, Error: "late", At: h.clock(), Gone: true}
		if err := h.store.Record(t.Context(), []webhook.Result{late}); err != nil {
			t.Fatal(err)
		}
		if d := h.only(t, at); d.State != webhook.Pending || d.LastError != "" {
			t.Errorf("a late result counts: %+v", d)
		}
		if e, err := h.manager.Get(t.Context(), h.project, at.EndpointID); err != nil || e.State != webhook.Enabled {
			t.Errorf("a late result has disabled the endpoint: %+v %v", e, err)
		}
		done := webhook.Result{ID: first[0].ID, EndpointID: at.EndpointID, Epoch: second[0].Epoch, State: webhook.Delivered, Status: 200, At: h.clock()}
		if err := h.store.Record(t.Context(), []webhook.Result{done}); err != nil {
			t.Fatal(err)
		}
		if d := h.only(t, at); d.State != webhook.Delivered {
			t.Errorf("%+v", d)
		}
	})
}

// TestWorkersShareTheQueue: two workers send every message, and none twice.
func TestWorkersShareTheQueue(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		const count = 60
		places := []webhook.Place{h.endpoint(t), h.endpoint(t)}
		for i := range count {
			mustMove(t, h, credit.Topup, fmt.Sprintf("k%d", i), "1")
		}
		h.wait(time.Minute)
		r := newReceiver(func(int) webhook.Response { return webhook.Response{Status: 200} })
		_, stopOne := h.run(t, r)
		_, stopTwo := h.run(t, r)
		r.wait(t, count*len(places))
		stopOne()
		stopTwo()
		sent := map[string]int{}
		for _, one := range r.requests() {
			sent[one.ID]++
		}
		for id, n := range sent {
			if n != len(places) {
				t.Errorf("%s was sent %d times, want once to each of %d endpoints", id, n, len(places))
			}
		}
		for _, at := range places {
			for _, d := range h.deliveries(t, at) {
				if d.State != webhook.Delivered || d.Attempts != 1 {
					t.Errorf("%+v", d)
				}
			}
		}
		if len(sent) != count {
			t.Errorf("%d messages were sent, want %d", len(sent), count)
		}
	})
}

// TestEndpointIsGone: 410 ends the delivery and disables the endpoint; what
// waits goes on when it is enabled again.
func TestEndpointIsGone(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		mustMove(t, h, credit.Topup, "k1", "10")
		h.wait(time.Minute)
		gone := newReceiver(func(int) webhook.Response { return webhook.Response{Status: 410} })
		_, stop := h.run(t, gone)
		gone.wait(t, 1)
		stop()
		d := h.only(t, at)
		e, err := h.manager.Get(t.Context(), h.project, at.EndpointID)
		if err != nil || d.State != webhook.Dead || e.State != webhook.Disabled || e.Reason != webhook.Gone || e.EndedAt.IsZero() {
			t.Fatalf("%+v %+v %v", d, e, err)
		}
		if _, err := h.manager.Resend(t.Context(), at, d.ID); fault.CodeOf(err) != api.CodeConflict {
			t.Errorf("a disabled endpoint is sent to: %v", err)
		}
		if _, err := h.manager.Test(t.Context(), at); fault.CodeOf(err) != api.CodeConflict {
			t.Errorf("a disabled endpoint is tested: %v", err)
		}
		e, err = h.manager.Update(t.Context(), at, webhook.Edit{Enabled: new(true)})
		if err != nil || e.State != webhook.Enabled || e.Reason != "" || !e.EndedAt.IsZero() {
			t.Fatalf("%+v %v", e, err)
		}
		if _, err := h.manager.Resend(t.Context(), at, d.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestEndpointThatFailsForDays is disabled, unless something was delivered in
// between.
func TestEndpointThatFailsForDays(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		attempt := func(state webhook.DeliveryState) webhook.Endpoint {
			d, err := h.manager.Test(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			claimed := h.claim(t, at)
			if len(claimed) != 1 || claimed[0].ID != d.ID {
				t.Fatalf("%+v", claimed)
			}
			r := webhook.Result{ID: d.ID, EndpointID: at.EndpointID, Epoch: claimed[0].Epoch, State: state, Status: 500, Error: "no", At: h.clock()}
			if state == webhook.Delivered {
				r.Status, r.Error = 200, ""
			}
			if err := h.store.Record(t.Context(), []webhook.Result{r}); err != nil {
				t.Fatal(err)
			}
			e, err := h.manager.Get(t.Context(), h.project, at.EndpointID)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		began := h.clock()
		if e := attempt(webhook.Dead); e.State != webhook.Enabled || !e.FailingSince.Equal(began) {
			t.Fatalf("%+v", e)
		}
		h.wait(webhook.FailingLimit - time.Second)
		if e := attempt(webhook.Dead); e.State != webhook.Enabled || !e.FailingSince.Equal(began) {
			t.Fatalf("%+v", e)
		}
		if e := attempt(webhook.Delivered); !e.FailingSince.IsZero() {
			t.Fatalf("%+v", e)
		}
		began = h.clock()
		attempt(webhook.Dead)
		h.wait(webhook.FailingLimit)
		if e := attempt(webhook.Dead); e.State != webhook.Disabled || e.Reason != webhook.Failing || !e.FailingSince.Equal(began) {
			t.Fatalf("%+v", e)
		}
	})
}

// TestSweepWebhooks: what is finished goes after 30 days, what waits stays, and
// nothing is left of a deleted endpoint.
func TestSweepWebhooks(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		r := newReceiver(func(n int) webhook.Response { return webhook.Response{Status: []int{200, 500}[n-1]} })
		w, stop := h.run(t, r)
		mustMove(t, h, credit.Topup, "k1", "1")
		h.wait(time.Minute)
		w.Wake()
		r.wait(t, 1)
		mustMove(t, h, credit.Topup, "k2", "1")
		w.Wake()
		r.wait(t, 1)
		stop()
		sweep := func(want int) {
			if _, err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d, m := h.rows(t, "webhook_deliveries"), h.rows(t, "webhook_messages"); d != want || m != want {
				t.Fatalf("%d deliveries and %d messages are left, want %d", d, m, want)
			}
		}
		h.wait(30*24*time.Hour - time.Second)
		sweep(2)
		h.wait(2 * time.Second)
		sweep(1)
		if d := h.only(t, at); d.State != webhook.Pending {
			t.Errorf("%+v", d)
		}
		if err := h.manager.Delete(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if claimed := h.claim(t, at); len(claimed) != 0 {
			t.Errorf("a deleted endpoint is sent to: %+v", claimed)
		}
		sweep(0)
	})
}

// TestEndpointSecrets: rotation signs twice for a while; a project does not
// find what is another's.
func TestEndpointSecrets(t *testing.T) {
	each(t, func(t *testing.T, h *hooks) {
		at := h.endpoint(t)
		before, err := h.manager.Get(t.Context(), h.project, at.EndpointID)
		if err != nil {
			t.Fatal(err)
		}
		e, secret, err := h.manager.RotateSecret(t.Context(), at, time.Hour)
		if err != nil || e.Secrets.Current != secret || e.Secrets.Old != before.Secrets.Current {
			t.Fatalf("%+v %v", e, err)
		}
		if _, err := h.manager.Test(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		claimed := h.claim(t, at)
		if len(claimed) != 1 || !slices.Equal(claimed[0].Secrets.Live(h.clock()), []string{secret, before.Secrets.Current}) {
			t.Errorf("%+v", claimed)
		}
		elsewhere := at
		elsewhere.ProjectID = "01980000-0000-7000-8000-000000000001"
		for what, err := range map[string]error{
			"get":    second(h.manager.Get(t.Context(), elsewhere.ProjectID, at.EndpointID)),
			"list":   second(h.manager.Deliveries(t.Context(), elsewhere.ProjectID, webhook.ListParams{EndpointID: at.EndpointID, Limit: 1})),
			"update": second(h.manager.Update(t.Context(), elsewhere, webhook.Edit{Enabled: new(false)})),
			"test":   second(h.manager.Test(t.Context(), elsewhere)),
			"resend": second(h.manager.Resend(t.Context(), elsewhere, h.only(t, at).ID)),
			"delete": h.manager.Delete(t.Context(), elsewhere),
		} {
			if fault.CodeOf(err) != api.CodeNotFound {
				t.Errorf("%s: %v", what, err)
			}
		}
		if e, err := h.manager.Get(t.Context(), h.project, at.EndpointID); err != nil || e.State != webhook.Enabled {
			t.Errorf("%+v %v", e, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }
