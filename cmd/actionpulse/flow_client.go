package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

const (
	// flowTimeout bounds one request about flows: longer than a server is
	// asked to wait for the end of an execution.
	flowTimeout = 75 * time.Second
	// maxFlowAnswer bounds what is read of an answer.
	maxFlowAnswer = 64 << 20
)

// flowClient makes requests with a project key.
type flowClient struct {
	http   *http.Client
	server string
	key    string
}

func newFlowClient(server, key string) *flowClient {
	web := newSendClient()
	web.Timeout = flowTimeout
	return &flowClient{http: web, server: server, key: key}
}

// flowRequest is one request; a repeat of it is the same.
type flowRequest struct {
	kind   retry.Kind
	method string
	path   []string
	header map[string]string
	body   []byte
}

// flowReply is what an answer holds.
type flowReply struct {
	body       []byte
	retryAfter string
	// refusal is what the envelope of a refusal says; zero if there is none.
	refusal struct {
		Code    api.Code `json:"code"`
		Message string   `json:"message"`
		Details struct {
			ExecutionID string          `json:"execution_id"`
			Issues      []api.FlowIssue `json:"issues"`
		} `json:"details"`
	}
}

// send makes a request once. An answer that was cut short is no answer.
func (c *flowClient) send(ctx context.Context, r flowRequest) (flowReply, retry.Outcome) {
	outcome := retry.Outcome{Kind: r.kind}
	response, err := c.do(ctx, r)
	if err != nil {
		outcome.Err = err
		return flowReply{}, outcome
	}
	var reply flowReply
	reply.body, err = io.ReadAll(io.LimitReader(response.Body, maxFlowAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		outcome.Err = fmt.Errorf("reading the answer: %w", err)
		return flowReply{}, outcome
	}
	reply.retryAfter = response.Header.Get("Retry-After")
	outcome.Status, outcome.RetryAfter = response.StatusCode, reply.retryAfter
	outcome.ShouldRetry = response.Header.Get("X-Should-Retry")
	if !outcome.Succeeded() {
		outcome.Code = reply.readRefusal()
	}
	return reply, outcome
}

func (c *flowClient) do(ctx context.Context, r flowRequest) (*http.Response, error) {
	address, err := methodURL(c.server, r.path...)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", "actionpulse-flow")
	return c.http.Do(request)
}

// readRefusal reads the envelope and returns its code; empty if the answer is
// in another form, and so a proxy's.
func (r *flowReply) readRefusal() string {
	var envelope struct {
		Error *json.RawMessage `json:"error"`
	}
	if json.Unmarshal(r.body, &envelope) != nil || envelope.Error == nil || json.Unmarshal(*envelope.Error, &r.refusal) != nil {
		return ""
	}
	return string(r.refusal.Code)
}

// refused is the error for an answer that ended a command. It never holds the
// key, whoever wrote the answer.
func (c *flowClient) refused(reply *flowReply, ended error) error {
	if reply.refusal.Code == "" {
		return ended
	}
	message := strings.ReplaceAll(reply.refusal.Message, c.key, "[key]")
	return fmt.Errorf("the server refused the request: %s: %s", reply.refusal.Code, oneLine(message))
}

// oneLine makes a text from the network fit for a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return text
}

// exitOf is the exit code of a request that [retry.Do] has ended.
func exitOf(ended error) int {
	gaveUp, isRetry := errors.AsType[*retry.Error](ended)
	switch {
	case errors.Is(ended, context.Canceled):
		return exitInterrupted
	case isRetry && gaveUp.Verdict.Retry:
		return exitGaveUp
	default:
		return exitFailure
	}
}

// repeats is how requests are repeated, which is said on standard error.
func repeats(std streams) retry.Policy {
	return retry.Policy{Sleep: pause, OnRetry: func(r retry.Retry) {
		what := fmt.Sprint(r.Outcome.Status, " ", r.Outcome.Code)
		if r.Outcome.Err != nil {
			what = r.Outcome.Err.Error()
		}
		fmt.Fprintf(std.stderr, "attempt %d: %s (%s); again in %s\n", //nolint:errcheck // it is no reason to stop
			r.Attempt, r.Verdict.Reason, oneLine(what), r.Wait.Round(10*time.Millisecond))
	}}
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
