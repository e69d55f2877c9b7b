package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// keyed puts the middleware around a handler without a network, which has no
// place in a bubble of time.
func keyed(t testing.TB, p idempotency.Policy, store idempotency.Store, h http.HandlerFunc) http.Handler {
	t.Helper()
	wrap, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: p, Store: store, Scope: func(*http.Request) (string, error) { return "s", nil },
		Current: func(w http.ResponseWriter, _ *http.Request, result idempotency.Result) {
			write(w, result.Record.Resource.ID)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return wrap(h)
}

func call(t testing.TB, h http.Handler, body string) *reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/pay", strings.NewReader(body))
	r.Header.Set(idempotency.Header, "k1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return &reply{w.Code, w.Header(), w.Body.String()}
}

// after waits in a bubble's time.
func after(d time.Duration) { <-time.After(d) }

// A worker that lives keeps its key, however long it works.
func TestALeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		h := keyed(t, payments(), newMemory(), func(w http.ResponseWriter, _ *http.Request) {
			runs++
			after(time.Hour)
			write(w, "done")
		})
		first := make(chan *reply, 1)
		go func() { first <- call(t, h, `{}`) }()
		for range 59 {
			after(time.Minute)
			synctest.Wait()
			if got := call(t, h, `{}`); got.status != 409 {
				t.Fatalf("got %+v", got)
			}
		}
		if got := <-first; got.body != "done" || runs != 1 {
			t.Errorf("got %+v after %d runs", got, runs)
		}
		if got := call(t, h, `{}`); got.body != "done" || !got.replayed() {
			t.Errorf("got %+v", got)
		}
	})
}

// stalling is a store whose owner cannot renew its claim at some times.
type stalling struct {
	idempotency.Store

	fails    func(n int64) bool // asked at each renewal, which are counted from 1
	lost     error              // what a renewal says that fails
	renewals atomic.Int64
}

func always(int64) bool { return true }

func (s *stalling) Renew(ctx context.Context, ref idempotency.Ref, o idempotency.Owner, lease time.Duration) error {
	if s.fails(s.renewals.Add(1)) {
		return s.lost
	}
	return s.Store.Renew(ctx, ref, o, lease)
}

// stall starts an owner that stalls past its lease, whose answer is "late", and
// returns how to let it go on and where its client's reply arrives.
func stall(t *testing.T, h func(http.HandlerFunc) http.Handler) (goOn chan struct{}, late chan *reply) {
	t.Helper()
	goOn, late = make(chan struct{}), make(chan *reply, 1)
	slow := h(func(w http.ResponseWriter, _ *http.Request) {
		<-goOn
		w.Header().Set("X-Late", "1")
		w.WriteHeader(http.StatusAccepted)
		write(w, "late")
	})
	go func() { late <- call(t, slow, `{}`) }()
	synctest.Wait()
	after(2 * time.Minute)
	return goOn, late
}

// The owner stalls past its lease, another takes over, the first one wakes: its
// write is refused, and its client hears the other's answer.
func TestALateOwnerIsFencedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		goOn, late := stall(t, func(h http.HandlerFunc) http.Handler {
			return keyed(t, payments(), &stalling{Store: store, fails: always, lost: errors.New("cut off")}, h)
		})
		var epoch int64
		second := keyed(t, payments(), store, func(w http.ResponseWriter, r *http.Request) {
			lease, _ := idempotency.LeaseFrom(r.Context())
			epoch = lease.Epoch()
			write(w, "second")
		})
		if got := call(t, second, `{}`); got.body != "second" || got.replayed() || epoch != 2 {
			t.Fatalf("got %+v, epoch %d", got, epoch)
		}
		close(goOn)
		if got := <-late; got.body != "second" || got.status != 200 || !got.replayed() || got.header.Get("X-Late") != "" {
			t.Errorf("the late owner's client hears %+v", got)
		}
		if got := call(t, second, `{}`); got.body != "second" {
			t.Errorf("the late owner has written: %+v", got)
		}
	})
}

// The one that took over is still working: the late owner's client is told so.
func TestALateOwnerWhileAnotherWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		goOn, late := stall(t, func(h http.HandlerFunc) http.Handler {
			return keyed(t, payments(), &stalling{Store: store, fails: always, lost: errors.New("cut off")}, h)
		})
		end := make(chan struct{})
		second := make(chan *reply, 1)
		go func() {
			second <- call(t, keyed(t, payments(), store, func(w http.ResponseWriter, _ *http.Request) {
				<-end
				write(w, "second")
			}), `{}`)
		}()
		synctest.Wait()
		close(goOn)
		if got := <-late; got.status != 409 || strings.Contains(got.body, "late") || got.header.Get("Retry-After") == "" {
			t.Errorf("the late owner's client hears %+v", got)
		}
		close(end)
		if got := <-second; got.body != "second" {
			t.Errorf("got %+v", got)
		}
	})
}

// The key was freed and names another request by the time the late owner wakes:
// its client must hear neither its own answer nor that one's.
func TestALateOwnerWhoseKeyNamesAnotherWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		goOn, late := stall(t, func(h http.HandlerFunc) http.Handler {
			return keyed(t, payments(), &stalling{Store: store, fails: always, lost: errors.New("cut off")}, h)
		})
		refuse := keyed(t, payments(), store, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPaymentRequired) })
		if got := call(t, refuse, `{}`); got.status != 402 {
			t.Fatalf("got %+v", got)
		}
		third := keyed(t, payments(), store, func(w http.ResponseWriter, _ *http.Request) { write(w, "third") })
		if got := call(t, third, `{"another":1}`); got.body != "third" {
			t.Fatalf("got %+v", got)
		}
		close(goOn)
		if got := <-late; got.status != 503 || strings.Contains(got.body, "third") || strings.Contains(got.body, "late") {
			t.Errorf("the late owner's client hears %+v", got)
		}
	})
}

