package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// TestSignKnownVector is the example that Standard Webhooks publishes.
func TestSignKnownVector(t *testing.T) {
	t.Parallel()
	const secret, other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at, body := time.Unix(1614265330, 999_000_000), []byte(`{"test": 2432232314}`)
	got, err := Sign([]string{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	if err != nil || got != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
	both, err := Sign([]string{other, secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	if first, second, _ := strings.Cut(both, " "); err != nil || second != want || first == want || !strings.HasPrefix(first, "v1,") {
		t.Errorf("with two secrets: %q and %v", both, err)
	}
	if changed, err := Sign([]string{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, append(body, ' ')); err != nil || changed == want {
		t.Errorf("another body has the same signature, or %v", err)
	}
}

func TestSecretsOverlap(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := Secrets{Current: "a"}.rotate("b", now, time.Hour)
	for _, c := range []struct {
		at   time.Time
		want []string
	}{
		{now, []string{"b", "a"}},
		{now.Add(time.Hour - 1), []string{"b", "a"}},
		{now.Add(time.Hour), []string{"b"}},
	} {
		if diff := cmp.Diff(c.want, s.Live(c.at)); diff != "" {
			t.Errorf("at %v: %s", c.at, diff)
		}
	}
	if diff := cmp.Diff([]string{"c"}, s.rotate("c", now, 0).Live(now)); diff != "" {
		t.Errorf("without an overlap: %s", diff)
	}
	if diff := cmp.Diff([]string{"c", "b"}, s.rotate("c", now, time.Hour).Live(now)); diff != "" {
		t.Errorf("rotated twice: %s", diff)
	}
}

func TestMintedSecretSigns(t *testing.T) {
	t.Parallel()
	secret, err := mintSecret(bytes.NewReader(make([]byte, secretBytes)))
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Fatal(secret, err)
	}
	if _, err := Sign([]string{secret}, "msg_1", time.Unix(1, 0), nil); err != nil {
		t.Error(err)
	}
	if _, err := mintSecret(bytes.NewReader(make([]byte, secretBytes-1))); err == nil {
		t.Error("a secret was made of too little randomness")
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		attempt int64
		r       Response
		chance  float64
		state   DeliveryState
		wait    time.Duration
		gone    bool
	}{
		{"200", 1, Response{Status: 200}, 0.5, Delivered, 0, false},
		{"299 at last", MaxAttempts, Response{Status: 299}, 0.5, Delivered, 0, false},
		{"redirect", 1, Response{Status: 302}, 0.5, Pending, 5 * time.Second, false},
		{"400 is tried again", 2, Response{Status: 400}, 0.5, Pending, 5 * time.Minute, false},
		{"500", 3, Response{Status: 500}, 0.5, Pending, 30 * time.Minute, false},
		{"no answer", 4, Response{Err: errors.New("refused")}, 0.5, Pending, 2 * time.Hour, false},
		{"earliest", 1, Response{Status: 500}, 0, Pending, 3750 * time.Millisecond, false},
		{"latest", 1, Response{Status: 500}, 1, Pending, 6250 * time.Millisecond, false},
		{"last wait", MaxAttempts - 1, Response{Status: 500}, 0.5, Pending, 10 * time.Hour, false},
		{"dead", MaxAttempts, Response{Status: 500}, 0.5, Dead, 0, false},
		{"dead after a crash in the last", MaxAttempts + 1, Response{Status: 500}, 0.5, Dead, 0, false},
		{"gone", 1, Response{Status: 410}, 0.5, Dead, 0, true},
		{"429 asks", 1, Response{Status: 429, RetryAfter: "77"}, 0, Pending, 77 * time.Second, false},
		{"503 asks with a date", 1, Response{Status: 503, RetryAfter: "Thu, 01 Jan 2026 00:02:00 GMT"}, 1, Pending, 2 * time.Minute, false},
		{"503 asks for a year", 1, Response{Status: 503, RetryAfter: "31536000"}, 0, Pending, 24 * time.Hour, false},
		{"503 asks for nonsense", 1, Response{Status: 503, RetryAfter: "soon"}, 0.5, Pending, 5 * time.Second, false},
		{"500 may not ask", 1, Response{Status: 500, RetryAfter: "77"}, 0.5, Pending, 5 * time.Second, false},
		{"429 at last", MaxAttempts, Response{Status: 429, RetryAfter: "77"}, 0, Dead, 0, false},
	} {
		claimed := Claimed{ID: "d", EndpointID: "e", Epoch: 3, Attempt: c.attempt}
		got := claimed.settle(c.r, now, c.chance)
		want := Result{ID: "d", EndpointID: "e", Epoch: 3, State: c.state, Status: c.r.Status, Gone: c.gone, At: now, Error: got.Error}
		if c.wait > 0 {
			want.NextAttemptAt = now.Add(c.wait)
		}
		if diff := cmp.Diff(want, got); diff != "" || (got.Error == "") != (c.state == Delivered) {
			t.Errorf("%s: error %q, %s", c.name, got.Error, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	fine := Content{URL: "https://example.com/hook?x=1", Wishes: Wishes{
		Types: []Type{MovementCreated, BalanceLow}, LowBalance: []Threshold{{"main", 5}, {"main", 10}},
	}}
	for _, c := range []struct {
		name    string
		change  func(*Content)
		private bool
		field   string
	}{
		{"fine", func(*Content) {}, false, ""},
		{"no scheme", func(c *Content) { c.URL = "example.com" }, false, "url"},
		{"file", func(c *Content) { c.URL = "file:///etc/passwd" }, false, "url"},
		{"user", func(c *Content) { c.URL = "https://user@example.com" }, false, "url"},
		{"password", func(c *Content) { c.URL = "https://:p@example.com" }, true, "url"},
		{"fragment", func(c *Content) { c.URL = "https://example.com/#x" }, false, "url"},
		{"no host", func(c *Content) { c.URL = "http://:80/" }, false, "url"},
		{"blank within", func(c *Content) { c.URL = "https://example.com/a b" }, false, "url"},
		{"too long", func(c *Content) { c.URL = "https://example.com/" + strings.Repeat("x", urlLimit) }, false, "url"},
		{"loopback", func(c *Content) { c.URL = "http://127.0.0.1:9/" }, false, "url"},
		{"loopback of version 6", func(c *Content) { c.URL = "http://[::1]:9/" }, false, "url"},
		{"loopback is allowed", func(c *Content) { c.URL = "http://127.0.0.1:9/" }, true, ""},
		{"description", func(c *Content) { c.Description = "a\nb" }, false, "description"},
		{"no types", func(c *Content) { c.Types = nil }, false, "events"},
		{"unknown type", func(c *Content) { c.Types = []Type{"x"} }, false, "events"},
		{"test", func(c *Content) { c.Types = []Type{Test} }, false, "events"},
		{"a type twice", func(c *Content) { c.Types = []Type{MovementCreated, MovementCreated} }, false, "events"},
		{"thresholds unasked", func(c *Content) { c.Types = []Type{MovementCreated} }, false, "low_balance"},
		{"no thresholds", func(c *Content) { c.LowBalance = nil }, false, "low_balance"},
		{"a threshold twice", func(c *Content) { c.LowBalance = []Threshold{{"main", 5}, {"main", 5}} }, false, "low_balance"},
		{"no credit type", func(c *Content) { c.LowBalance = []Threshold{{"", 5}} }, false, "low_balance"},
		{"too many", func(c *Content) { c.LowBalance = make([]Threshold, thresholdLimit+1) }, false, "low_balance"},
	} {
		one := fine
		c.change(&one)
		err := one.validate(c.private)
		f, _ := errors.AsType[*fault.Error](err)
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (f == nil || f.Code != api.CodeValidationFailed || f.Details["field"] != c.field):
			t.Errorf("%s: %v, want a fault of %s", c.name, err, c.field)
		}
	}
}

// TestNotices: a movement is told under one id, a threshold that is crossed
// downwards once, and nobody hears what they did not ask for.
func TestNotices(t *testing.T) {
	t.Parallel()
	both := Subscriber{"both", Wishes{[]Type{MovementCreated, BalanceLow}, []Threshold{{"main", 10}, {"main", 5}, {"other", 10}}}}
	low := Subscriber{"low", Wishes{[]Type{BalanceLow}, []Threshold{{"main", 10}}}}
	moves := Subscriber{"moves", Wishes{[]Type{MovementCreated}, nil}}
	const movement = "01980000-0000-7000-8000-000000000001"
	for _, c := range []struct {
		name          string
		before, after credit.Balance
		held          bool
		want          []string
	}{
		{"above", credit.Balance{Posted: 20}, credit.Balance{Posted: 10}, false, []string{"movement.created both,moves"}},
		{"crosses one", credit.Balance{Posted: 10}, credit.Balance{Posted: 9}, false, []string{"movement.created both,moves", "balance.low both,low"}},
		{"crosses two", credit.Balance{Posted: 10}, credit.Balance{}, false, []string{"movement.created both,moves", "balance.low both,low", "balance.low both"}},
		{"is below", credit.Balance{Posted: 4}, credit.Balance{Posted: 1}, false, []string{"movement.created both,moves"}},
		{"upwards", credit.Balance{Posted: 4}, credit.Balance{Posted: 40}, false, []string{"movement.created both,moves"}},
		{"a hold crosses", credit.Balance{Posted: 10}, credit.Balance{Posted: 10, Held: 1}, true, []string{"balance.low both,low"}},
		{"a hold does not", credit.Balance{Posted: 20}, credit.Balance{Posted: 20, Held: 1}, true, nil},
	} {
		change := Change{ProjectID: "p", Customer: "ada", CreditType: "main", Before: c.before, After: c.after, At: time.UnixMilli(1500)}
		if !c.held {
			change.Movements = []credit.Movement{{ID: movement, Customer: "ada", CreditType: "main", Entry: credit.Entry{Kind: credit.Charge}}}
		}
		n := 0
		notices, err := Notices(&change, []Subscriber{both, low, moves}, func() (string, error) { n++; return fmt.Sprintf("%036d", n), nil })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ids := map[string]bool{}
		for _, one := range notices {
			got = append(got, string(one.Type)+" "+strings.Join(one.Endpoints, ","))
			var body struct{ Type, Timestamp string }
			if err := json.Unmarshal(one.Body, &body); err != nil || body.Type != string(one.Type) || body.Timestamp != "1970-01-01T00:00:01.500Z" {
				t.Errorf("%s: %s, %v", c.name, one.Body, err)
			}
			if one.Type == MovementCreated && one.ID != "msg_"+movement {
				t.Errorf("%s: the message of a movement is %s", c.name, one.ID)
			}
			if ids[one.ID] || len(one.ID) != 40 {
				t.Errorf("%s: id %s", c.name, one.ID)
			}
			ids[one.ID] = true
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestLimitsTakeTurns: an endpoint that is always due does not keep others
// from being served.
func TestLimitsTakeTurns(t *testing.T) {
	t.Parallel()
	w := NewWorker(WorkerParams{})
	var due []string
	for i := range 2 * maxSends / maxSendsEach {
		due = append(due, fmt.Sprintf("%03d", i))
	}
	served := map[string]int{}
	for range 2 {
		total := 0
		for _, l := range w.limits(due) {
			served[l.EndpointID]++
			total += l.Limit
		}
		if total != maxSends {
			t.Errorf("%d at once, want %d", total, maxSends)
		}
	}
	for _, one := range due {
		if served[one] != 1 {
			t.Errorf("%s was served %d times in two rounds, want once", one, served[one])
		}
	}
	w.sending["000"] = maxSendsEach
	if got := w.limits([]string{"000"}); len(got) != 0 {
		t.Errorf("an endpoint that has all it may gets %v", got)
	}
}

func TestWishesText(t *testing.T) {
	t.Parallel()
	w := Wishes{Types: []Type{BalanceLow}, LowBalance: []Threshold{{"main", -1_500_000}, {`"`, 1}}}
	types, thresholds, err := w.Texts()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseWishes(types, thresholds)
	if diff := cmp.Diff(w, back); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
