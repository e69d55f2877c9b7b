package e2e_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

func loginBody(email, password string) string {
	return fmt.Sprintf(`{"email":%q,"password":%q}`, email, password)
}

func refreshBody(token string) string { return fmt.Sprintf(`{"refresh_token":%q}`, token) }

func TestLogin(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		access, refresh := login(t, r, strings.ToUpper(r.Setup.Email), r.Setup.Password)
		access.must(t, 200, "GET", project(r), "")
		if !strings.HasPrefix(access.secret, "apt_") {
			t.Errorf("an access token that begins with %q", access.secret[:4])
		}
		caller{r, refresh}.refused(t, "unauthenticated", "GET", project(r), "") // it is good for one thing

		wrong := nobody(r).refused(t, "invalid_credentials", "POST", "/api/v1/auth/login", loginBody(r.Setup.Email, "wrong"))
		none := nobody(r).refused(t, "invalid_credentials", "POST", "/api/v1/auth/login", loginBody("nobody@localhost", "wrong"))
		if wrong.status != 401 || wrong.part("message") != none.part("message") {
			t.Errorf("%v and %v", wrong.body, none.body)
		}
		for body, code := range map[string]string{
			`{`: "invalid_json", `{}`: "validation_failed", `{"email":"a@b","password":1}`: "validation_failed",
			`{"email":"a@b","password":"x","remember":true}`:                   "validation_failed",
			`{"email":"a@b","password":"` + strings.Repeat("x", 20<<10) + `"}`: "payload_too_large",
		} {
			nobody(r).refused(t, code, "POST", "/api/v1/auth/login", body)
		}
		other := `{"email":"` + r.Setup.Email + `","password":"` + r.Setup.Password + `","organization_id":"01980000-0000-7000-8000-000000000001"}`
		nobody(r).refused(t, "forbidden", "POST", "/api/v1/auth/login", other)
	})
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		first, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
		bystander, _ := login(t, r, r.Setup.Email, r.Setup.Password)
		next := nobody(r).must(t, 200, "POST", "/api/v1/auth/refresh", refreshBody(refresh))
		second := caller{r, next.text(t, "access_token")}
		if second.secret == first.secret || next.text(t, "refresh_token") == refresh {
			t.Fatal("nothing is new")
		}
		second.must(t, 200, "GET", project(r), "")

		reused := nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(refresh))
		if reused.status != 401 {
			t.Errorf("%d", reused.status)
		}
		for _, ended := range []caller{first, second} { // the family, at once
			ended.refused(t, "unauthenticated", "GET", project(r), "")
		}
		nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(next.text(t, "refresh_token")))
		nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody("apr_nonsense"))
		bystander.must(t, 200, "GET", project(r), "")
	})
}

// TestRefreshTwiceAtOnce: of two who spend a token at the same time at most
// one goes on, and not for long: nobody can tell which of them is the thief.
func TestRefreshTwiceAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		for range 5 {
			first, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
			answers := make([]said, 2)
			together(2, func(i int) { answers[i] = nobody(r).call(t, "POST", "/api/v1/auth/refresh", refreshBody(refresh)) })
			tokens := 0
			for _, a := range answers {
				if a.status == 200 {
					tokens++
					caller{r, a.text(t, "access_token")}.refused(t, "unauthenticated", "GET", project(r), "")
					nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(a.text(t, "refresh_token")))
				} else if a.code() != "unauthenticated" {
					t.Errorf("%d %v", a.status, a.body)
				}
			}
			if tokens != 1 {
				t.Errorf("%d of two got tokens", tokens)
			}
			first.refused(t, "unauthenticated", "GET", project(r), "")
		}
	})
}