// The handler is told that it works for nobody any more: at once when another
// has taken over, and in time when it cannot know.
func TestTheWorkEndsWithItsLease(t *testing.T) {
	for name, lost := range map[string]error{"taken over": idempotency.ErrLeaseLost, "cut off": errors.New("cut off")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var took time.Duration
				var cause error
				h := keyed(t, payments(), &stalling{Store: newMemory(), fails: always, lost: lost},
					func(_ http.ResponseWriter, r *http.Request) {
						<-r.Context().Done()
						cause, took = context.Cause(r.Context()), time.Since(begin)
					})
				call(t, h, `{}`)
				if !errors.Is(cause, idempotency.ErrLeaseLost) || took >= time.Minute {
					t.Errorf("ended after %v by %v", took, cause)
				}
			})
		})
	}
}

// A store that is away for a moment does not end the work.
func TestARenewalThatFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stalling{Store: newMemory(), lost: errors.New("cut off"), fails: func(n int64) bool { return n%2 == 1 }}
		h := keyed(t, payments(), store, func(w http.ResponseWriter, r *http.Request) {
			after(5 * time.Minute)
			synctest.Wait()
			if err := context.Cause(r.Context()); err != nil {
				t.Error(err)
			}
			write(w, "done")
		})
		if got := call(t, h, `{}`); got.body != "done" || store.renewals.Load() < 10 {
			t.Errorf("got %+v after %d renewals", got, store.renewals.Load())
		}
	})
}

// An owner that takes over finds what the one before has made; epochs grow with
// every owner, also over a release, after which nothing is left of it.
func TestAnOwnerThatTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		p := idempotency.Execution()
		die := keyed(t, p, &stalling{Store: store, fails: always, lost: errors.New("cut off")}, func(_ http.ResponseWriter, r *http.Request) {
			lease, _ := idempotency.LeaseFrom(r.Context())
			if _, ok := lease.Resource(); ok || lease.Epoch() != 1 {
				t.Errorf("epoch %d", lease.Epoch())
			}
			if err := lease.Made(r.Context(), idempotency.Resource{Kind: "execution", ID: "e1"}); err != nil {
				t.Error(err)
			}
			after(time.Hour)
			if err := lease.Made(r.Context(), idempotency.Resource{Kind: "execution", ID: "e9"}); !errors.Is(err, idempotency.ErrLeaseLost) {
				t.Errorf("a late owner has made something: %v", err)
			}
		})
		ended := make(chan *reply, 1)
		go func() { ended <- call(t, die, `{}`) }()
		after(time.Minute)
		next := keyed(t, p, store, func(w http.ResponseWriter, r *http.Request) {
			lease, _ := idempotency.LeaseFrom(r.Context())
			made, ok := lease.Resource()
			if !ok || made.ID != "e1" || lease.Epoch() != 2 {
				t.Errorf("found %+v, epoch %d", made, lease.Epoch())
			}
			w.WriteHeader(http.StatusBadGateway) // what was made before takes the key all the same
		})
		if got := call(t, next, `{}`); got.status != 502 {
			t.Errorf("got %+v", got)
		}
		if got := <-ended; got.body != "e1" || !got.replayed() {
			t.Errorf("the late owner's client hears %+v", got)
		}
		if got := call(t, next, `{}`); got.body != "e1" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestEpochsGrowOverReleases(t *testing.T) {
	store := openStore(t)
	h := keyed(t, payments(), store, func(w http.ResponseWriter, r *http.Request) {
		lease, _ := idempotency.LeaseFrom(r.Context())
		if err := lease.Made(r.Context(), idempotency.Resource{Kind: "try", ID: "1"}); err != nil {
			t.Error(err)
		}
		http.Error(w, strconv.FormatInt(lease.Epoch(), 10), http.StatusConflict)
	})
	for _, want := range []string{"1\n", "2\n", "3\n"} {
		if got := call(t, h, `{}`); got.body != want {
			t.Errorf("epoch %s, want %s", got.body, want)
		}
	}
	found := keyed(t, payments(), store, func(_ http.ResponseWriter, r *http.Request) {
		lease, _ := idempotency.LeaseFrom(r.Context())
		if made, ok := lease.Resource(); ok {
			t.Errorf("a release leaves %+v behind", made)
		}
	})
	call(t, found, `{}`)
}

// A repeat waits as long as the policy says, and not at all for another body.
func TestARepeatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := payments()
		p.Running.Wait, p.Running.RetryAfter = 10*time.Second, 2500*time.Millisecond
		runs := 0
		h := keyed(t, p, newMemory(), func(w http.ResponseWriter, _ *http.Request) {
			runs++
			after(25 * time.Second)
			write(w, "done")
		})
		first := make(chan *reply, 1)
		go func() { first <- call(t, h, `{}`) }()
		synctest.Wait()
		begin := time.Now()
		if got := call(t, h, `{"another":1}`); got.status != 409 || time.Since(begin) != 0 {
			t.Errorf("got %+v after %v", got, time.Since(begin))
		}
		if got := call(t, h, `{}`); got.status != 409 || got.header.Get("Retry-After") != "3" || time.Since(begin) != 10*time.Second {
			t.Errorf("got %+v after %v", got, time.Since(begin))
		}
		after(6 * time.Second)
		got := call(t, h, `{}`)
		if waited := time.Since(begin); got.body != "done" || !got.replayed() || waited < 25*time.Second || waited > 26*time.Second {
			t.Errorf("got %+v after %v", got, waited)
		}
		if got := <-first; got.body != "done" || runs != 1 {
			t.Errorf("got %+v after %d runs", got, runs)
		}
	})
}
