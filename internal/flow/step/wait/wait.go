// Package wait is the type of steps that let time pass. After an interruption a
// step goes on from when it began first.
package wait

import (
	"context"
	"encoding/json"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// longest is how long a step may wait.
const longest = 24 * time.Hour

// Type implements [step.Type].
type Type struct{}

var _ step.Quiet = Type{}

// Quiet implements [step.Quiet].
func (Type) Quiet() {}

// Name implements [step.Type].
func (Type) Name() string { return "wait" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Waits, at most 24h: steps.<id>.output.until is when it ended.",
		"properties": {
			"for": {"type": "string", "description": "How long, like \"5s\" or \"1m30s\"."},
			"until": {"type": "string", "description": "Until when, as RFC 3339; a time that has passed ends the step at once."}
		},
		"oneOf": [{"required": ["for"]}, {"required": ["until"]}],
		"additionalProperties": false
	}`)
}

// Compile implements [step.Type].
func (Type) Compile(c *step.Compiler) (step.Program, error) {
	for name, parse := range map[string]parser{"for": parseFor, "until": parseUntil} {
		if _, ok := c.Members[name]; !ok {
			continue
		}
		t, err := c.Template(name)
		if err != nil {
			return nil, err
		}
		if fixed, ok := t.Literal(); ok {
			if _, message := parse(fixed, time.Time{}); message != "" {
				return nil, step.Refuse(c.Path+"."+name, "%s", message)
			}
		}
		return program{t, parse}, nil
	}
	return nil, step.Refuse(c.Path, "one of these members is required: for, until")
}

// parser returns when a wait ends that began at a time, or what is wrong.
type parser func(value any, started time.Time) (until time.Time, message string)

func parseFor(value any, started time.Time) (time.Time, string) {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return time.Time{}, `for must be a time like "5s", and at most 24h`
	}
	return started.Add(d), ""
}

func parseUntil(value any, started time.Time) (time.Time, string) {
	text, _ := value.(string)
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, "until must be a time like 2030-01-02T03:04:05Z (RFC 3339)"
	}
	if !started.IsZero() && until.Sub(started) > longest {
		return time.Time{}, "until must not be more than 24h after the step began"
	}
	return until, ""
}

type program struct {
	value *template.Template
	parse parser
}

// Effect implements [step.Program].
func (program) Effect() step.Effect { return step.Timed }

// Run implements [step.Program].
func (p program) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	value, err := p.value.Eval(r.Scope)
	if err != nil {
		return step.Result{}, step.Failed(err, "how long to wait cannot be decided: "+err.Error())
	}
	until, message := p.parse(value, r.Started)
	if message != "" {
		return step.Result{}, step.Failed(nil, message)
	}
	if err := sleep(ctx, until.Sub(r.Now())); err != nil {
		return step.Result{}, step.Failed(err, "the wait was interrupted")
	}
	return step.Result{Value: map[string]any{"output": map[string]any{"until": until.UTC().Format(time.RFC3339Nano)}}}, nil
}

// sleep returns why the context ended, or nil after a time.
func sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
