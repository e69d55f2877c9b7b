package judgeserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 16 << 20

// client makes requests, each once: it has no repeats of its own, and keeps
// net/http from those.
type client struct {
	http    *http.Client
	timeout time.Duration
}

func newClient(o Options) *client {
	return &client{
		timeout: o.Timeout,
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: o.AtOnce, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// request is what is sent.
type request struct {
	method, url string
	header      http.Header
	keyHeader   string
	keys        []string
	body        []byte
	identify    func([]byte) (string, bool)
	// through is the address of a proxy that stands for the server; empty if
	// there is none.
	through string
}

// answer is what came back.
type answer struct {
	err    error
	status int
	header http.Header
	body   []byte
	// id is that of the object, in an answer that names one.
	id string
}

func (a answer) succeeded() bool { return a.err == nil && a.status >= 200 && a.status <= 299 }

func (a answer) refused() bool { return a.err == nil && a.status >= 400 && a.status <= 499 }

// running reports whether the answer says honestly that the work is under way,
// or that there are too many requests, and when to come again.
func (a answer) running() bool {
	switch a.status {
	case http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return a.err == nil && a.header.Get("Retry-After") != ""
	}
	return false
}

// replayed reports whether the answer says that it is a repeat's.
func (a answer) replayed() bool {
	return strings.EqualFold(a.header.Get("Idempotency-Replayed"), "true") || strings.EqualFold(a.header.Get("Idempotent-Replayed"), "true")
}

// short is the answer in a line. It holds nothing that was sent in a header.
func (a answer) short() string {
	if a.err != nil {
		return "no answer: " + a.err.Error()
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(a.body), "?")), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, text))
}

// send makes a request.
func (c *client) send(ctx context.Context, r request) answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	out, err := r.build(ctx)
	if err != nil {
		return answer{err: err}
	}
	response, err := c.http.Do(out)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which may hold a key
		}
		return answer{err: err}
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return answer{err: fmt.Errorf("reading the answer: %w", err)}
	}
	a := answer{status: response.StatusCode, header: response.Header, body: content}
	if r.identify != nil && a.succeeded() {
		a.id, _ = r.identify(content)
	}
	return a
}

func (r request) build(ctx context.Context) (*http.Request, error) {
	out, err := http.NewRequestWithContext(ctx, r.method, r.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	maps.Copy(out.Header, r.header)
	if len(r.keys) > 0 {
		out.Header[http.CanonicalHeaderKey(r.keyHeader)] = r.keys
	}
	if len(r.body) > 0 {
		out.ContentLength = int64(len(r.body))
		out.Body = io.NopCloser(bytes.NewReader(r.body)) // without GetBody, so that nothing is delivered twice
	}
	if r.through != "" {
		proxy, err := url.Parse(r.through)
		if err != nil {
			return nil, err
		}
		out.Host, out.URL.Scheme, out.URL.Host = out.URL.Host, proxy.Scheme, proxy.Host
	}
	return out, nil
}

// race makes requests at once.
func (c *client) race(ctx context.Context, requests []request) []answer {
	answers := make([]answer, len(requests))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			<-start
			answers[i] = c.send(ctx, r)
		})
	}
	close(start)
	all.Wait()
	return answers
}

// settle repeats a request until it gets an answer that is neither "later" nor
// a failure of the server, as the retry table says.
func (j *judge) settle(ctx context.Context, r request) answer {
	return j.settleAs(ctx, retry.Keyed, r)
}

func (j *judge) settleAs(ctx context.Context, kind retry.Kind, r request) answer {
	var a answer
	policy := retry.Policy{
		MaxAttempts: 20, Budget: time.Minute, Now: j.options.Now, Sleep: j.options.Sleep,
		Delays: retry.Delays{First: 20 * time.Millisecond, Max: 5 * time.Second},
	}
	_, _ = retry.Do(ctx, policy, func(ctx context.Context) (struct{}, retry.Outcome) { // the answer says it all
		a = j.client.send(ctx, r)
		o := retry.Outcome{Kind: kind, Err: a.err, Status: a.status}
		if a.err == nil {
			o.RetryAfter = a.header.Get("Retry-After")
		}
		if a.running() {
			o.Status = http.StatusTooManyRequests // it says when to come again
		}
		return struct{}{}, o
	})
	return a
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
