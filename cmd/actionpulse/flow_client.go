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
	body []byte
	// refusal is what the envelope of a refusal says; zero if there is none.
	refusal api.ErrorBody
}

// ran reports whether the refusal tells of an execution that has failed, not
// of other work that has the key.
func (r *flowReply) ran() bool {
	return r.refusal.Details.ExecutionID != "" && r.refusal.Code != api.CodeIdempotencyConflict
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
	outcome.Status, outcome.RetryAfter = response.StatusCode, response.Header.Get("Retry-After")
	outcome.ShouldRetry = response.Header.Get("X-Should-Retry")
	if !outcome.Succeeded() {
		reply.refusal = refusalIn(reply.body)
		outcome.Code = string(reply.refusal.Code)
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

// refusalIn reads the envelope of a refusal; zero if the answer is in another
// form, and so a proxy's.
func refusalIn(body []byte) api.ErrorBody {
	var envelope api.Error
	if json.Unmarshal(body, &envelope) != nil {
		return api.ErrorBody{}
	}
	return envelope.Error
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
