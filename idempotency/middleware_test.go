package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

func TestARepeatIsAnsweredAndNotRun(t *testing.T) {
	s := serve(t, payments(), created)
	first := s.post(t, "k1", `{"a":1}`)
	s.expect(t, first, 201, 1)
	if first.body != `{"A":1}` || first.replayed() || first.header.Get("Set-Cookie") == "" || first.header.Get("X-Forgotten") != "1" {
		t.Errorf("first: %+v", first)
	}
	again := s.post(t, "k1", `{"a":1}`)
	s.expect(t, again, 201, 1)
	if again.body != first.body || !again.replayed() || again.header.Get("Content-Type") != "application/json" ||
		again.header.Get("Location") != "/payments/1" || again.header.Get("Link") != "<a>; rel=a, <b>; rel=b" {
		t.Errorf("again: %+v", again)
	}
	if again.header.Get("Set-Cookie") != "" || again.header.Get("X-Forgotten") != "" {
		t.Errorf("a repeat is given headers that nobody wanted kept: %v", again.header)
	}
	s.expect(t, s.post(t, "k2", `{"a":1}`), 201, 2)
}

func TestAnotherRequestWithTheKey(t *testing.T) {
	s := serve(t, payments(), created)
	s.expect(t, s.post(t, "k1", `{"a":1}`), 201, 1)
	conflict := s.post(t, "k1", `{"a":2}`)
	s.expect(t, conflict, 409, 1)
	if conflict.replayed() || !strings.Contains(conflict.body, `"differs":["body"]`) || strings.Contains(conflict.body, "A") ||
		conflict.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %+v", conflict)
	}
	s.expect(t, send(t, newRequest(t, s.URL+"/refund", "k1", `{"a":1}`)), 409, 1)
	put := newRequest(t, s.URL+"/pay", "k1", `{"a":1}`)
	put.Method = "PUT"
	s.expect(t, send(t, put), 409, 1)
	s.expect(t, s.post(t, "k1", `{"a":1}`), 201, 1)
}

func TestRequestsThatAreRefusedBeforeAnyWork(t *testing.T) {
	s := serve(t, payments(), created, func(p *idempotency.MiddlewareParams) { p.MaxBody = 10 })
	s.expect(t, s.post(t, "", `{}`), 400, 0)
	s.expect(t, s.post(t, text(191), `{}`), 422, 0)
	twice := newRequest(t, s.URL, "k1", `{}`)
	twice.Header.Add(idempotency.Header, "k1")
	s.expect(t, send(t, twice), 422, 0)
	s.expect(t, s.post(t, "k1", `{"a":12345}`), 413, 0)
	if _, found, err := s.store.Find(t.Context(), idempotency.Ref{Scope: "user-", Namespace: "work", Key: "k1"}); found || err != nil {
		t.Errorf("a refusal has touched the key: %v", err)
	}
	s.expect(t, s.post(t, "k1", `{"a":1234}`), 201, 1)
}

func TestAKeyThatIsOptional(t *testing.T) {
	p := payments()
	p.Key.Required = false
	s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		if lease, ok := idempotency.LeaseFrom(r.Context()); ok != (r.Header.Get(idempotency.Header) != "") || ok && lease.Key() != "k1" {
			t.Errorf("lease %v for key %q", ok, r.Header.Get(idempotency.Header))
		}
		created(w, r)
	})
	s.expect(t, s.post(t, "", `{}`), 201, 1)
	s.expect(t, s.post(t, "", `{}`), 201, 2)
	s.expect(t, s.post(t, "k1", `{}`), 201, 3)
	s.expect(t, s.post(t, "k1", `{}`), 201, 3)
}

func TestScopesSeparatePrincipals(t *testing.T) {
	s := serve(t, payments(), func(w http.ResponseWriter, r *http.Request) {
		write(w, "secret of "+r.Header.Get("Authorization"))
	})
	as := func(who string) *reply {
		r := newRequest(t, s.URL, "k1", `{}`)
		r.Header.Set("Authorization", who)
		return send(t, r)
	}
	if got := as("ada"); got.body != "secret of ada" {
		t.Errorf("got %+v", got)
	}
	if got := as("eve"); got.body != "secret of eve" || got.replayed() {
		t.Errorf("one principal reads another's answer: %+v", got)
	}
	s.expect(t, as("ada"), 200, 2)
}

