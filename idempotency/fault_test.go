package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

var errDisk = errors.New("disk")

// faulty is a real store that fails at chosen calls, before it has done what it
// was asked or after it.
type faulty struct {
	idempotency.Store

	// fail is asked at each call, with its name and its number from 1.
	fail  func(call string, n int) (before, after bool)
	mu    sync.Mutex
	calls map[string]int
}

func (f *faulty) around(call string, do func() error) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[call]++
	before, after := f.fail(call, f.calls[call])
	f.mu.Unlock()
	if before {
		return errDisk
	}
	err := do()
	if err == nil && after {
		return errDisk
	}
	return err
}

func (f *faulty) Claim(ctx context.Context, r idempotency.Request, lease time.Duration) (c idempotency.Claim, err error) {
	err = f.around("claim", func() (err error) {
		c, err = f.Store.Claim(ctx, r, lease)
		return err
	})
	return c, err
}

func (f *faulty) Complete(ctx context.Context, r idempotency.Request, o idempotency.Owner, a idempotency.Answer) error {
	return f.around("complete", func() error { return f.Store.Complete(ctx, r, o, a) })
}

func (f *faulty) Release(ctx context.Context, ref idempotency.Ref, o idempotency.Owner) error {
	return f.around("release", func() error { return f.Store.Release(ctx, ref, o) })
}

func (f *faulty) Find(ctx context.Context, ref idempotency.Ref) (rec idempotency.Record, found bool, err error) {
	err = f.around("find", func() (err error) {
		rec, found, err = f.Store.Find(ctx, ref)
		return err
	})
	return rec, found, err
}

// with puts a store that fails at the n-th call of a name under a service.
func with(t testing.TB, fail func(call string, n int) (before, after bool)) func(*idempotency.MiddlewareParams) {
	t.Helper()
	store := &faulty{Store: openStore(t), fail: fail}
	return func(p *idempotency.MiddlewareParams) { p.Store = store }
}

func TestAClaimThatFails(t *testing.T) {
	s := serve(t, payments(), created, with(t, func(call string, n int) (bool, bool) { return call == "claim" && n == 1, false }))
	got := s.post(t, "k1", `{}`)
	s.expect(t, got, 503, 0)
	if got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "nothing was done") || strings.Contains(got.body, "disk") {
		t.Errorf("got %+v", got)
	}
	s.expect(t, s.post(t, "k1", `{}`), 201, 1)
}

// The claim was committed and nobody knows: the key is busy until its lease has
// ended, then a repeat does the work.
func TestAClaimWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: newMemory(), fail: func(call string, n int) (bool, bool) { return false, call == "claim" && n == 1 }}
		h := keyed(t, payments(), store, func(w http.ResponseWriter, _ *http.Request) { write(w, "done") })
		for _, want := range []int{503, 409} {
			if got := call(t, h, `{}`); got.status != want {
				t.Errorf("got %+v, want %d", got, want)
			}
		}
		after(time.Minute)
		if got := call(t, h, `{}`); got.body != "done" || got.replayed() {
			t.Errorf("got %+v", got)
		}
	})
}

// The work has been done: its end is written again and again, whether the first
// attempts were lost on the way there or on the way back.
func TestAnEndThatIsRetried(t *testing.T) {
	status := http.StatusCreated
	for _, call := range []string{"complete", "release"} {
		for _, lostAfter := range []bool{false, true} {
			s := serve(t, payments(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) },
				with(t, func(c string, n int) (bool, bool) {
					fails := c == call && n <= 3
					return fails && !lostAfter, fails && lostAfter
				}))
			status = map[string]int{"complete": http.StatusCreated, "release": http.StatusConflict}[call]
			got := s.post(t, "k1", `{}`)
			s.expect(t, got, status, 1)
			if got.replayed() {
				t.Errorf("the owner is told that it repeats: %+v", got)
			}
			again := s.post(t, "k1", `{}`)
			if want := call == "complete"; again.replayed() != want || again.status != status {
				t.Errorf("%s: again %+v", call, again)
			}
		}
	}
}

// The store does not come back: the client is not told what may be forgotten.
func TestAnEndThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: newMemory(), fail: func(call string, _ int) (bool, bool) { return call == "complete", false }}
		h := keyed(t, payments(), store, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/payments/1")
			write(w, "paid")
		})
		begin := time.Now()
		got := call(t, h, `{}`)
		if got.status != 503 || strings.Contains(got.body, "paid") || got.header.Get("Location") != "" || got.header.Get("Retry-After") == "" {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("gave up after %v", took)
		}
	})
}

