package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/actionpulse/actionpulse/retry"
)

// unit is a unit of keyed work: a run of a flow, or a movement of credits.
type unit struct {
	key, path, body string
	// flow is the index of the flow in tortured; -1 of a movement.
	flow int
	// delta is what a movement does to the balance.
	delta int

	// id is the execution's or the movement's, once one was acknowledged, end
	// how the execution has ended, once that was said.
	id, end string
	// first counts answers that are not repeats.
	first int
}

// labour is all keyed work of a run. Several buyers share its keys.
type labour struct {
	callee *callee
	seed   uint64

	mu  sync.Mutex
	all []*unit
	// acks, repeats and conflicts count answers.
	acks, repeats, conflicts int
}

// Who pays, and with how much to begin with.
const (
	payer      = "payer"
	beginsWith = 1_000_000
)

// startLabour publishes the flows and what they need.
func (x *torture) startLabour() {
	x.Helper()
	x.labour = &labour{callee: x.startCallee(), seed: x.seed}
	base := x.labour.callee.url
	x.put(x.creds.AccessToken, "/api/v1/projects/"+x.creds.ProjectID+"/model-providers/local", fmt.Sprintf(`{"base_url":"%s/v1"}`, base))
	for _, f := range tortured {
		x.put(x.creds.ProjectKey, "/v1/flows/"+f.slug, strings.ReplaceAll(f.definition, "URL", base))
	}
	first := x.labour.add(&unit{path: movementPath("topup"), body: amountOf(beginsWith), flow: -1, delta: beginsWith})
	if err := x.newBuyer(x.direct, 999).do(x.Context(), first); err != nil {
		x.Fatal(err)
	}
}

// put demands that something is put.
func (x *torture) put(secret, path, body string) {
	x.Helper()
	request, err := http.NewRequestWithContext(x.Context(), http.MethodPut, "http://"+x.address+path, strings.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		x.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode/100 != 2 {
		x.Fatalf("%s: %d %s: %v", path, response.StatusCode, content, err)
	}
}

func movementPath(kind string) string { return "/v1/customers/" + payer + "/" + kind }

func amountOf(n int) string { return fmt.Sprintf(`{"credit_type":"main","amount":"%d"}`, n) }

// add makes a unit known and gives it its key.
func (l *labour) add(u *unit) *unit {
	u.key = fmt.Sprintf("work-%d-%d", l.seed, len(l.all))
	l.all = append(l.all, u)
	return u
}

// pick returns one of the latest units or a new one.
func (l *labour) pick(r *rand.Rand) *unit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.all) - 1 - r.IntN(6); r.IntN(2) == 0 && n > 0 {
		return l.all[n]
	}
	switch n := r.IntN(len(tortured) + 2); n {
	case 0:
		return l.add(&unit{path: movementPath("charge"), body: amountOf(3), flow: -1, delta: -3})
	case 1:
		return l.add(&unit{path: movementPath("topup"), body: amountOf(2), flow: -1, delta: 2})
	default:
		mode := ""
		if r.IntN(3) == 0 {
			mode = `,"execution_mode":"async"`
		}
		body := fmt.Sprintf(`{"flow":%q,"customer":%q,"input":{"n":%d}%s}`, tortured[n-2].slug, payer, len(l.all), mode)
		return l.add(&unit{path: "/v1/operations/execute", body: body, flow: n - 2})
	}
}

// workAnswer is what the server says of a unit.
type workAnswer struct {
	Execution struct {
		ID, Status, Charged string
	}
	Movement struct{ ID string }
	Error    struct {
		Code    string
		Details struct {
			ExecutionID string `json:"execution_id"`
		}
	}
	replayed bool
}

func (a *workAnswer) id() string { return a.Execution.ID + a.Movement.ID }

func (a *workAnswer) ended() bool {
	return a.Execution.Status == "succeeded" || a.Execution.Status == "failed" || a.Execution.Status == "cancelled"
}

// endOf returns how a unit has ended, as far as it is known; empty if it has not.
func (l *labour) endOf(u *unit) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return u.end
}

