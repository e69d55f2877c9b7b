package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/retry"
)

// flowPush publishes a definition.
type flowPush struct {
	File   string     `arg:"" name:"file" help:"Definition, as JSON or YAML; - reads standard input."`
	Slug   string     `name:"slug" env:"-" required:"" placeholder:"NAME" help:"Name of the flow."`
	Server flowServer `embed:""`
	JSON   bool       `name:"json" env:"-" help:"Print the flow as JSON."`
}

// Help is shown by flow push --help.
func (*flowPush) Help() string {
	return `Publishes the file as the next version of the flow. A definition that is equal to
the latest version makes no new one, so the same command may be run again. If no
answer came, the version may be there or not: run it again.

Exit codes: 0 the version is there, 1 failure, 2 wrong usage, 3 the definition
is not valid, 4 gave up after repeated failures, 130 interrupted.`
}

// Run publishes the file.
func (c *flowPush) Run(ctx context.Context, std streams) error { return c.run(ctx, std, repeats(std)) }

func (c *flowPush) run(ctx context.Context, std streams, policy retry.Policy) error {
	client, err := c.Server.client()
	if err != nil {
		return err
	}
	content, err := readFlowFile(c.File, std.stdin)
	if err != nil {
		return err
	}
	created := false
	reply, err := retry.Do(ctx, policy, func(ctx context.Context) (flowReply, retry.Outcome) {
		reply, outcome := client.send(ctx, c.request(content))
		created = outcome.Status == http.StatusCreated
		return reply, outcome
	})
	if len(reply.refusal.Details.Issues) > 0 {
		return errors.Join(printLines(std.stdout, c.File, linesOf(reply.refusal.Details.Issues)),
			&exitError{exitRejected, client.refused(&reply, err)})
	}
	if err != nil {
		return c.failed(client, &reply, err)
	}
	return c.print(std, reply.body, created)
}

func (c *flowPush) request(content []byte) flowRequest {
	kind := "application/yaml"
	if formatOf(c.File, content) == flow.JSON {
		kind = "application/json"
	}
	return flowRequest{
		kind: retry.Mutation, method: http.MethodPut, path: []string{"v1", "flows", c.Slug},
		header: map[string]string{"Content-Type": kind}, body: content,
	}
}

// failed says what to do about an answer that did not come.
func (*flowPush) failed(client *flowClient, reply *flowReply, ended error) error {
	err := client.refused(reply, ended)
	if last, ok := errors.AsType[*retry.Error](ended); ok && last.Verdict.Action == retry.ReadFirst && reply.refusal.Code == "" {
		err = fmt.Errorf("%w; the version may be there: run the same command again, an equal one is made only once", err)
	}
	return &exitError{exitOf(ended), err}
}

func linesOf(issues []api.FlowIssue) []string {
	lines := make([]string, len(issues))
	for i, one := range issues {
		lines[i] = issueLine(one.Path, one.Message)
	}
	return lines
}

func (c *flowPush) print(std streams, body []byte, created bool) error {
	var answer api.FlowAnswer
	if err := json.Unmarshal(body, &answer); err != nil || answer.Flow.Version == 0 {
		return &exitError{exitFailure, errors.New("the answer is not one of ActionPulse: is the address right?")}
	}
	if c.JSON {
		return printJSON(std.stdout, answer.Flow)
	}
	what := "is equal to version"
	if created {
		what = "published version"
	}
	_, err := fmt.Fprintf(std.stdout, "%s: %s %d\n", c.Slug, what, answer.Flow.Version)
	return err
}