func TestAScopeThatCannotBeFound(t *testing.T) {
	s := serve(t, payments(), created, func(p *idempotency.MiddlewareParams) {
		p.Scope = func(*http.Request) (string, error) { return "", errors.New("secret cause") }
	})
	got := s.post(t, "k1", `{}`)
	s.expect(t, got, 500, 0)
	if strings.Contains(got.body, "secret") {
		t.Errorf("the cause is told: %s", got.body)
	}
}

// What takes a key, by policy: a refusal leaves it free, unless every answer
// takes it.
func TestWhatTakesAKey(t *testing.T) {
	fail := true
	refuse := func(w http.ResponseWriter, r *http.Request) {
		if fail {
			http.Error(w, "no", http.StatusPaymentRequired)
			return
		}
		created(w, r)
	}
	s := serve(t, payments(), refuse)
	s.expect(t, s.post(t, "k1", `{"a":1}`), 402, 1)
	s.expect(t, s.post(t, "k1", `{"a":1}`), 402, 2)
	fail = false
	s.expect(t, s.post(t, "k1", `{"a":"other"}`), 201, 3)

	fail = true
	every := idempotency.IETF(time.Hour)
	s = serve(t, every, refuse)
	s.expect(t, s.post(t, `"k1"`, `{"a":1}`), 402, 1)
	fail = false
	again := s.post(t, `"k1"`, `{"a":1}`)
	s.expect(t, again, 402, 1)
	if !again.replayed() || again.body != "no\n" {
		t.Errorf("got %+v", again)
	}
	s.expect(t, s.post(t, `"k1"`, `{"a":"other"}`), 422, 1)
}

// An answer without a body, or without anything, is an answer.
func TestEmptyAnswersAreReplayed(t *testing.T) {
	for status, handler := range map[int]http.HandlerFunc{
		204: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		200: func(http.ResponseWriter, *http.Request) {},
	} {
		s := serve(t, payments(), handler)
		s.expect(t, s.post(t, "k1", `{}`), status, 1)
		again := s.post(t, "k1", `{}`)
		s.expect(t, again, status, 1)
		if !again.replayed() || again.body != "" {
			t.Errorf("got %+v", again)
		}
	}
}

// As with net/http itself, what is set after the answer has begun is not said.
func TestHeadersAfterTheAnswerHasBegun(t *testing.T) {
	s := serve(t, payments(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/a")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Content-Type", "text/b")
		w.Header().Set("Late", "1")
		w.WriteHeader(http.StatusAccepted)
		write(w, "x")
	})
	for range 2 {
		one := s.post(t, "k1", `{}`)
		s.expect(t, one, http.StatusCreated, 1)
		if one.header.Get("Content-Type") != "text/a" || one.header.Get("Late") != "" {
			t.Errorf("got %v", one.header)
		}
	}
}

// A status that cannot be said is a bug of the handler, and must not become the
// answer to every repeat.
func TestAnImpossibleStatusTakesNoKey(t *testing.T) {
	for _, impossible := range []int{0, 99, 1000} {
		var corrected atomic.Bool
		s := serve(t, idempotency.IETF(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
			if corrected.Load() {
				w.WriteHeader(http.StatusCreated)
				return
			}
			w.WriteHeader(impossible)
		})
		response, err := http.DefaultClient.Do(newRequest(t, s.URL, `"k1"`, `{}`))
		if err == nil {
			t.Errorf("%d was answered with %d", impossible, response.StatusCode)
			response.Body.Close() //nolint:errcheck // the test has failed
		}
		corrected.Store(true)
		s.expect(t, s.post(t, `"k1"`, `{}`), http.StatusCreated, 2)
	}
}

func TestAnEncodedAnswerKeepsItsEncoding(t *testing.T) {
	s := serve(t, payments(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		write(w, "bytes that mean nothing without it")
	})
	first, again := s.post(t, "k1", `{}`), s.post(t, "k1", `{}`)
	if again.header.Get("Content-Encoding") != "br" || again.body != first.body || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
		t.Errorf("first %v, again %v", first.header, again.header)
	}
}

// What was set outside stays, and the handler can see and change it.
func TestHeadersOfTheOutside(t *testing.T) {
	keyed, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: payments(), Store: openStore(t), Scope: func(*http.Request) (string, error) { return "s", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	inner := keyed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Del("X-Secret")
	}))
	s := &service{}
	s.Server = newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		w.Header().Set("X-Secret", "1")
		w.Header().Set("Vary", "Origin")
		inner.ServeHTTP(w, r)
	}))
	got := s.post(t, "k1", `{}`)
	if got.header.Get("X-Request-Id") != "r1" || got.header.Get("X-Secret") != "" || len(got.header.Values("Vary")) != 2 {
		t.Errorf("got %v", got.header)
	}
}

