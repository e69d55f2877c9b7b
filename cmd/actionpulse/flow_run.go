package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

const (
	// attachWait is how long the server is asked to wait for the end of an
	// execution that exists, before it says how far it is.
	attachWait = "wait=30"
	// lookAgain is how long to wait between two looks at an execution if the
	// server does not say.
	lookAgain = time.Second
)

// flowRun runs a flow.
type flowRun struct {
	Slug    string     `arg:"" name:"slug" help:"Name of the flow."`
	Input   string     `name:"input" env:"-" required:"" placeholder:"FILE" help:"Input of the run, as JSON; - reads standard input."`
	Key     string     `name:"idempotency-key" aliases:"key-name" env:"-" required:"" placeholder:"TEXT" help:"Names this run: what it is for, such as order-42:email. The same on every attempt."`
	Version int64      `name:"version" env:"-" placeholder:"N" help:"Version to run. Default: the pinned one, else the latest."`
	For     string     `name:"customer" env:"-" placeholder:"ID" help:"Customer who pays."`
	Context string     `name:"context" env:"-" placeholder:"FILE" help:"Context of the run, as JSON."`
	Async   bool       `name:"async" env:"-" help:"Have the run queued, and do not wait for its end."`
	Wait    bool       `name:"wait" env:"-" help:"With --async: wait for the end all the same."`
	Server  flowServer `embed:""`
	Quiet   bool       `name:"quiet" short:"q" env:"-" help:"Do not say why a request is repeated."`
}

// Help is shown by flow run --help.
func (*flowRun) Help() string {
	return `Runs the flow once. However often the request has to be made, and however often
the same command is run again, the key names one execution: it is run once and paid
for once, and each repeat reads how far it is. The key is made from what the run
is for, never anew for an attempt. The execution is printed as JSON.

The run does not depend on this command: after ctrl-C it goes on, and the same
command finds it again. Another input needs another key.

Exit codes: 0 succeeded (or queued, with --async), 1 refused, 2 wrong usage, 4 gave
up after repeated failures, 7 the execution failed or was cancelled, 130 interrupted.`
}

// executeBody is the body of a request to execute. Bodies with one key are
// compared byte for byte: the order of the members is never changed.
type executeBody struct {
	Flow     string          `json:"flow"`
	Version  int64           `json:"version,omitempty"`
	Customer string          `json:"customer,omitempty"`
	Input    json.RawMessage `json:"input"`
	Context  json.RawMessage `json:"context,omitempty"`
	Mode     string          `json:"execution_mode"`
}

// execution is what is known of a run.
type execution struct {
	// text is all of it, as it came.
	text   json.RawMessage
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	// again is how long to wait before the next look.
	again time.Duration
}

// ended reports whether the execution does not change any more.
func (e *execution) ended() bool { return e.Status != "queued" && e.Status != "running" }

// Run runs the flow.
func (c *flowRun) Run(ctx context.Context, std streams) error {
	policy := repeats(std)
	if c.Quiet {
		policy.OnRetry = nil
	}
	return c.run(ctx, std, policy)
}

func (c *flowRun) run(ctx context.Context, std streams, policy retry.Policy) error {
	client, err := c.Server.client()
	if err != nil {
		return err
	}
	request, err := c.request(std)
	if err != nil {
		return err
	}
	e, err := c.follow(ctx, client, request, policy)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, e.text, "", "  "); err != nil {
		return fmt.Errorf("print the execution: %w", err)
	}
	if _, err := fmt.Fprintln(std.stdout, out.String()); err != nil {
		return err
	}
	if !e.ended() || e.Status == "succeeded" {
		return nil
	}
	text := fmt.Errorf("the execution is %s", e.Status)
	if e.Error != nil {
		text = fmt.Errorf("%w: %s: %s", text, oneLine(e.Error.Code), oneLine(e.Error.Message))
	}
	return &exitError{exitExecution, text}
}

// request is the one request that is made again and again.
func (c *flowRun) request(std streams) (flowRequest, error) {
	if c.Input == stdinName && c.Context == stdinName {
		return flowRequest{}, &exitError{exitUsage, errors.New("--input and --context cannot both be standard input")}
	}
	body := executeBody{Flow: c.Slug, Version: c.Version, Customer: c.For, Mode: "sync"}
	if c.Async {
		body.Mode = "async"
	}
	var err error
	if body.Input, err = readJSONFile("--input", c.Input, std); err != nil {
		return flowRequest{}, err
	}
	if c.Context != "" {
		if body.Context, err = readJSONFile("--context", c.Context, std); err != nil {
			return flowRequest{}, err
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return flowRequest{}, fmt.Errorf("write the request: %w", err)
	}
	return flowRequest{
		kind: retry.Keyed, method: http.MethodPost, path: []string{"v1", "operations", "execute"}, body: text.Bytes(),
		header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": c.Key, "Prefer": attachWait},
	}, nil
}

func readJSONFile(flag, name string, std streams) (json.RawMessage, error) {
	content, err := readFlowFile(name, std.stdin)
	if err == nil && !json.Valid(content) {
		err = &exitError{exitUsage, fmt.Errorf("%s is not JSON", flag)}
	}
	return content, err
}

// follow asks for the run until it has ended, or is queued if that is enough.
// All requests are the same, key and body: the server has them attach to the
// one execution.
func (c *flowRun) follow(ctx context.Context, client *flowClient, r flowRequest, p retry.Policy) (*execution, error) {
	for failedOnce := false; ; {
		var e execution
		reply, err := retry.Do(ctx, p, func(ctx context.Context) (flowReply, retry.Outcome) {
			reply, outcome := client.send(ctx, r)
			if outcome.Succeeded() {
				outcome.Err = e.read(reply.body, outcome.RetryAfter, p.Now)
			}
			return reply, outcome
		})
		switch {
		case reply.ran() && !failedOnce:
			// It has failed; a repeat reads the execution.
			failedOnce = true
			continue
		case err != nil:
			return nil, c.failed(client, &reply, err)
		case e.ended() || (c.Async && !c.Wait):
			return &e, nil
		}
		if err := p.Sleep(ctx, e.again); err != nil {
			return nil, c.failed(client, &flowReply{}, err)
		}
	}
}

// read takes the execution out of an answer. An answer without one is no
// answer.
func (e *execution) read(body []byte, retryAfter string, now func() time.Time) error {
	var answer struct {
		Execution json.RawMessage `json:"execution"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	*e = execution{text: answer.Execution, again: lookAgain}
	if err := json.Unmarshal(answer.Execution, e); err != nil || e.ID == "" || e.Status == "" {
		return errors.New("the answer holds no execution")
	}
	if now == nil {
		now = time.Now
	}
	if wait, ok := retry.ParseRetryAfter(retryAfter, now()); ok {
		e.again = wait
	}
	return nil
}

// failed says what became of the key.
func (c *flowRun) failed(client *flowClient, reply *flowReply, ended error) error {
	code, err := exitOf(ended), client.refused(reply, ended)
	switch {
	case reply.ran():
		code = exitExecution
	case code == exitInterrupted || code == exitGaveUp || reply.refusal.Code == "":
		err = fmt.Errorf("%w; run the same command again to go on: the flow is not run twice", err)
	}
	return &exitError{code, err}
}
