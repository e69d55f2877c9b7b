package actionpulse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// link is what the groups of methods share: where the server is and how it is
// spoken to.
type link struct {
	base string
	settings
	// token returns the credential to send; empty if there is none yet.
	token func() string
	// whyRejected says why a credential was not renewed; nil if it never is.
	whyRejected func() error
	// authorised sends calls with the credential, open those without.
	authorised, open http.Client
}

// linkParams say what a link needs beside its options.
type linkParams struct {
	server  string
	options []Option
	token   func() string
	// refresh is that of retry.Transport; nil if the credential never expires.
	refresh func(ctx context.Context, rejected string) (string, error)
}

// answerTimeout is how long the default transport waits for an answer to
// begin: the longest wait for an execution is 60 s, and then some.
const answerTimeout = 90 * time.Second

func newLink(p linkParams) (*link, error) {
	base, err := serverURL(p.server)
	if err != nil {
		return nil, err
	}
	l := &link{base: base, settings: settings{agent: userAgent, newKey: NewKey}, token: p.token}
	for _, o := range p.options {
		o(&l.settings)
	}
	l.open = l.client
	// A redirect would repeat the request elsewhere, with its credential or
	// without its body; no operation answers with one.
	l.open.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	l.authorised = l.open
	lower := attempts{base: l.transport()}
	l.open.Transport = &retry.Transport{Base: lower, Policy: l.reported()}
	l.authorised.Transport = &retry.Transport{Base: lower, Policy: l.reported(), Lanes: l.lanes, Refresh: p.refresh}
	return l, nil
}

// transport makes single requests: the caller's, or a default that does not
// wait for ever for a server that says nothing.
func (l *link) transport() http.RoundTripper {
	if l.client.Transport != nil {
		return l.client.Transport
	}
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	own := usual.Clone()
	own.ResponseHeaderTimeout = answerTimeout
	return own
}

// reported is the policy with a line in the log for each repeat.
func (l *link) reported() retry.Policy {
	p := l.policy
	if l.log == nil {
		return p
	}
	told := p.OnRetry
	p.OnRetry = func(r retry.Retry) {
		l.log.Warn("a request is repeated", "attempt", r.Attempt, "wait", r.Wait, "reason", r.Verdict.Reason,
			"status", r.Outcome.Status, "code", r.Outcome.Code)
		if told != nil {
			told(r)
		}
	}
	return p
}

// reply is an answer that says yes.
type reply struct {
	status   int
	header   http.Header
	attempts int
	body     []byte
	// stream is the body of an answer that is read while it comes, to be
	// closed by whoever reads it.
	stream io.ReadCloser
}

// replayed reports whether the answer is that to an earlier request with the
// same key.
func (r *reply) replayed() bool { return r.header.Get("Idempotency-Replayed") == "true" }

// send sends a call, repeats it by the table, and returns its answer or an
// [*Error].
func (l *link) send(ctx context.Context, c call) (*reply, error) {
	t := &trail{kind: c.kind, stream: c.stream}
	kind := c.kind
	if c.once {
		kind = retry.Mutation
	}
	request, err := l.request(retry.WithKind(withTrail(ctx, t), kind), &c)
	if err != nil {
		return nil, c.refusedHere(err)
	}
	client := &l.authorised
	if c.open {
		client = &l.open
	}
	response, err := client.Do(request) //nolint:bodyclose // readWhole closes it, or the reader of the stream
	if err != nil {
		return nil, c.lost(t, err)
	}
	r := &reply{status: response.StatusCode, header: response.Header, attempts: retry.Attempts(response)}
	if c.stream && succeeded(r.status) {
		r.stream = response.Body
		return r, nil
	}
	if r.body, err = readWhole(response.Body); err != nil {
		return nil, c.lost(t, err)
	}
	if !succeeded(r.status) {
		return nil, l.refused(&c, t, r)
	}
	return r, nil
}

// fetch sends a call and decodes its answer.
func fetch[T any](ctx context.Context, l *link, c call) (*T, error) {
	answer, _, err := exchange[T](ctx, l, c)
	return answer, err
}

// exchange is fetch with what else came: the status and the headers.
func exchange[T any](ctx context.Context, l *link, c call) (*T, *reply, error) {
	r, err := l.send(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	answer := new(T)
	if err := json.Unmarshal(r.body, answer); err != nil {
		return nil, nil, c.unreadable(r, err)
	}
	if reflect.ValueOf(answer).Elem().IsZero() { // {}, null, or an object of somebody else's
		return nil, nil, c.unreadable(r, errSaysNothing)
	}
	return answer, r, nil
}

// errSaysNothing is why an answer that is JSON is not one of the API.
var errSaysNothing = errors.New("it has none of the members that were to come")

// perform sends a call whose answer says nothing more: it has no content, or an
// object without members.
func perform(ctx context.Context, l *link, c call) error {
	r, err := l.send(ctx, c)
	if err != nil || r.status == http.StatusNoContent {
		return err
	}
	var nothing map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &nothing); err != nil {
		return c.unreadable(r, err)
	}
	return nil
}

// unreadable is the error of a success that is not what the API document
// promises, as from a proxy that answers in the server's place.
func (c call) unreadable(r *reply, err error) *Error {
	e := c.failure(fmt.Sprintf("the answer %d is not in the form of the API", r.status))
	e.Status, e.RequestID, e.Err = r.status, r.header.Get("X-Request-Id"), err
	e.Attempts = r.attempts
	if c.kind != retry.Read {
		e.Applied = AppliedUnknown
	}
	return e
}
