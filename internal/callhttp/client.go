// Package callhttp makes the HTTP calls of flows: those of http steps by
// [Client.Call], and those to models, for package openai, by [Client.Open].
//
// Invariants:
//   - a call is delivered at most once. Each has a connection of its own: one
//     that waits for its next request may be closed by the other side just as
//     that is written, and then nobody knows whether it was read. HTTP/2 is not
//     spoken, whose client repeats requests by itself;
//   - a failure says whether anything may have been sent, and says so whenever
//     there was a connection;
//   - no redirect is followed: the answer is the redirect. Headers, which may be
//     secrets, go to the host that was named and to no other;
//   - unless it is allowed, nothing is connected to that is not an address of
//     the internet, and no proxy of the environment is used;
//   - no more of an answer is read than its limit.
//
// When a call ends is the business of its context.
package callhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/actionpulse/actionpulse/internal/publicnet"
)

const (
	// connectTimeout limits the way to a connection, and the agreement on TLS.
	connectTimeout = 10 * time.Second
	// maxHeader is how large the header of an answer may be.
	maxHeader = 64 << 10
)

// errPrivate names the setting: only the operator can help.
var errPrivate = fmt.Errorf("%w; the setting flows.allow_private lifts this", publicnet.ErrPrivate)

// Params configures a [Client].
type Params struct {
	// AllowPrivate says that addresses of private networks and of this machine
	// may be connected to.
	AllowPrivate bool
	// Agent is the User-Agent of calls that set none.
	Agent string
	// TLS is nil but in tests.
	TLS *tls.Config
}

// Client makes calls. It holds no connections between them.
type Client struct {
	client *http.Client
	agent  string
}

// New returns a Client.
func New(p Params) *Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	if !p.AllowPrivate {
		dialer.Control = publicnet.Control
	}
	secure := p.TLS.Clone()
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secure.ClientSessionCache = tls.NewLRUClientSessionCache(0) // each call is a new connection
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &Client{
		agent: p.Agent,
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: secure, TLSHandshakeTimeout: connectTimeout,
				DisableKeepAlives: true, DisableCompression: true, Protocols: protocols, MaxResponseHeaderBytes: maxHeader,
			},
		},
	}
}

// Request is what is sent.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Error says why there is no answer.
type Error struct {
	// Sent says that the request may have reached the other side, in whole or
	// in part. When it is false, it has not.
	Sent bool
	// Retryable says that the same call may succeed later.
	Retryable bool
	// Message may be shown. It holds neither the URL nor a header.
	Message string
	Err     error
}

func (f *Error) Error() string { return f.Message + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Error) Unwrap() error { return f.Err }

// Open sends a request and returns the answer as far as its header; the body
// must be closed. Errors are [*Error].
func (c *Client) Open(ctx context.Context, r *Request) (*http.Response, error) {
	var asked, connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := c.request(ctx, r)
	if err != nil {
		return nil, &Error{Message: "the URL or the method cannot be used", Err: err}
	}
	response, err := c.client.Do(request)
	if err == nil {
		return response, nil
	}
	f := &Error{Sent: connected.Load(), Err: err}
	f.Message, f.Retryable = explain(err)
	if !asked.Load() && ctx.Err() == nil {
		f.Message, f.Retryable = "the request cannot be sent: a header or the URL is not valid", false
	}
	return nil, f
}

func (c *Client) request(ctx context.Context, r *Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		request.Header = r.Header.Clone()
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", c.agent)
	}
	if len(r.Body) > 0 {
		request.ContentLength = int64(len(r.Body))
		request.Body = io.NopCloser(bytes.NewReader(r.Body))
	}
	// net/http takes a request with an Idempotency-Key for one that it may send
	// again by itself, if it can have the body again.
	request.GetBody = nil
	return request, nil
}

// Read reads the rest of an answer. It reports false if that is more than
// limit; what was read is returned then, too.
func Read(body io.Reader, limit int64) (content []byte, whole bool, err error) {
	content, err = io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(content)) > limit {
		return content[:limit], false, nil
	}
	return content, true, err
}

// explain makes of an error what may be shown, and says whether the same call
// may succeed later.
func explain(err error) (message string, retryable bool) {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			return "there was no answer in time", true
		}
		err = wrapped.Err
	}
	switch {
	case errors.Is(err, publicnet.ErrPrivate):
		return errPrivate.Error(), false
	case errors.Is(err, context.Canceled):
		return "the call was cancelled", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended without a whole answer", true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the name of the host was not found", true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted", false
	}
	if call, ok := errors.AsType[syscall.Errno](err); ok {
		return "the connection failed: " + call.Error(), true
	}
	return "there was no answer", true
}

// Explain is why the rest of an answer did not come, in words that may be
// shown.
func Explain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the answer was not whole in time"
	}
	message, _ := explain(err)
	return message
}
