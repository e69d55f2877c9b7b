package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// move is a request to move credits.
type move struct {
	method, customer, key, body string
}

// of is a move of main credits.
func of(method, customer, key, amount string) move {
	return move{method, customer, key, `{"credit_type":"main","amount":"` + amount + `"}`}
}

func (m move) request(t *testing.T, r *apptest.Running, base string) *http.Request {
	t.Helper()
	at := base + "/v1/customers/" + url.PathEscape(m.customer) + "/" + m.method
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(m.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Setup.ProjectKey)
	request.Header.Set("Idempotency-Key", m.key)
	return request
}

func (m move) send(t *testing.T, r *apptest.Running) said {
	t.Helper()
	return readOf(t, m.request(t, r, r.URL))
}

// readOf sends a request and reads the answer.
func readOf(t *testing.T, request *http.Request) said {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

// must is send with a success that is expected.
func (m move) must(t *testing.T, r *apptest.Running) said {
	t.Helper()
	s := m.send(t, r)
	if s.status != http.StatusOK {
		t.Fatalf("%+v: %d %s", m, s.status, s.raw)
	}
	return s
}

// refused demands a refusal and what is said of the key.
func (m move) refused(t *testing.T, r *apptest.Running, status int, code string, key any) said {
	t.Helper()
	s := m.send(t, r)
	if s.status != status || s.code() != code || s.detail("key") != key || s.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%+v: %d %s, want %d %s, key %v", m, s.status, s.raw, status, code, key)
	}
	return s
}

// asProject is a caller with the project key.
func asProject(r *apptest.Running) caller { return caller{r, r.Setup.ProjectKey} }

// available is what a customer can use of the main credits.
func available(t *testing.T, r *apptest.Running, customer string) string {
	t.Helper()
	s := asProject(r).must(t, 200, "GET", "/v1/customers/"+url.PathEscape(customer), "")
	return part(t, s.body, "balances", "main")["available"].(string) //nolint:forcetypeassert // a panic says as much
}

// part is an object within an object.
func part(t *testing.T, body map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		next, ok := body[name].(map[string]any)
		if !ok {
			t.Fatalf("no %s in %v", name, body)
		}
		body = next
	}
	return body
}

// movements are the kinds and deltas of a customer's movements, oldest first.
func movements(t *testing.T, r *apptest.Running, customer string) []string {
	t.Helper()
	var all []string
	for _, item := range asProject(r).must(t, 200, "GET", "/v1/movements?limit=200&customer="+url.QueryEscape(customer), "").items(t) {
		all = append(all, fmt.Sprint(item["kind"], " ", item["delta"]))
	}
	slices.Reverse(all)
	return all
}

func wantMovements(t *testing.T, r *apptest.Running, customer string, want ...string) {
	t.Helper()
	if got := movements(t, r, customer); !slices.Equal(got, want) {
		t.Errorf("movements of %s: %v, want %v", customer, got, want)
	}
}

func TestMoveCredits(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("charge", "ada", "early", "5").refused(t, r, 404, "customer_not_found", "free")
		first := of("topup", "ada", "t1", "100.50").must(t, r)
		m := part(t, first.body, "movement")
		if m["kind"] != "topup" || m["amount"] != "100.5" || m["balance_after"] != "100.5" || m["customer"] != "ada" || m["credit_type"] != "main" {
			t.Errorf("%v", m)
		}
		again := of("topup", "ada", "t1", "100.50").must(t, r)
		if !again.replayed || again.raw != first.raw || first.replayed || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
			t.Errorf("%s\n%s", first.raw, again.raw)
		}
		s := of("charge", "ada", "c1", "100.500001").refused(t, r, 402, "insufficient_credits", "free")
		if b, _ := s.detail("balance").(map[string]any); b["available"] != "100.5" {
			t.Errorf("%s", s.raw)
		}
		of("charge", "ada", "c1", "0.3").must(t, r) // the key is free, and the body another
		of("charge", "ada", "early", "0.2").must(t, r)
		of("adjust", "ada", "a1", "-100").must(t, r)
		wantMovements(t, r, "ada", "topup 100.5", "charge -0.3", "charge -0.2", "adjust -100")
		if got := available(t, r, "ada"); got != "0" {
			t.Error(got)
		}
	})
}

// TestWholeBalance: with one key many at once are one charge, and nobody hears
// that there is not enough.
func TestWholeBalance(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		for _, at := range []int{8, 50} {
			customer := fmt.Sprint("c", at)
			of("topup", customer, customer, "100").must(t, r)
			answers := sideBySide(at, func(int) said { return of("charge", customer, customer+"-all", "100").send(t, r) })
			replayed := 0
			for _, s := range answers {
				if s.status != 200 || s.raw != answers[0].raw {
					t.Errorf("%d %s", s.status, s.raw)
				}
				if s.replayed {
					replayed++
				}
			}
			if replayed != at-1 {
				t.Errorf("%d of %d replayed", replayed, at)
			}
			wantMovements(t, r, customer, "topup 100", "charge -100")
		}
	})
}

// sideBySide does the same many times at once.
func sideBySide(n int, do func(i int) said) []said {
	answers := make([]said, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = do(i) })
	}
	all.Wait()
	return answers
}

func TestSixFromFive(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "t1", "5000").must(t, r)
		answers := sideBySide(6, func(i int) said { return of("charge", "ada", fmt.Sprint("c", i), "1000").send(t, r) })
		refused := slices.IndexFunc(answers, func(s said) bool { return s.status != 200 })
		if refused < 0 || answers[refused].code() != "insufficient_credits" || answers[refused].detail("key") != "free" {
			t.Fatalf("%+v", answers)
		}
		for i, s := range answers {
			if i != refused && s.status != 200 {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		of("topup", "ada", "t2", "1000").must(t, r)
		of("charge", "ada", fmt.Sprint("c", refused), "1000").must(t, r)
		if got := available(t, r, "ada"); got != "0" {
			t.Error(got)
		}
	})
}

func TestDoubleTopup(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "K", "100").must(t, r)
		if !of("topup", "ada", "K", "100").must(t, r).replayed || available(t, r, "ada") != "100" {
			t.Error("the second one was done")
		}
		of("topup", "bob", "K1", "100").must(t, r)
		if of("topup", "bob", "K2", "100").must(t, r).replayed || available(t, r, "bob") != "200" {
			t.Error("another key is another topup")
		}
	})
}

// TestLostAnswerOfACharge: the server commits and the connection is reset. Go's
// own client sends again by itself, and must see a success.
func TestLostAnswerOfACharge(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "t", "100").must(t, r)
		client, base, lost := losesFirstAnswer(t, r)
		response, err := client.Do(of("charge", "ada", "c", "100").request(t, r, base))
		if err != nil {
			t.Fatal(err)
		}
		if s := read(t, response); s.status != 200 || !s.replayed || lost.delivered.Load() != 2 || lost.reset.Load() != 1 {
			t.Errorf("%d %s after %d deliveries", s.status, s.raw, lost.delivered.Load())
		}
		wantMovements(t, r, "ada", "topup 100", "charge -100")
	})
}
