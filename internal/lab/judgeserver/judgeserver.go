// Package judgeserver owns the trial of a server that promises to do the work
// of an Idempotency-Key once: it drives the server through repeats, races, lost
// and doubled requests, odd keys and restarts, and says which promises were
// kept. [Endpoint] is what it needs to know of an operation; [Generic] makes one
// from templates, and [ActionPulse] makes those of our own API, with trials of
// its intake beside them.
//
// Invariants:
//   - each trial uses keys and objects of its own, made from the run's name, so
//     that runs do not meet, and leaves its objects behind;
//   - no verdict is better than what was seen: where objects cannot be counted, a
//     trial that needs it is inconclusive;
//   - credentials are in no report.
package judgeserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// The defaults of [Options].
const (
	DefaultAtOnce  = 50
	DefaultTimeout = 30 * time.Second
)

// Options say how to try a server.
type Options struct {
	// Subject names the server in the report.
	Subject string
	// Endpoints are the operations to try.
	Endpoints []Endpoint
	// Intake, if set, is tried, too.
	Intake *Intake
	// Restart ends the server as hard as it can and returns when it answers
	// again; nil if the lab cannot do that.
	Restart func(context.Context) error
	// AtOnce is how many requests race for a key; 0 means DefaultAtOnce.
	AtOnce int
	// Timeout bounds a request; 0 means DefaultTimeout.
	Timeout time.Duration
	// Seed is that of the faults of the network.
	Seed uint64
	// Name is in all keys and objects of the run; empty means a random one.
	Name string
	// Now and Sleep are the clock; nil means the real one.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	// Progress, if set, is told of each trial that begins.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	if o.AtOnce <= 0 {
		o.AtOnce = DefaultAtOnce
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Name == "" {
		var random [4]byte
		rand.Read(random[:]) // it never fails
		o.Name = hex.EncodeToString(random[:])
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

// Judge tries a server and returns what it found. The error is one that kept it
// from trying at all: an operation does not do what it should when it is called
// once, as the lab calls it, or ctx has ended.
func Judge(ctx context.Context, o Options) (*report.Report, error) {
	o = o.withDefaults()
	started := o.Now()
	client := newClient(o)
	defer client.http.CloseIdleConnections()
	out := &report.Report{
		Tool: "lab server", Subject: o.Subject, Seed: o.Seed, Started: started,
		Settings: []report.Setting{{Name: "run", Value: o.Name}, {Name: "at-once", Value: fmt.Sprint(o.AtOnce)}},
	}
	for i := range o.Endpoints {
		j := &judge{options: o, client: client, endpoint: &o.Endpoints[i]}
		if err := j.baseline(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", j.endpoint.label(), err)
		}
		for _, t := range trials() {
			fmt.Fprintf(o.Progress, "%s\n", j.endpoint.id(t.id)) //nolint:errcheck // the report comes anyway
			out.Checks = append(out.Checks, j.check(ctx, t))
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	if o.Intake != nil {
		checks, err := judgeIntake(ctx, o, client)
		if err != nil {
			return nil, fmt.Errorf("intake: %w", err)
		}
		out.Checks = append(out.Checks, checks...)
	}
	out.Took = o.Now().Sub(started)
	return out, nil
}

// trial is one rule and how it is tried.
type trial struct {
	id, title, source string
	try               func(*judge, context.Context) finding
}

// finding is what a trial saw.
type finding struct {
	verdict  report.Verdict
	evidence []string
}

func pass(format string, args ...any) finding {
	return finding{report.Pass, []string{fmt.Sprintf(format, args...)}}
}

func fail(format string, args ...any) finding {
	return finding{report.Fail, []string{fmt.Sprintf(format, args...)}}
}

func inconclusive(format string, args ...any) finding {
	return finding{report.Inconclusive, []string{fmt.Sprintf(format, args...)}}
}

func notTested(format string, args ...any) finding {
	return finding{report.NotTested, []string{fmt.Sprintf(format, args...)}}
}

// and joins findings: the worst verdict, and the evidence of all.
func (f finding) and(others ...finding) finding {
	worse := map[report.Verdict]int{report.Pass: 0, report.NotTested: 1, report.Inconclusive: 2, report.Fail: 3}
	for _, o := range others {
		if worse[o.verdict] > worse[f.verdict] {
			f.verdict = o.verdict
		}
		f.evidence = append(f.evidence, o.evidence...)
	}
	return f
}

// judge tries one operation.
type judge struct {
	options  Options
	client   *client
	endpoint *Endpoint
	units    int
}

func (j *judge) check(ctx context.Context, t trial) report.Check {
	f := t.try(j, ctx)
	return report.Check{
		ID: j.endpoint.id(t.id), Title: j.endpoint.title(t.title), Source: t.source,
		Verdict: f.verdict, Evidence: f.evidence,
	}
}

// unit returns a new unit of work that is prepared.
func (j *judge) unit(ctx context.Context) (unit, error) {
	j.units++
	u := unit{name: fmt.Sprintf("lab-%s-%s%d", j.options.Name, j.endpoint.Name, j.units)}
	u.key = u.name + ":do"
	if j.endpoint.Prepare != nil {
		if err := j.endpoint.Prepare(ctx, u.name); err != nil {
			return u, fmt.Errorf("preparing %s: %w", u.name, err)
		}
	}
	return u, nil
}

// baseline sees that the operation does its work when it is asked once.
func (j *judge) baseline(ctx context.Context) error {
	u, err := j.unit(ctx)
	if err != nil {
		return err
	}
	a := j.send(ctx, u)
	switch {
	case a.err != nil:
		return fmt.Errorf("the first request got no answer: %w", a.err)
	case !a.succeeded():
		return fmt.Errorf("the first request was refused: %s", a.short())
	}
	if j.endpoint.Identify != nil && a.id == "" {
		return fmt.Errorf("the answer does not name the object where it should: %s", a.short())
	}
	if n, ok, err := j.count(ctx, u); err != nil || ok && n != 1 {
		return fmt.Errorf("after one request, %d objects were counted: %w", n, err)
	}
	return nil
}

// unit is a unit of work and the key that names it.
type unit struct{ name, key string }

// send makes the request of a unit once.
func (j *judge) send(ctx context.Context, u unit) answer {
	return j.client.send(ctx, j.request(u))
}

func (j *judge) request(u unit) request {
	return request{
		method: j.endpoint.Method, url: j.endpoint.URL(u.name), header: j.endpoint.Header,
		keyHeader: j.endpoint.keyHeader(), keys: []string{u.key},
		body: j.endpoint.Body(u.name), identify: j.endpoint.Identify,
	}
}

// count returns how many objects of a unit there are; false if that cannot be
// said.
func (j *judge) count(ctx context.Context, u unit) (n int, ok bool, err error) {
	if j.endpoint.Count == nil {
		return 0, false, nil
	}
	n, err = j.endpoint.Count(ctx, u.name)
	return n, err == nil, err
}
