package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

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
