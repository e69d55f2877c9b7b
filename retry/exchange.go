package retry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// exchange is one request of a [Transport] with all its attempts.
type exchange struct {
	base    http.RoundTripper
	request *http.Request
	kind    Kind
	body    *payload
	lanes   *Lanes
	// series counts the attempts; one that ended in a new token is none.
	series   series
	refresh  refreshFunc
	renewals *renewals
	renewed  bool
	// pass is that of the attempt under way, and rested the time up to which this
	// request has waited.
	pass   *pass
	rested time.Time
	// last is the latest answer. It is discarded when the next attempt begins,
	// and until then can be returned.
	last answer
}

// run makes attempts until one ends the exchange.
func (x *exchange) run(ctx context.Context) (*http.Response, error) {
	for {
		out := x.outgoing(ctx)
		if err := x.enter(ctx, out); err != nil {
			return x.shutOut(ctx, err)
		}
		if !x.take(out) {
			return x.cannotRepeat()
		}
		x.last.discard()
		x.last = x.send(out)
		if x.renew(ctx, out) {
			continue
		}
		x.series.attempts++
		again := x.leave()
		switch {
		case x.last.outcome.Succeeded():
			return x.handOn()
		case x.last.response == nil && ctx.Err() != nil:
			return nil, interrupted(x.series.attempts, x.last.outcome, context.Cause(ctx))
		case ctx.Err() != nil, !x.series.mayRepeat(ctx, again):
			return x.end(again)
		case x.body.once():
			return x.cannotRepeat()
		}
		x.rested = x.series.policy.Now().Add(again.Wait)
		if err := x.series.wait(ctx, again); err != nil {
			x.last.discard()
			return nil, interrupted(x.series.attempts, x.last.outcome, err)
		}
	}
}

// close ends the exchange whatever has become of it.
func (x *exchange) close() {
	x.body.close()
	if x.pass != nil {
		x.pass.left()
	}
}

// outgoing returns a copy of the request for one attempt, without its body.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	out := x.request.Clone(ctx)
	out.Body, out.GetBody = nil, nil
	if x.refresh == nil {
		return out
	}
	if token := bearer(out.Header.Get("Authorization")); token != "" {
		if current := x.renewals.current(token); current != token {
			out.Header.Set("Authorization", "Bearer "+current)
		}
	}
	return out
}

// enter waits for the request's turn in its lane, and for the end of the lane's
// rest if the request has not waited that long itself. The error is errNoTurn
// if the turn does not come within the budget and before the deadline of ctx,
// else the cause of ctx.
func (x *exchange) enter(ctx context.Context, out *http.Request) error {
	p, err := x.lanes.enter(ctx, out, x.series.left())
	if err != nil {
		return err
	}
	x.pass = p
	for until := p.until(); until.After(x.rested); until = p.until() {
		wait := until.Sub(x.series.policy.Now())
		if wait <= 0 {
			return nil
		}
		if !x.series.timeFor(ctx, wait) {
			return errNoTurn
		}
		if err := x.series.policy.Sleep(ctx, wait); err != nil {
			return err
		}
		x.rested = until
	}
	return nil
}

// take gives an attempt its body. net/http takes a request with one of two
// headers for one that it may deliver again by itself; it does not if it cannot
// open the body again or, where there is none, does not see the header, whose
// name it compares as it is spelt.
func (x *exchange) take(out *http.Request) bool {
	body, ok := x.body.next()
	if !ok {
		return false
	}
	out.Body, out.ContentLength = body, x.body.length
	_, key := out.Header[headerKey]
	_, other := out.Header[headerOtherKey]
	switch {
	case !key && !other:
		out.GetBody = x.body.again
	case body == http.NoBody:
		respell(out.Header, headerKey)
		respell(out.Header, headerOtherKey)
	}
	return true
}

func respell(h http.Header, name string) {
	if values, ok := h[name]; ok {
		delete(h, name)
		h[strings.ToLower(name)] = values
	}
}

