package actionpulse_test

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// site is a server with clients that may do all there is.
type site struct {
	*clients
	*apptest.Running
	project string
}

// TestRealServer takes the main paths of the client on the real server. One is
// started for all of them.
func TestRealServer(t *testing.T) {
	t.Parallel()
	r := &site{Running: apptest.New(t).MustServe()}
	r.project = r.Setup.Project.ID
	r.clients = r.clientsOf(t, r.URL)
	if _, err := r.app.Login(t.Context(), api.Login{Email: r.Setup.Email, Password: r.Setup.Password}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *site){
		"credits": testCredits, "keys": testKeysOnServer, "reset": testReset, "holds": testHolds, "lists": testLists,
		"flows": testFlows, "markers": testMarkers, "tokens": testTokens, "intake": testIntake, "server": testServer, "replays": testReplays,
	} {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

func (r *site) clientsOf(t *testing.T, url string, options ...actionpulse.Option) *clients {
	t.Helper()
	c, err := actionpulse.New(url, r.Setup.ProjectKey, options...)
	if err != nil {
		t.Fatal(err)
	}
	app, err := actionpulse.NewApp(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := actionpulse.NewDeployMarkers(url, r.Setup.CIToken, r.project, options...)
	if err != nil {
		t.Fatal(err)
	}
	return &clients{c, app, deploy}
}

func must[T any](t *testing.T, want func(T) bool) func(T, error) T {
	t.Helper()
	return func(got T, err error) T {
		t.Helper()
		if err != nil || !want(got) {
			t.Fatalf("got %+v, %v", got, err)
		}
		return got
	}
}

func anything[T any](T) bool { return true }

func testCredits(t *testing.T, r *site) {
	ctx, ada := t.Context(), "ada/ключ 100%+"
	topup := actionpulse.TopUp{CreditType: "main", Amount: "10.50", Metadata: metadata}
	first := must(t, func(m *actionpulse.Moved) bool { return !m.Replayed && m.Balance.Available == "10.5" })(
		r.Customers.TopUp(ctx, ada, topup, actionpulse.WithKey("order-41")))
	must(t, func(m *actionpulse.Moved) bool { return m.Replayed && m.Movement.ID == first.Movement.ID })(
		r.Customers.TopUp(ctx, ada, topup, actionpulse.WithKey("order-41")))
	must(t, func(m *actionpulse.Moved) bool { return m.Balance.Posted == "10.2" })(
		r.Customers.Charge(ctx, ada, actionpulse.Move{CreditType: "main", Amount: "0.3"}))
	must(t, func(m *actionpulse.Moved) bool { return m.Balance.Posted == "10.1" })(
		r.Customers.Adjust(ctx, ada, actionpulse.Move{CreditType: "main", Amount: "-0.1"}))

	topup.Amount = "11"
	_, err := r.Customers.TopUp(ctx, ada, topup, actionpulse.WithKey("order-41"))
	if c, ok := asError(t, err).Conflict(); !ok || c.Unit.ID != first.Movement.ID || !slices.Contains(c.Differs, "body") {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = r.Customers.Charge(ctx, ada, actionpulse.Move{CreditType: "main", Amount: "99"}, actionpulse.WithKey("order-42"))
	if b, ok := asError(t, err).Balance(); !ok || b.Available != "10.1" || asError(t, err).Applied != actionpulse.AppliedNo {
		t.Errorf("%+v, %v", b, err)
	}
	_, err = r.Customers.Charge(ctx, "nobody", actionpulse.Move{CreditType: "main", Amount: "1"})
	if actionpulse.CodeOf(err) != api.CodeCustomerNotFound {
		t.Error(err)
	}
	must(t, func(k *api.IdempotencyKey) bool { return k.Unit.ID == first.Movement.ID })(r.IdempotencyKeys.Get(ctx, "order-41"))
	undone := must(t, func(m *api.CreditMoved) bool { return m.Movement.Kind == "reversal" })(
		r.Movements.Reverse(ctx, first.Movement.ID, actionpulse.NewReversal{Amount: "0.1"}))
	must(t, func(m *api.CreditMoved) bool { return m.Movement.ID == undone.Movement.ID })(
		r.Movements.Reverse(ctx, first.Movement.ID, actionpulse.NewReversal{Amount: "0.1"}))
	must(t, func(c *api.Customer) bool { return c.Customer == ada && c.Balances["main"].Posted == "10" })(r.Customers.Get(ctx, ada))
}

// testKeysOnServer: every key that the client lets pass is one that the server
// takes and knows again, and only the ones that it refuses itself are stopped.
func testKeysOnServer(t *testing.T, r *site) {
	for _, key := range awkward {
		must(t, func(m *actionpulse.Moved) bool { return *m.Movement.IdempotencyKey == key })(
			r.Customers.TopUp(t.Context(), "keys", actionpulse.TopUp{CreditType: "main", Amount: "1"}, actionpulse.WithKey(key)))
		must(t, func(k *api.IdempotencyKey) bool { return k.Key == key })(r.IdempotencyKeys.Get(t.Context(), key))
	}
	for _, name := range []string{"/a", "a/", "//", "%2F", "a+b", "...", "a?b#c", "🎉"} {
		must(t, func(c *api.Customer) bool { return c.Customer == name })(r.Customers.Ensure(t.Context(), name, api.NewCustomer{}))
		must(t, func(c *api.Customer) bool { return c.Customer == name })(r.Customers.Get(t.Context(), name))
	}
}

func testHolds(t *testing.T, r *site) {
	ctx := t.Context()
	must(t, anything[*actionpulse.Moved])(r.Customers.TopUp(ctx, "bob", actionpulse.TopUp{
		CreditType: "main", Amount: "10", ExpiresAt: time.Now().Add(time.Hour), Priority: new(1),
	}))
	place := actionpulse.NewHold{CreditType: "main", Amount: "4", ExpiresAt: time.Now().Add(time.Hour).Truncate(time.Millisecond)}
	for range 2 {
		must(t, func(h *api.HoldAnswer) bool { return h.Balance.Available == "6" })(r.Holds.Place(ctx, "bob", "a/b", place))
	}
	place.Amount = "5"
	if _, err := r.Holds.Place(ctx, "bob", "a/b", place); actionpulse.CodeOf(err) != api.CodeConflict {
		t.Error(err)
	}
	for range 2 {
		must(t, func(h *api.HoldAnswer) bool { return h.Balance.Posted == "9" && h.Balance.Held == "0" })(
			r.Holds.Capture(ctx, "bob", "a/b", actionpulse.Capture{Amount: "1"}))
	}
	if _, err := r.Holds.Release(ctx, "bob", "a/b"); actionpulse.CodeOf(err) != api.CodeConflict {
		t.Error(err)
	}
	must(t, func(h *api.HoldDetails) bool { return h.Hold.State == "captured" })(r.Holds.Get(ctx, "bob", "a/b"))
	must(t, func(g *api.List[api.Grant]) bool { return len(g.Items) == 1 && g.Items[0].Remaining == "9" })(
		r.Customers.Grants(ctx, "bob", actionpulse.Page{}))
	must(t, func(b *api.Balances) bool { return b.Balances["main"].Posted == "9" })(r.Customers.Balances(ctx, "bob", time.Time{}))
}

func testLists(t *testing.T, r *site) {
	ctx := t.Context()
	var want []string
	for range 5 {
		m := must(t, anything[*actionpulse.Moved])(r.Customers.TopUp(ctx, "lists", actionpulse.TopUp{CreditType: "main", Amount: "0.1"}))
		want = append(want, m.Movement.ID)
	}
	filter := actionpulse.MovementFilter{Customer: "lists"}
	var exported, listed []string
	for m, err := range r.Movements.Export(ctx, filter) {
		exported = append(exported, must(t, anything[api.Movement])(m, err).ID)
	}
	for m, err := range r.Movements.All(ctx, actionpulse.ListMovements{Page: actionpulse.Page{Limit: 2}, MovementFilter: filter}) {
		listed = append(listed, must(t, anything[api.Movement])(m, err).ID)
	}
	slices.Reverse(listed)
	if !slices.Equal(exported, want) || !slices.Equal(listed, want) {
		t.Errorf("exported %v, listed %v, want %v", exported, listed, want)
	}
	csv := must(t, anything[io.ReadCloser])(r.Movements.ExportCSV(ctx, filter))
	text := must(t, anything[[]byte])(io.ReadAll(csv))
	if err := csv.Close(); err != nil || bytes.Count(text, []byte("\n")) != 6 {
		t.Errorf("%s, %v", text, err)
	}
	if err := drain(r.app.Organizations.AllAuditLog(ctx, r.Setup.OrganizationID, actionpulse.Page{Limit: 1})); err != nil {
		t.Error(err)
	}
	if _, err := r.Customers.List(ctx, actionpulse.Page{Limit: 201}); actionpulse.CodeOf(err) != api.CodeValidationFailed {
		t.Error(err)
	}
}
