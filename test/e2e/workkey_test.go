package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// TestWhatAKeyNames: one unit of work, whatever the method and customer.
func TestWhatAKeyNames(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		unit := part(t, of("topup", "ada", "order-1", "10").must(t, r).body, "movement")
		of("topup", "bob", "other", "10").must(t, r)
		for _, c := range []struct {
			move
			differs string
		}{
			{of("charge", "ada", "order-1", "10"), "[method]"},
			{of("adjust", "ada", "order-1", "10"), "[method]"},
			{of("topup", "bob", "order-1", "10"), "[customer]"},
			{of("topup", "ada", "order-1", "11"), "[body]"},
			{of("charge", "nobody", "order-1", "10"), "[customer method]"},
			{move{"topup", "ada", "order-1", `{`}, "[body]"},
			{move{"topup", "ada", "order-1", ``}, "[body]"},
		} {
			s := c.refused(t, r, 409, "idempotency_conflict", "taken")
			named, _ := s.detail("unit").(map[string]any)
			if named["id"] != unit["id"] || named["kind"] != "topup" || named["status"] != "succeeded" || fmt.Sprint(s.detail("differs")) != c.differs {
				t.Errorf("%+v: %s", c, s.raw)
			}
			if s.part("message") != "The Idempotency-Key was already used with a different request body" || s.detail("same_json") != nil {
				t.Errorf("%+v: %s", c, s.raw)
			}
		}
		s := move{"topup", "ada", "order-1", `{"amount": "10", "credit_type":"main"}`}.refused(t, r, 409, "idempotency_conflict", "taken")
		if s.detail("same_json") != true {
			t.Errorf("%s", s.raw)
		}
		wantMovements(t, r, "ada", "topup 10")
		wantMovements(t, r, "bob", "topup 10")
		found := asProject(r).must(t, 200, "GET", "/v1/idempotency-keys?key=order-1", "")
		if got := part(t, found.body, "unit"); got["id"] != unit["id"] || got["status"] != "succeeded" || found.body["response_expires_at"] == nil {
			t.Errorf("%s", found.raw)
		}
		asProject(r).refused(t, "not_found", "GET", "/v1/idempotency-keys?key=order-2", "")
	})
}

// TestKeyEdges: what a key may be, and that a refused one has reserved nothing.
func TestKeyEdges(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		status := func(keys ...string) (int, any) {
			request := of("topup", "ada", "", "1").request(t, r, r.URL)
			request.Header["Idempotency-Key"] = keys
			s := readOf(t, request)
			return s.status, s.code()
		}
		long, wide := strings.Repeat("k", 190), strings.Repeat("é", 190)
		for _, c := range []struct {
			keys   []string
			status int
			code   any
		}{
			{nil, 400, "idempotency_key_required"},
			{[]string{""}, 400, "idempotency_key_required"},
			{[]string{"  "}, 400, "idempotency_key_required"},
			{[]string{long + "k"}, 422, "invalid_request"},
			{[]string{wide + "é"}, 422, "invalid_request"},
			{[]string{"k\xff"}, 422, "invalid_request"},
			{[]string{"a\u0085b"}, 422, "invalid_request"},
			{[]string{"k1", "k1"}, 422, "invalid_request"},
			{[]string{long}, 200, nil},
			{[]string{wide}, 200, nil},
			{[]string{"two words, a comma"}, 200, nil},
			{[]string{`"abc"`}, 200, nil},
			{[]string{"abc"}, 200, nil},
			{[]string{"k1"}, 200, nil},
		} {
			if got, code := status(c.keys...); got != c.status || code != c.code {
				t.Errorf("%q: %d %v, want %d %v", c.keys, got, code, c.status, c.code)
			}
		}
		if n := len(movements(t, r, "ada")); n != 6 {
			t.Errorf("%d movements", n)
		}
	})
}

// retention is for how long first answers are kept where that is to end.
const retention = "--credits.response_retention=1s"

// TestPrunedKey: when the first answer is gone, the movement still says what
// the key names.
func TestPrunedKey(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, []string{retention}, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "t", "100").must(t, r)
		of("topup", "bob", "tb", "100").must(t, r)
		first := part(t, of("charge", "ada", "c", "5").must(t, r).body, "movement")
		var s said
		eventually(t, func() bool {
			s = of("charge", "ada", "c", "5").must(t, r)
			return s.body["response_expired"] == true
		})
		if got := part(t, s.body, "movement"); !s.replayed || got["id"] != first["id"] || part(t, s.body, "balance")["available"] != "95" {
			t.Errorf("%s", s.raw)
		}
		for _, same := range []string{`{"amount":5.0, "credit_type":"main","reason":"other"}`, `{"credit_type":"main","amount":"5.000000"}`} {
			if s := (move{"charge", "ada", "c", same}).must(t, r); s.body["response_expired"] != true || !s.replayed {
				t.Errorf("%s", s.raw)
			}
		}
		for _, other := range []move{
			of("charge", "ada", "c", "6"), of("adjust", "ada", "c", "5"), of("adjust", "ada", "c", "-5"), of("charge", "bob", "c", "5"),
			{"charge", "ada", "c", `{"credit_type":"bonus","amount":"5"}`},
			{"charge", "ada", "c", `{`},
		} {
			other.refused(t, r, 409, "idempotency_conflict", "taken")
		}
		wantMovements(t, r, "ada", "topup 100", "charge -5")
		wantMovements(t, r, "bob", "topup 100")
	})
}

// TestStockClientsDoNotRepeatAConflict: one request, since X-Should-Retry is
// false; TestWhatAKeyNames checks the header. What is refused for good is not
// worth a repeat either.
func TestStockClientsDoNotRepeatAConflict(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "k", "1").must(t, r)
		sent := 0
		for attempt := range 3 {
			sent++
			response, err := http.DefaultClient.Do(of("topup", "ada", "k", "2").request(t, r, r.URL))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, response.Body)
			if err != nil || response.Body.Close() != nil {
				t.Fatal(attempt, err)
			}
			if response.Header.Get("X-Should-Retry") != "true" {
				break
			}
		}
		if sent != 1 {
			t.Errorf("%d requests", sent)
		}
	})
}
