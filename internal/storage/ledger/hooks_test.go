package ledger_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
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