// send makes one attempt.
func (x *exchange) send(out *http.Request) answer {
	var asked atomic.Bool
	_, plain := x.base.(*http.Transport)
	if plain {
		out = out.WithContext(httptrace.WithClientTrace(out.Context(), &httptrace.ClientTrace{
			GetConn: func(string) { asked.Store(true) },
		}))
	}
	response, err := x.base.RoundTrip(out)
	if err == nil {
		return newAnswer(response, x.kind)
	}
	err = hush(err, out)
	if plain && !asked.Load() && out.Context().Err() == nil {
		err = &unfitError{err} // it did not come as far as to ask for a connection
	}
	return answer{outcome: Outcome{Kind: x.kind, Err: err}}
}

// renew reports whether the attempt is to be made again with a new token. The
// lane is given back first: Refresh may need it.
func (x *exchange) renew(ctx context.Context, out *http.Request) bool {
	o := x.last.outcome
	if x.refresh == nil || x.renewed || o.Status != http.StatusUnauthorized || o.Code != codeTokenExpired || x.body.once() {
		return false
	}
	token := bearer(out.Header.Get("Authorization"))
	if token == "" {
		return false
	}
	x.pass.succeeded()
	x.renewed = true
	renewed, err := x.renewals.renew(ctx, token, x.refresh)
	return err == nil && renewed != "" && renewed != token
}

// leave gives the lane back and judges the attempt. The wait after a failure
// grows with those of the lane, too.
func (x *exchange) leave() Retry {
	o, now := x.last.outcome, x.series.policy.Now()
	again := x.series.judge(o, x.series.attempts)
	switch {
	case o.failed():
		x.pass.failed(now, func(failures int) time.Duration {
			if failures > x.series.attempts {
				again = x.series.judge(o, failures)
			}
			return min(rest(again, now), x.series.policy.Budget)
		})
	case o.Err != nil:
		x.pass.left()
	default:
		x.pass.succeeded()
	}
	return again
}

// rest is how long a lane rests after a failure: what the server says, even if
// the request that it says it to is not repeated, else as long as a repeat
// waits.
func rest(again Retry, now time.Time) time.Duration {
	if named, ok := ParseRetryAfter(again.Outcome.RetryAfter, now); ok && again.Outcome.Err == nil {
		return named
	}
	return again.Wait
}

// failed reports whether an outcome says that the server cannot or will not
// serve now, whatever is asked of it.
func (o Outcome) failed() bool {
	o.Kind = Event
	action, _ := lookUp(o)
	return action == Repeat && o.Status != http.StatusConflict ||
		action == Unlisted && o.Status >= http.StatusInternalServerError
}

// handOn returns the last answer and says how many attempts it took.
func (x *exchange) handOn() (*http.Response, error) {
	ctx := context.WithValue(x.request.Context(), attemptsKey{}, x.series.attempts)
	x.last.response.Request = x.request.WithContext(ctx)
	return x.last.response, nil
}

// end returns the last answer, or that there is none.
func (x *exchange) end(last Retry) (*http.Response, error) {
	if x.last.response != nil {
		return x.handOn()
	}
	return nil, x.series.ended(last)
}

// cannotRepeat ends an exchange whose body cannot be sent again.
func (x *exchange) cannotRepeat() (*http.Response, error) {
	return x.end(Retry{Outcome: x.last.outcome, Verdict: Verdict{
		Action: Stop, Reason: "the body is too large to be kept, or cannot be opened again, and was sent once",
	}})
}

// shutOut ends an exchange whose turn did not come.
func (x *exchange) shutOut(ctx context.Context, cause error) (*http.Response, error) {
	if !errors.Is(cause, errNoTurn) {
		x.last.discard()
		return nil, interrupted(x.series.attempts, x.last.outcome, context.Cause(ctx))
	}
	outcome := x.last.outcome
	if x.last.response == nil {
		outcome = Outcome{Kind: x.kind, Err: errors.Join(cause, outcome.Err)}
	}
	return x.end(Retry{Outcome: outcome, Verdict: Verdict{Retry: true, Action: Repeat, Reason: "it was not made"}})
}