// A panic frees the key and goes on to whoever is outside.
func TestAPanicFreesTheKey(t *testing.T) {
	recovered := make(chan any, 1)
	broken := true
	inner := serve(t, idempotency.IETF(time.Hour), created)
	keyed, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: idempotency.IETF(time.Hour), Store: inner.store,
		Scope: func(*http.Request) (string, error) { return "s", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	h := keyed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		if broken {
			panic("boom")
		}
	}))
	s := &service{}
	s.Server = newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				recovered <- p
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	}))
	if got := s.post(t, `"k1"`, `{}`); got.status != 500 || <-recovered != "boom" {
		t.Errorf("got %+v", got)
	}
	broken = false
	if got := s.post(t, `"k1"`, `{"another":"body"}`); got.status != 201 || got.replayed() {
		t.Errorf("the key is not free: %+v", got)
	}
}

func TestAResourceTakesTheKey(t *testing.T) {
	var mode string
	p := idempotency.Execution()
	s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		lease, _ := idempotency.LeaseFrom(r.Context())
		if mode == "refused" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		if err := lease.Made(r.Context(), idempotency.Resource{Kind: "execution", ID: "e1"}); err != nil {
			t.Error(err)
		}
		if mode == "panic" {
			panic("after it was made")
		}
		http.Error(w, "the model failed", http.StatusBadGateway)
	}, func(p *idempotency.MiddlewareParams) {
		p.Current = func(w http.ResponseWriter, _ *http.Request, result idempotency.Result) {
			write(w, result.Record.Resource.Kind+" "+result.Record.Resource.ID)
		}
	})
	mode = "refused"
	s.expect(t, s.post(t, "k1", `{}`), 404, 1)
	mode = "failed"
	s.expect(t, s.post(t, "k1", `{"corrected":true}`), 502, 2)
	again := s.post(t, "k1", `{"corrected":true}`)
	s.expect(t, again, 200, 2)
	if again.body != "execution e1" || !again.replayed() {
		t.Errorf("got %+v", again)
	}
	mode = "panic"
	once := newRequest(t, s.URL+"/pay", "k2", `{}`)
	once.Close = true // on a used connection Go's client would repeat it by itself
	if response, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(once); err == nil {
		t.Error("a panic was answered", response.Body.Close())
	}
	s.expect(t, s.post(t, "k2", `{}`), 200, 3)
}

// A client that leaves does not end the work; its repeat gets the answer.
func TestAClientThatLeaves(t *testing.T) {
	begun, leave, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := serve(t, payments(), func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-leave
		if err := r.Context().Err(); err != nil {
			t.Errorf("the work was ended: %v", context.Cause(r.Context()))
		}
		created(w, r)
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(newRequest(t, s.URL+"/pay", "k1", `{"a":1}`).WithContext(ctx))
		if err == nil {
			err = response.Body.Close()
		}
		gone <- err
	}()
	<-begun
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the client did not leave")
	}
	running := s.post(t, "k1", `{"a":1}`)
	s.expect(t, running, 409, 1)
	if running.header.Get("Retry-After") != "1" || running.replayed() {
		t.Errorf("got %+v", running)
	}
	s.expect(t, s.post(t, "k1", `{"a":2}`), 409, 1)
	close(leave)
	<-ended
	s.waitFor(t, "k1", idempotency.Done)
	again := s.post(t, "k1", `{"a":1}`)
	s.expect(t, again, 201, 1)
	if !again.replayed() || again.body != `{"A":1}` {
		t.Errorf("got %+v", again)
	}
}

func TestParametersThatDoNotFit(t *testing.T) {
	scope := func(*http.Request) (string, error) { return "s", nil }
	store := openStore(t)
	tests := map[string]idempotency.MiddlewareParams{
		"no store":   {Policy: payments(), Scope: scope},
		"no scope":   {Policy: payments(), Store: store},
		"no policy":  {Store: store, Scope: scope},
		"no Current": {Policy: idempotency.Execution(), Store: store, Scope: scope},
		"no Current when the answer has gone": {
			Policy: idempotency.CreditMovement(time.Hour), Store: store, Scope: scope,
		},
	}
	for name, p := range tests {
		if _, err := idempotency.Middleware(p); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
