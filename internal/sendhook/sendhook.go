// Package sendhook sends webhooks over HTTP.
//
// Invariants:
//   - unless it is allowed, nothing is connected to that is not an address of
//     the internet; what a name stands for is judged by the address that is
//     connected to, each time;
//   - no redirect is followed, and no proxy of the environment is used;
//   - an attempt ends, whatever the other side does.
//
// It decides nothing about what follows from an answer.
package sendhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/actionpulse/actionpulse/internal/publicnet"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

const (
	// maxBody is how much of an answer is read, so that its connection can be
	// used again. What it says does not matter.
	maxBody = 16 << 10
	// maxHeader is how large the header of an answer may be.
	maxHeader = 32 << 10
	// idleTimeout and maxIdle are for connections that wait for the next
	// message.
	idleTimeout = 30 * time.Second
	maxIdle     = 32
)

// Params configures a [Sender].
type Params struct {
	// AllowPrivate says that addresses of private networks may be connected
	// to.
	AllowPrivate bool
	// Timeout limits an attempt; 0 is webhook.SendTimeout.
	Timeout time.Duration
	// Agent is the User-Agent.
	Agent string
	// TLS is nil but in tests.
	TLS *tls.Config
}

// Sender implements webhook.Sender.
type Sender struct {
	client *http.Client
	agent  string
}

var _ webhook.Sender = (*Sender)(nil)

// New returns a Sender.
func New(p Params) *Sender {
	if p.Timeout == 0 {
		p.Timeout = webhook.SendTimeout
	}
	dialer := &net.Dialer{Timeout: p.Timeout}
	if !p.AllowPrivate {
		dialer.Control = publicnet.Control
	}
	return &Sender{
		agent: p.Agent,
		client: &http.Client{
			Timeout: p.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: p.TLS, ForceAttemptHTTP2: true, DisableCompression: true,
				MaxIdleConns: maxIdle, MaxIdleConnsPerHost: 2, IdleConnTimeout: idleTimeout,
				MaxResponseHeaderBytes: maxHeader,
			},
		},
	}
}

// Send implements webhook.Sender.
func (s *Sender) Send(ctx context.Context, r webhook.Request) webhook.Response {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return webhook.Response{Err: errors.New("the URL cannot be used")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.agent)
	request.Header.Set("Webhook-Id", r.ID)
	request.Header.Set("Webhook-Timestamp", r.Timestamp)
	request.Header.Set("Webhook-Signature", r.Signature)
	response, err := s.client.Do(request)
	if err != nil {
		return webhook.Response{Err: explain(err)}
	}
	defer response.Body.Close() //nolint:errcheck // nothing more is wanted of it
	// The status is the answer; a body that never ends does not change it.
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	return webhook.Response{Status: response.StatusCode, RetryAfter: response.Header.Get("Retry-After")}
}

// Close closes the connections that wait.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// explain makes of an error what may be shown: without the URL, whose path may
// be a secret, and without what a name stands for.
func explain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			return errors.New("there was no answer in time")
		}
		err = wrapped.Err
	}
	if errors.Is(err, publicnet.ErrPrivate) {
		return publicnet.ErrPrivate
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("the name of the host was not found")
	}
	if call, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("the connection failed: %s", call.Error())
	}
	return fmt.Errorf("there was no answer: %w", err)
}
