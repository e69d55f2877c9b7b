package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	executionConnections = 64
	goalExecutions       = 3_000
)

// measuredFlows are the flows that are run: what a run costs without any call,
// and with a price and a model that is part of the server.
var measuredFlows = []struct{ slug, what, definition string }{
	{"shape", "a transform", `{"steps":[{"id":"s","type":"transform","value":{"text":"${input.text}"}}],"output":"${steps.s.output}"}`},
	{"say", "a model (echo), priced", `{"steps":[{"id":"s","type":"model","provider":"echo","model":"echo-1",` +
		`"messages":[{"role":"user","content":"${input.text}"}]}],"output":"${steps.s.text}","price":{"per_run":"0.25"}}`},
}

// executionRuns are what the runs of one flow have measured.
type executionRuns struct {
	sync, repeats, async keyedRun
	// ended is how many asynchronous executions a second came to their end.
	ended sample
}

// measureExecutions measures runs of flows: with an answer at the end, their
// repeats, and from the queue, on SQLite and on a PostgreSQL that syncs every
// commit.
func (b *bench) measureExecutions(ctx context.Context) error {
	if err := b.measureExecutionsOn(ctx, "SQLite"); err != nil {
		return err
	}
	return b.onPostgreSQL(func() error { return b.measureExecutionsOn(ctx, "PostgreSQL") })
}

func (b *bench) measureExecutionsOn(ctx context.Context, engine string) error {
	for _, f := range measuredFlows {
		var runs executionRuns
		for range b.runs {
			if err := b.with(ctx, func(s *server) error { return b.runFlow(ctx, s, f.slug, f.definition, &runs) }); err != nil {
				return err
			}
		}
		where := fmt.Sprintf("%s, %s, %d connections", f.what, engine, executionConnections)
		b.add(row{
			what: "execute until the end, " + where, goal: fmt.Sprintf("≥ %g k/s", goalExecutions/1000.0), measured: runs.sync.format(),
			cpu: runs.sync.cpu.format("µs/request"), baseline: "–", met: met(runs.sync.rate.median() >= goalExecutions),
		})
		b.add(row{
			what: "repeat of an execution, " + where, goal: "–", measured: runs.repeats.format(), cpu: runs.repeats.cpu.format("µs/request"),
			baseline: "–", met: "–",
		})
		b.add(row{
			what: "execute into the queue, " + where, goal: "–",
			measured: runs.async.format() + "; ended " + runs.ended.format("a second"), cpu: runs.async.cpu.format("µs/request"), baseline: "–", met: "–",
		})
	}
	return nil
}

// runFlow publishes a flow and runs it.
func (b *bench) runFlow(ctx context.Context, s *server, slug, definition string, runs *executionRuns) error {
	const customers = 1000
	if err := s.call(ctx, http.MethodPut, "/v1/flows/"+slug, definition, nil); err != nil {
		return err
	}
	p := keyedParams{
		Requests: customers, Connections: executionConnections,
		Request: func(dst []byte, n int64) []byte { return s.moveRequest(dst, "topup", "1000", n, n) },
	}
	if err := new(keyedRun).run(ctx, s, p, "200"); err != nil {
		return err
	}
	p.Requests = b.scaled(20_000)
	p.Request = func(dst []byte, n int64) []byte { return s.executeRequest(dst, slug, "sync", n, n%customers) }
	if err := runs.sync.run(ctx, s, p, "200"); err != nil {
		return err
	}
	if err := runs.repeats.run(ctx, s, p, "200"); err != nil {
		return err
	}
	p.Request = func(dst []byte, n int64) []byte { return s.executeRequest(dst, slug, "async", n, n%customers) }
	began := time.Now()
	if err := runs.async.run(ctx, s, p, "202"); err != nil {
		return err
	}
	if err := s.awaitExecutions(ctx); err != nil {
		return err
	}
	runs.ended = append(runs.ended, perSecond(p.Requests, time.Since(began)))
	return nil
}

// executeRequest appends a request to run a flow.
func (s *server) executeRequest(dst []byte, slug, mode string, n, customer int64) []byte {
	body := fmt.Sprintf(`{"flow":%q,"customer":"customer-%d","input":{"text":"one two three"},"execution_mode":%q}`, slug, customer, mode)
	return fmt.Appendf(dst, "POST /v1/operations/execute HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nIdempotency-Key: %s-%d\r\nContent-Length: %d\r\n\r\n%s",
		s.address, s.ProjectKey, mode, n, len(body), body)
}

// awaitExecutions waits until all executions have ended.
func (s *server) awaitExecutions(ctx context.Context) error {
	for _, status := range []string{"queued", "running"} {
		for {
			var page struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := s.call(ctx, http.MethodGet, "/v1/executions?limit=1&status="+status, "", &page); err != nil {
				return err
			}
			if len(page.Items) == 0 {
				break
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pollInterval):
			}
		}
	}
	return nil
}

// call sends a request with the project key and decodes a successful answer.
func (s *server) call(ctx context.Context, method, path, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.Header.Set("Authorization", "Bearer "+s.ProjectKey)
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // read to its end
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case answer.StatusCode/100 != 2:
		return fmt.Errorf("%s: %w: %d %s", path, errAnswer, answer.StatusCode, content)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
