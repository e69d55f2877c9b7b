package actionpulse_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

func asError(t *testing.T, err error) *actionpulse.Error {
	t.Helper()
	e, ok := errors.AsType[*actionpulse.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *actionpulse.Error", err)
	}
	return e
}

func holds(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// TestErrors: what the server says is in the error.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := play(t, says(429, `{"error":{"code":"quota_exceeded","message":"used up","request_id":"r-1",
		"details":{"retryable":false,"resets_at":"2026-06-01T00:00:00.000Z"}}}`, "Retry-After", "7"))
	_, err := newClients(t, s.URL).Customers.Charge(t.Context(), "ada", actionpulse.Move{}, actionpulse.WithKey("order-1"))
	e := asError(t, err)
	if e.Operation != "chargeCustomer" || e.Code != "quota_exceeded" || e.Status != 429 || e.Message != "used up" || e.Retryable ||
		e.RequestID != "r-1" || e.IdempotencyKey != "order-1" || e.Attempts != 1 || e.RetryAfter != 7*time.Second ||
		e.Applied != actionpulse.AppliedNo || !strings.Contains(string(e.Raw), "resets_at") {
		t.Errorf("%+v", e)
	}
	if actionpulse.CodeOf(err) != "quota_exceeded" || actionpulse.CodeOf(errors.New("x")) != "" {
		t.Error("CodeOf does not find the code, or finds one where there is none")
	}
}

func TestConflictAndBalance(t *testing.T) {
	t.Parallel()
	s := play(t,
		refuses(409, "idempotency_conflict", `,"key":"taken","differs":["amount"],"same_json":true,"unit":{"kind":"topup","id":"m-1","status":"posted"}`),
		refuses(402, "insufficient_credits", `,"key":"free","credit_type":"main","balance":{"posted":"3","held":"1","available":"2"}`),
	)
	c := newClients(t, s.URL)
	_, err := c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	conflict, ok := asError(t, err).Conflict()
	if !ok || conflict.Unit != (api.Unit{Kind: "topup", ID: "m-1", Status: "posted"}) || !conflict.SameJSON || conflict.Differs[0] != "amount" {
		t.Errorf("%+v, %v", conflict, ok)
	}
	if _, ok := asError(t, err).Balance(); ok {
		t.Error("a conflict has a balance")
	}
	_, err = c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	balance, ok := asError(t, err).Balance()
	if !ok || balance.Available != "2" || asError(t, err).Applied != actionpulse.AppliedNo {
		t.Errorf("%+v, %v: %v", balance, ok, err)
	}
	if _, ok := asError(t, err).Conflict(); ok {
		t.Error("a lack of credits is a conflict")
	}
}

// TestNoCredentialInErrors: neither a refusal nor a lost answer shows what was
// sent to authorise it.
func TestNoCredentialInErrors(t *testing.T) {
	t.Parallel()
	s := play(t, refuses(401, "unauthenticated", ""), hangsUp)
	c, err := actionpulse.New(s.URL, "apk_secret", actionpulse.WithRetry((&hasty{}).policy()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.Customers.Get(t.Context(), "ada")
		for ; err != nil; err = errors.Unwrap(err) {
			if holds(err, "secret") || holds(err, s.URL) {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestNoRedirects: a redirect is an answer like any other; nothing is sent to
// where it points.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := play(t, says(200, something))
	s := play(t, says(http.StatusTemporaryRedirect, "", "Location", elsewhere.URL))
	_, err := newClients(t, s.URL).Customers.TopUp(t.Context(), "ada", actionpulse.TopUp{})
	if e := asError(t, err); e.Status != http.StatusTemporaryRedirect || e.Applied != actionpulse.AppliedNo {
		t.Errorf("%+v", e)
	}
	if len(elsewhere.requests()) != 0 {
		t.Error("the redirect was followed")
	}
}

// TestUnreadableSuccess: a 200 that is not in the form of the API is no
// success, and does not say that nothing was done.
func TestUnreadableSuccess(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, "<html>welcome to our network</html>"))
	c := newClients(t, s.URL)
	_, err := c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown || e.Status != 200 || e.Err == nil {
		t.Errorf("%+v", e)
	}
	_, err = c.Customers.Get(t.Context(), "ada")
	if e := asError(t, err); e.Applied != actionpulse.AppliedNo {
		t.Errorf("%+v", e)
	}
}
