package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

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
