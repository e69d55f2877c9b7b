package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// wantBalance demands what ada has of the main credits.
func wantBalance(t *testing.T, r *apptest.Running, posted, held string) {
	t.Helper()
	s := asProject(r).must(t, 200, "GET", "/v1/customers/ada", "")
	if b := part(t, s.body, "balances", "main"); b["posted"] != posted || b["held"] != held {
		t.Errorf("ada has %v, want posted %s, held %s", b, posted, held)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		const hold = "/v1/customers/ada/holds/run-1"
		c.refused(t, "customer_not_found", "PUT", hold, `{"credit_type":"main","amount":"1"}`)
		of("topup", "ada", "t", "100").must(t, r)
		c.refused(t, "insufficient_credits", "PUT", hold, `{"credit_type":"main","amount":"100.000001"}`)
		c.refused(t, "not_found", "GET", hold, "")
		c.refused(t, "not_found", "POST", hold+"/capture", "{}")

		placed := c.must(t, 201, "PUT", hold, `{"credit_type":"main","amount":"60","metadata":{"n":1}}`)
		if h := part(t, placed.body, "hold"); h["state"] != "open" || h["id"] != "run-1" || h["amount"] != "60" || h["movement"] != nil {
			t.Errorf("%s", placed.raw)
		}
		wantBalance(t, r, "100", "60")
		of("charge", "ada", "c", "40.1").refused(t, r, 402, "insufficient_credits", "free")
		c.must(t, 200, "PUT", hold, `{"metadata":{"n":1.0},"amount":60.00,"credit_type":"main","reason":null}`)
		s := c.refused(t, "conflict", "PUT", hold, `{"credit_type":"main","amount":"61","metadata":{"n":1}}`)
		if s.status != http.StatusConflict || fmt.Sprint(s.detail("differs")) != "[amount]" || s.detail("state") != "open" {
			t.Errorf("%s", s.raw)
		}
		s = c.refused(t, "invalid_request", "POST", hold+"/capture", `{"amount":"60.000001"}`)
		if s.detail("field") != "amount" {
			t.Errorf("%s", s.raw)
		}
		captured := c.must(t, 200, "POST", hold+"/capture", `{"amount":"25","reason":"done"}`)
		m := part(t, captured.body, "movement")
		if m["kind"] != "capture" || m["delta"] != "-25" || m["hold"] != "run-1" || part(t, captured.body, "balance")["available"] != "75" {
			t.Errorf("%s", captured.raw)
		}
		again := c.must(t, 200, "POST", hold+"/capture", `{"amount":25}`)
		if part(t, again.body, "movement")["id"] != m["id"] || part(t, again.body, "hold")["captured"] != "25" {
			t.Errorf("%s", again.raw)
		}
		for _, q := range [][2]string{{"/capture", `{"amount":"26"}`}, {"/capture", "{}"}, {"/capture", ""}, {"/release", ""}} {
			if s := c.refused(t, "conflict", "POST", hold+q[0], q[1]); s.detail("state") != "captured" {
				t.Errorf("%v: %s", q, s.raw)
			}
		}
		wantBalance(t, r, "75", "0")
		wantMovements(t, r, "ada", "topup 100", "capture -25")
		if h := part(t, c.must(t, 200, "PUT", hold, `{"credit_type":"main","amount":"60","metadata":{"n":1}}`).body, "hold"); h["state"] != "captured" {
			t.Errorf("%v", h)
		}
	})
}

func TestHoldsThatAreLetGo(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		of("topup", "ada", "t", "100").must(t, r)
		const holds = "/v1/customers/ada/holds"
		c.must(t, 201, "PUT", holds+"/r", `{"credit_type":"main","amount":"100"}`)
		c.must(t, 200, "POST", holds+"/r/release", "")
		if s := c.must(t, 200, "POST", holds+"/r/release", ""); part(t, s.body, "hold")["state"] != "released" {
			t.Errorf("%s", s.raw)
		}
		if s := c.refused(t, "conflict", "POST", holds+"/r/capture", ""); s.detail("state") != "released" {
			t.Errorf("%s", s.raw)
		}
		c.refused(t, "invalid_request", "PUT", holds+"/late", `{"credit_type":"main","amount":"1","expires_at":"2020-01-01T00:00:00Z"}`)
		var body string
		inTime(func(end time.Time) bool {
			body = fmt.Sprintf(`{"credit_type":"main","amount":"100","expires_at":%q}`, end.Format(time.RFC3339Nano))
			return c.call(t, "PUT", holds+"/e", body).status == 201
		})
		eventually(t, func() bool { return part(t, c.must(t, 200, "GET", holds+"/e", "").body, "hold")["state"] == "expired" })
		wantBalance(t, r, "100", "0")
		if s := c.refused(t, "conflict", "POST", holds+"/e/release", ""); s.detail("state") != "expired" {
			t.Errorf("%s", s.raw)
		}
		c.must(t, 200, "PUT", holds+"/e", body) // it is there, though its time is over
		if all := c.must(t, 200, "GET", holds, "").items(t); len(all) != 2 {
			t.Errorf("%v", all)
		}
		if open := c.must(t, 200, "GET", holds+"?state=open", "").items(t); len(open) != 0 {
			t.Errorf("%v", open)
		}
		c.refused(t, "validation_failed", "GET", holds+"?state=lost", "")
		wantMovements(t, r, "ada", "topup 100")
	})
}

// TestHoldsAtOnce: the same hold by many, and more holds than there is for.
func TestHoldsAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		of("topup", "ada", "t", "100").must(t, r)
		made := 0
		for _, s := range sideBySide(20, func(int) said {
			return c.call(t, "PUT", "/v1/customers/ada/holds/one", `{"credit_type":"main","amount":"50"}`)
		}) {
			if s.status == http.StatusCreated {
				made++
			} else if s.status != http.StatusOK {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		if made != 1 {
			t.Errorf("%d made it", made)
		}
		placed := 0
		for _, s := range sideBySide(10, func(i int) said {
			return c.call(t, "PUT", fmt.Sprint("/v1/customers/ada/holds/", i), `{"credit_type":"main","amount":"10"}`)
		}) {
			if s.status == http.StatusCreated {
				placed++
			} else if s.code() != "insufficient_credits" {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		if placed != 5 {
			t.Errorf("%d holds of 10 from 50", placed)
		}
		for _, s := range sideBySide(20, func(int) said { return c.call(t, "POST", "/v1/customers/ada/holds/one/capture", `{"amount":"30"}`) }) {
			if s.status != 200 {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		wantMovements(t, r, "ada", "topup 100", "capture -30")
		wantBalance(t, r, "70", "50")
	})
}