// Neither the late owner's answer nor a guess is said if the other's cannot be
// read.
func TestALateOwnerThatCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory()
		goOn, late := stall(t, func(h http.HandlerFunc) http.Handler {
			store := &faulty{Store: memory, fail: func(call string, _ int) (bool, bool) { return call == "find", false }}
			return keyed(t, payments(), &stalling{Store: store, fails: always, lost: errDisk}, h)
		})
		call(t, keyed(t, payments(), memory, func(w http.ResponseWriter, _ *http.Request) { write(w, "second") }), `{}`)
		close(goOn)
		if got := <-late; got.status != 503 || strings.Contains(got.body, "late") {
			t.Errorf("got %+v", got)
		}
	})
}

// A client that leaves in the middle of a claim does not leave a key behind
// that nobody owns.
func TestAClientThatLeavesWhileItsKeyIsClaimed(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	store := openStore(t)
	ran := false
	h := keyed(t, payments(), &faulty{Store: store, fail: func(call string, _ int) (bool, bool) {
		if call == "claim" {
			leave()
		}
		return false, false
	}}, func(w http.ResponseWriter, _ *http.Request) {
		ran = true
		write(w, "done")
	})
	h.ServeHTTP(&discard{}, newRequest(t, "/pay", "k1", `{}`).WithContext(ctx))
	rec, found, err := store.Find(t.Context(), idempotency.Ref{Scope: "s", Namespace: "work", Key: "k1"})
	if err != nil || !ran || !found || rec.State != idempotency.Done {
		t.Errorf("ran %t, left behind %+v, %v", ran, rec, err)
	}
}

// discard is a client that does not read.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}
func (d *discard) WriteHeader(int)           {}
func (d *discard) Write([]byte) (int, error) { return 0, net.ErrClosed }

// Fifty first times at once: one runs, the others hear what it said.
func TestFiftyAtOnce(t *testing.T) {
	const n = 50
	p := payments()
	p.Running.Wait = time.Minute
	tally := newLedger()
	counts := idempotency.NewTally(tally.add)
	s := serve(t, p, created, func(params *idempotency.MiddlewareParams) { params.Tally = counts })
	replies := make(chan *reply, n)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			<-begin
			replies <- s.post(t, "k1", `{"a":1}`)
		})
	}
	close(begin)
	all.Wait()
	close(replies)
	replays := 0
	for got := range replies {
		if got.status != 201 || got.body != `{"A":1}` {
			t.Errorf("got %+v", got)
		}
		if got.replayed() {
			replays++
		}
	}
	if s.runs.Load() != 1 || replays != n-1 {
		t.Errorf("%d runs, %d replays", s.runs.Load(), replays)
	}
	s.expect(t, s.post(t, "k1", `{"a":2}`), 409, 1)
	if err := counts.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := tally.sums[idempotency.Ref{Scope: "user-", Namespace: "work", Key: "k1"}]
	if got.Repeats != n-1 || got.Conflicts != 1 {
		t.Errorf("counted %+v", got)
	}
}

// Go's own client sends a request with an Idempotency-Key again, without
// telling, when a connection that it had used before is reset (golang/go#19943).
func TestAConnectionThatIsResetAfterTheCommit(t *testing.T) {
	s := serve(t, payments(), created)
	var deliveries atomic.Int64
	front := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pay" {
			return
		}
		cut := deliveries.Add(1) == 1
		inner := r.Clone(r.Context())
		inner.RequestURI, inner.Host = "", ""
		inner.URL.Scheme, inner.URL.Host = "http", s.Listener.Addr().String()
		got := send(t, inner) // it is committed when this returns
		if cut {
			reset(t, w)
			return
		}
		w.Header().Set(idempotency.Replayed, got.header.Get(idempotency.Replayed))
		w.WriteHeader(got.status)
		write(w, got.body)
	}))
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	warm, err := client.Get(front.URL + "/warm") // only a used connection is believed to have died idle
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, warm.Body); errors.Join(err, warm.Body.Close()) != nil {
		t.Fatal(err)
	}
	response, err := client.Do(newRequest(t, front.URL+"/pay", "k1", `{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if deliveries.Load() != 2 || s.runs.Load() != 1 {
		t.Errorf("%d deliveries, %d runs", deliveries.Load(), s.runs.Load())
	}
	if response.StatusCode != http.StatusCreated || string(body) != `{"A":1}` || response.Header.Get(idempotency.Replayed) != "true" {
		t.Errorf("got %d %s, %v", response.StatusCode, body, response.Header)
	}
}

// reset cuts a connection with RST.
func reset(t testing.TB, w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		err = tcp.SetLinger(0)
	}
	if err := errors.Join(err, connection.Close()); err != nil {
		t.Error(err)
	}
}
