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
	"strconv"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// batchHeader carries the number of a request to the proxy.
const batchHeader = "X-Torture-Batch"

const (
	// attemptTimeout is when a client stops waiting for an answer.
	attemptTimeout = 10 * time.Second
	// maxWait bounds the waits between attempts: the server may ask for 10 s
	// while its disk is full.
	maxWait = 500 * time.Millisecond
)

// client sends requests and keeps the model.
type client struct {
	model *model
	http  *http.Client
	url   string
	// secrets are the keys by kind.
	secrets map[string]string
	// direct says that there is no proxy: every attempt is one delivery, and
	// a refusal in the server's own words means that nothing was taken.
	direct bool
	policy retry.Policy
}

func newClient(m *model, url string, secrets map[string]string) *client {
	return &client{
		model: m, url: url, secrets: secrets,
		http: &http.Client{Transport: &http.Transport{DisableCompression: true}},
		policy: retry.Policy{
			MaxAttempts: 1 << 30, Budget: 24 * time.Hour,
			Delays: retry.Delays{First: 20 * time.Millisecond, Max: maxWait},
			Sleep:  sleepAtMost,
		},
	}
}

// sleepAtMost waits for d, but no longer than maxWait.
func sleepAtMost(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(min(d, maxWait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// errAbandoned is returned by send when the request was given up with its
// outcome unknown.
var errAbandoned = errors.New("given up")

// send sends a request until it is answered with 202, attempts run out or ctx
// is done; the last two are errAbandoned. Any other error is a fault of the
// server.
func (c *client) send(ctx context.Context, b *batch, attempts int) (trackAnswer, error) {
	policy := c.policy
	policy.MaxAttempts = attempts
	var broken error
	answer, err := retry.Do(ctx, policy, func(ctx context.Context) (trackAnswer, retry.Outcome) {
		least := c.model.begin(b)
		if c.direct {
			c.model.deliver(b.number)
		}
		answer, outcome := c.attempt(ctx, b)
		if c.direct && outcome.Err == nil && outcome.Code != "" {
			c.model.refuse(b.number, fmt.Sprint(outcome.Status, " ", outcome.Code))
		}
		if outcome.Succeeded() {
			broken = c.model.acknowledge(b, least, answer)
		}
		return answer, outcome
	})
	b.body = nil
	if broken != nil {
		return answer, broken
	}
	if e, ok := errors.AsType[*retry.Error](err); (ok && e.Verdict.Retry) || (err != nil && ctx.Err() != nil) {
		c.model.abandon()
		return answer, errAbandoned
	}
	return answer, err
}

// attempt makes one request.
func (c *client) attempt(ctx context.Context, b *batch) (trackAnswer, retry.Outcome) {
	o := retry.Outcome{Kind: retry.Event}
	var answer trackAnswer
	body, err := c.exchange(ctx, b, &o)
	if err != nil {
		o.Err = err
		return answer, o
	}
	if o.Status != http.StatusAccepted {
		var envelope struct {
			Error struct {
				Code string `json:"code"`
			} `json:"error"`
		}
		if json.Unmarshal(body, &envelope) == nil {
			o.Code = envelope.Error.Code
		}
		return answer, o
	}
	if b.path == pathTrack {
		if err := json.Unmarshal(body, &answer); err != nil {
			o.Status, o.Code = 0, fmt.Sprintf("malformed 202: %v", err)
		}
	}
	return answer, o
}

func (c *client) exchange(ctx context.Context, b *batch, o *retry.Outcome) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+b.path, bytes.NewReader(b.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.secrets[b.kind])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(batchHeader, strconv.Itoa(b.number))
	if b.encoding != "" {
		request.Header.Set("Content-Encoding", b.encoding)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	o.Status, o.RetryAfter, o.ShouldRetry = response.StatusCode, response.Header.Get("Retry-After"), response.Header.Get("X-Should-Retry")
	body, err := io.ReadAll(response.Body)
	return body, errors.Join(err, response.Body.Close())
}

// fleet is a number of senders at work.
type fleet struct {
	cancel context.CancelCauseFunc
	stop   chan struct{}
	done   sync.WaitGroup
	// fault holds the first fault of the server that a sender met.
	fault chan error
}

// maxPause bounds how long a sender rests between two requests.
const maxPause = 150 * time.Millisecond

// start starts senders and others that work beside them.
func (c *client) start(ctx context.Context, seed uint64, senders int, others ...func(context.Context, *fleet)) *fleet {
	f := &fleet{stop: make(chan struct{}), fault: make(chan error, 1)}
	ctx, f.cancel = context.WithCancelCause(ctx)
	for i := range senders {
		f.done.Go(func() { f.run(ctx, c, newMaker(c.model, seed, i, senders)) })
	}
	for _, other := range others {
		f.done.Go(func() { other(ctx, f) })
	}
	return f
}

// fail says that the server was at fault, unless that was said before.
func (f *fleet) fail(err error) {
	select {
	case f.fault <- err:
	default:
	}
}

// rest waits, and returns false if the work is over.
func (f *fleet) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.stop:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (f *fleet) run(ctx context.Context, c *client, g *maker) {
	for {
		attempts := 1 << 30
		if g.rand.IntN(25) == 0 {
			attempts = 1 + g.rand.IntN(3)
		}
		if _, err := c.send(ctx, g.batch(), attempts); err != nil && !errors.Is(err, errAbandoned) {
			f.fail(err)
			return
		}
		if !f.rest(ctx, restFor(g.rand)) {
			return
		}
	}
}

// restFor is how long to rest: often not at all, so that requests meet.
func restFor(r *rand.Rand) time.Duration {
	return max(0, time.Duration(r.Int64N(int64(2*maxPause)))-maxPause)
}

// finish lets every sender end the request it is at, for as long as patience
// lasts; then they are cut off.
func (f *fleet) finish(patience time.Duration) {
	close(f.stop)
	timer := time.AfterFunc(patience, func() { f.cancel(errors.New("out of patience")) })
	f.done.Wait()
	timer.Stop()
	f.cancel(nil)
}
