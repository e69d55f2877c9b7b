package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// told is a message that a receiver got.
type told struct {
	header http.Header
	body   string
}

// receiver is an endpoint of the customer's: it answers with the statuses
// given, and then with 204.
func receiver(t *testing.T, statuses ...int) (url string, got chan told) {
	t.Helper()
	got = make(chan told, 100)
	answers := make(chan int, len(statuses))
	for _, status := range statuses {
		answers <- status
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		status := http.StatusNoContent
		select {
		case status = <-answers:
		default:
		}
		w.WriteHeader(status)
		got <- told{r.Header, string(body)}
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func next(t *testing.T, got chan told) told {
	t.Helper()
	select {
	case one := <-got:
		return one
	case <-time.After(time.Minute):
		t.Fatal("nothing was sent")
		return told{}
	}
}

// mustBeSigned checks the signature by the secrets, in their order.
func (m told) mustBeSigned(t *testing.T, secrets ...any) {
	t.Helper()
	at, err := strconv.ParseInt(m.header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, secret := range secrets {
		texts = append(texts, fmt.Sprint(secret))
	}
	want, err := webhook.Sign(texts, m.header.Get("webhook-id"), time.Unix(at, 0), []byte(m.body))
	if err != nil || m.header.Get("webhook-signature") != want {
		t.Errorf("signature %q, want %q (%v)", m.header.Get("webhook-signature"), want, err)
	}
}

// TestWebhooks: from the endpoint to the message, its retry, the second secret
// and the message sent again.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, "--webhooks.allow_private").MustServe()
	url, got := receiver(t, http.StatusInternalServerError)
	all := project(r) + "/webhooks"
	made := owner(r).must(t, 201, "POST", all, fmt.Sprintf(
		`{"url":%q,"events":["movement.created","balance.low"],"low_balance":[{"credit_type":"main","below":"5.50"}]}`, url+"/hook"))
	secret := made.body["secret"]
	one := all + "/" + made.text(t, "id")
	if s := owner(r).must(t, 200, "GET", one, ""); strings.Contains(fmt.Sprint(s.body), "whsec_") || strings.Contains(fmt.Sprint(s.body), "secret:") {
		t.Errorf("the secret is shown again: %v", s.body)
	}

	of("topup", "ada", "k1", "10").must(t, r)
	of("topup", "ada", "k1", "10").must(t, r)
	first := next(t, got)
	again := next(t, got) // after some five seconds
	if first.body != again.body || first.header.Get("webhook-id") != again.header.Get("webhook-id") {
		t.Errorf("%s %v, then %s %v", first.body, first.header, again.body, again.header)
	}
	first.mustBeSigned(t, secret)
	if !strings.HasPrefix(first.body, `{"type":"movement.created",`) || !strings.Contains(first.body, `"idempotency_key":"k1"`) {
		t.Error(first.body)
	}

	rotated := owner(r).must(t, 200, "POST", one+"/rotate-secret", "{}")
	of("charge", "ada", "k2", "4.5").must(t, r)
	next(t, got).mustBeSigned(t, rotated.body["secret"], secret)
	of("charge", "ada", "k3", "0.1").must(t, r)
	types := next(t, got).body[:20] + next(t, got).body[:20]
	if !strings.Contains(types, "movement") || !strings.Contains(types, "balance.low") {
		t.Error(types)
	}

	owner(r).must(t, 202, "POST", one+"/test", "")
	if m := next(t, got); !strings.HasPrefix(m.body, `{"type":"webhook.test"`) {
		t.Error(m.body)
	}
	eventually(t, func() bool {
		return len(owner(r).must(t, 200, "GET", one+"/deliveries?state=delivered", "").items(t)) == 5
	})
	list := owner(r).must(t, 200, "GET", one+"/deliveries?limit=2", "")
	if items := list.items(t); len(items) != 2 || items[0]["event"] != "webhook.test" || list.body["next_cursor"] == nil {
		t.Errorf("%v", list.body)
	}
	owner(r).refused(t, "validation_failed", "GET", one+"/deliveries?state=lost", "")
	delivery := fmt.Sprint(list.items(t)[0]["id"])
	owner(r).must(t, 202, "POST", one+"/deliveries/"+delivery+"/resend", "")
	if m := next(t, got); m.header.Get("webhook-id") != list.items(t)[0]["message_id"] {
		t.Errorf("it was sent again as %s", m.header.Get("webhook-id"))
	}

	owner(r).must(t, 200, "PATCH", one, `{"enabled":false}`)
	owner(r).refused(t, "conflict", "POST", one+"/test", "")
	owner(r).must(t, 204, "DELETE", one, "")
	owner(r).refused(t, "not_found", "GET", one, "")
	var actions []string
	for _, e := range auditLog(t, owner(r), own(r)) {
		if action := fmt.Sprint(e["action"]); strings.HasPrefix(action, "webhook.") {
			actions = append(actions, action)
		}
		if strings.Contains(fmt.Sprint(e), "whsec_") || strings.Contains(fmt.Sprint(e), "/hook ") {
			t.Errorf("a secret is in the audit log: %v", e)
		}
	}
	if len(actions) != 4 {
		t.Errorf("the audit log tells of %v", actions)
	}
	select {
	case m := <-got:
		t.Errorf("more was sent: %s", m.body)
	default:
	}
}

// eventually asks until it is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !so() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("it did not come about")
		}
	}
}

// TestWebhooksStayOutside: without the setting nothing is sent to this machine.
func TestWebhooksStayOutside(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	url, got := receiver(t)
	all := project(r) + "/webhooks"
	body := func(url string) string { return fmt.Sprintf(`{"url":%q,"events":["movement.created"]}`, url) }
	owner(r).refused(t, "validation_failed", "POST", all, body(url))
	made := owner(r).must(t, 201, "POST", all, body(strings.Replace(url, "127.0.0.1", "localhost", 1)))
	of("topup", "ada", "k1", "10").must(t, r)
	one := all + "/" + made.text(t, "id")
	eventually(t, func() bool {
		items := owner(r).must(t, 200, "GET", one+"/deliveries", "").items(t)
		return len(items) == 1 && items[0]["last_error"] == "the address is not one of the internet" && items[0]["state"] == "pending"
	})
	select {
	case m := <-got:
		t.Errorf("%s was sent", m.body)
	default:
	}
}