// acknowledge holds an answer against those before: a key names one unit, which
// was made once and ends in one way. before is the end that was known when it
// was asked for: an answer from before the end may come late.
func (l *labour) acknowledge(u *unit, before string, a *workAnswer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks++
	if a.replayed {
		l.repeats++
	} else {
		u.first++
	}
	switch {
	case a.id() == "" || u.id != "" && u.id != a.id():
		return fmt.Errorf("%s is %q, then %q", u.key, u.id, a.id())
	case u.first > 1:
		return fmt.Errorf("%s was done %d times", u.key, u.first)
	case before != "" && before != a.Execution.Status, u.end != "" && a.ended() && u.end != a.Execution.Status:
		return fmt.Errorf("%s has ended as %s, then as %s", u.key, u.end, a.Execution.Status)
	}
	u.id = a.id()
	if a.ended() {
		u.end = a.Execution.Status
	}
	return nil
}

// buyer sends keyed work.
type buyer struct {
	labour *labour
	client *client
	secret string
	rand   *rand.Rand
}

func (x *torture) newBuyer(c *client, number uint64) *buyer {
	return &buyer{labour: x.labour, client: c, secret: x.creds.ProjectKey, rand: newRand(x.seed, 1<<34+number)}
}

// work is a worker of a fleet.
func (b *buyer) work(ctx context.Context, f *fleet) {
	for {
		u := b.labour.pick(b.rand)
		err := b.do(ctx, u)
		if err == nil && b.rand.IntN(8) == 0 {
			err = b.conflict(ctx, u)
		}
		if err != nil && ctx.Err() == nil {
			f.fail(err)
			return
		}
		if !f.rest(ctx, restFor(b.rand)) {
			return
		}
	}
}

// do sends a unit until it is acknowledged.
func (b *buyer) do(ctx context.Context, u *unit) error {
	before := b.labour.endOf(u)
	a, err := b.send(ctx, u, u.body)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", u.key, u.body, err)
	}
	return b.labour.acknowledge(u, before, &a)
}

// conflict sends another body with a key that is taken.
func (b *buyer) conflict(ctx context.Context, u *unit) error {
	a, err := b.send(ctx, u, u.body+" ")
	e, ok := errors.AsType[*retry.Error](err)
	if !ok || e.Outcome.Status != http.StatusConflict || e.Outcome.Code != "idempotency_conflict" {
		return fmt.Errorf("%s with another body: %+v, %w", u.key, a, err)
	}
	b.labour.mu.Lock()
	defer b.labour.mu.Unlock()
	b.labour.conflicts++
	return nil
}

func (b *buyer) send(ctx context.Context, u *unit, body string) (workAnswer, error) {
	return retry.Do(ctx, b.client.policy, func(ctx context.Context) (workAnswer, retry.Outcome) {
		o := retry.Outcome{Kind: retry.Keyed}
		answer, err := b.attempt(ctx, u, body, &o)
		o.Err = err
		return answer, o
	})
}

// attempt makes one request. A failure of an execution is an answer.
func (b *buyer) attempt(ctx context.Context, u *unit, body string, o *retry.Outcome) (a workAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.client.url+u.path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+b.secret)
	request.Header.Set("Idempotency-Key", u.key)
	response, err := b.client.http.Do(request)
	if err != nil {
		return a, err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return a, err
	}
	o.Status, o.RetryAfter, o.ShouldRetry = response.StatusCode, response.Header.Get("Retry-After"), response.Header.Get("X-Should-Retry")
	if err := json.Unmarshal(content, &a); err != nil && o.Succeeded() {
		return a, err
	}
	a.replayed, o.Code = response.Header.Get("Idempotency-Replayed") == "true", a.Error.Code
	if id := a.Error.Details.ExecutionID; id != "" && bytes.Contains(content, []byte(`"key":"taken"`)) {
		o.Status, o.Code, a.Execution.ID, a.Execution.Status = http.StatusOK, "", id, "failed"
	}
	return a, nil
}