func TestLogout(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		access, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
		other, _ := login(t, r, r.Setup.Email, r.Setup.Password)
		access.must(t, 204, "POST", "/api/v1/auth/logout", "")
		access.refused(t, "unauthenticated", "GET", project(r), "")
		access.refused(t, "unauthenticated", "POST", "/api/v1/auth/logout", "")
		nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(refresh))
		other.must(t, 200, "GET", project(r), "")
		owner(r).must(t, 204, "POST", "/api/v1/auth/logout", "") // a token without a session ends alone
		owner(r).refused(t, "unauthenticated", "GET", project(r), "")
		other.must(t, 200, "GET", project(r), "")
	})
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		access, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
		other, stolen := login(t, r, r.Setup.Email, r.Setup.Password)
		body := func(current, wanted string) string {
			return fmt.Sprintf(`{"current_password":%q,"new_password":%q}`, current, wanted)
		}
		access.refused(t, "invalid_credentials", "POST", "/api/v1/auth/password", body("wrong", newPassword))
		short := access.refused(t, "validation_failed", "POST", "/api/v1/auth/password", body(r.Setup.Password, "short"))
		if short.detail("field") != "new_password" {
			t.Errorf("%v", short.body)
		}
		other.must(t, 200, "GET", project(r), "")
		access.must(t, 204, "POST", "/api/v1/auth/password", body(r.Setup.Password, newPassword))
		access.must(t, 200, "GET", project(r), "")
		nobody(r).must(t, 200, "POST", "/api/v1/auth/refresh", refreshBody(refresh))
		other.refused(t, "unauthenticated", "GET", project(r), "")
		nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(stolen))
		owner(r).refused(t, "unauthenticated", "GET", project(r), "")
		nobody(r).refused(t, "invalid_credentials", "POST", "/api/v1/auth/login", loginBody(r.Setup.Email, r.Setup.Password))
		login(t, r, r.Setup.Email, newPassword)
	})
}

// TestGuessing: whoever guesses is slowed down, by email and by address, and
// guesses at once are not more than those in a row.
func TestGuessing(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	var wrong, limited atomic.Int32
	together(40, func(i int) {
		switch s := nobody(r).call(t, "POST", "/api/v1/auth/login", loginBody(r.Setup.Email, "guess"+strconv.Itoa(i))); {
		case s.code() == "invalid_credentials":
			wrong.Add(1)
		case s.status == 429 && s.code() == "rate_limited" && s.detail("retryable") == true:
			limited.Add(1)
			if n, err := strconv.Atoi(s.header.Get("Retry-After")); err != nil || n < 1 || n > 30 {
				t.Errorf("Retry-After %q", s.header.Get("Retry-After"))
			}
		default:
			t.Errorf("%d %v", s.status, s.body)
		}
	})
	if wrong.Load() < 10 || wrong.Load() > 11 || limited.Load() != 40-wrong.Load() {
		t.Errorf("%d looked at, %d refused", wrong.Load(), limited.Load())
	}
	// The right one is not even looked at, and so it is of all emails from there.
	nobody(r).refused(t, "rate_limited", "POST", "/api/v1/auth/login", loginBody(r.Setup.Email, r.Setup.Password))
	nobody(r).refused(t, "rate_limited", "POST", "/api/v1/auth/login", loginBody("other@localhost", "guess"))
	owner(r).must(t, 200, "GET", project(r), "") // nobody is thrown out
}

// TestGuessingFromManyAddresses: one email is guarded wherever the guesses
// come from, and others are not locked out with it.
func TestGuessingFromManyAddresses(t *testing.T) {
	t.Parallel()
	r := apptest.NewOnPostgreSQL(t, "--trusted_proxies", "127.0.0.0/8").MustServe()
	from := func(address, email, password string) said {
		return sendWith(t, r, "/api/v1/auth/login", loginBody(email, password), map[string]string{"X-Forwarded-For": address})
	}
	for i := range 10 {
		if s := from("198.51.100."+strconv.Itoa(i), r.Setup.Email, "guess"); s.code() != "invalid_credentials" {
			t.Fatalf("%d %v", s.status, s.body)
		}
	}
	if s := from("198.51.100.99", r.Setup.Email, r.Setup.Password); s.code() != "rate_limited" {
		t.Errorf("%d %v", s.status, s.body)
	}
	if s := from("198.51.100.99", "other@localhost", "guess"); s.code() != "invalid_credentials" {
		t.Errorf("%d %v", s.status, s.body)
	}
	// Without that proxy the header is anybody's to write, and says nothing.
	plain := apptest.New(t).MustServe()
	last := said{}
	for i := range 12 {
		last = sendWith(t, plain, "/api/v1/auth/login", loginBody("u"+strconv.Itoa(i)+"@localhost", "guess"),
			map[string]string{"X-Forwarded-For": "198.51.100." + strconv.Itoa(i)})
	}
	if last.code() != "rate_limited" {
		t.Errorf("%d %v", last.status, last.body)
	}
}
