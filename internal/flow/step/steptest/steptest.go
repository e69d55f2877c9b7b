// Package steptest is the conformance test of the types of steps: what the
// engine relies on, whatever the type.
package steptest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Case is a type and one step of it that runs and succeeds.
type Case struct {
	Type step.Type
	// With are the types of inner steps, if the type has blocks.
	With []step.Type
	// Effect is what the step's program must say of itself.
	Effect step.Effect
	// Members are the step's own members, a JSON object.
	Members string
	// Input is what expressions see as input; {} by default. Steps are the
	// values of steps that came before, by id.
	Input string
	Steps map[string]string
	// Want is the value of the step as JSON; it is not compared if empty.
	Want string
	// Refused are members that the schema must refuse.
	Refused []string
	// Broken are members that the schema lets through and Compile must refuse,
	// and where each is wrong, like steps[0].value.
	Broken map[string]string
	// Failing are members of steps that compile, and fail when they run.
	Failing []string
	// Started is when the step began, and Now the time; both are the same
	// moment by default.
	Started, Now time.Time
	// Keys returns the Idempotency-Keys of all calls so far. A type whose steps
	// call must have it.
	Keys func() []string
}

// epoch is when steps begin that do not care.
var epoch = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

// key is the derived key that steps are given.
const key = "ex_1/step/0"

// soon is longer than anything that ends at once takes.
const soon = 10 * time.Second

// Run runs the conformance test.
func Run(t *testing.T, c Case) {
	t.Helper()
	if c.Input == "" {
		c.Input = "{}"
	}
	if c.Started.IsZero() {
		c.Started = epoch
	}
	if c.Now.IsZero() {
		c.Now = c.Started
	}
	t.Run("schema", c.schema)
	t.Run("compile", c.compiles)
	t.Run("repeatable", c.repeatable)
	t.Run("keeps nothing", c.keepsNothing)
	t.Run("at the same time", c.atTheSameTime)
	t.Run("cancelled", c.cancelled)
	t.Run("failing", c.failing)
	t.Run("calls", c.calls)
}

func (c Case) compiles(t *testing.T) {
	program, s, err := c.compile(t, c.Members)
	if err != nil {
		t.Fatalf("the step does not compile: %v", err)
	}
	if program.Effect() != c.Effect {
		t.Errorf("effect: got %v, want %v", program.Effect(), c.Effect)
	}
	if len(s.Inner) > 0 && s.Most < 1 {
		t.Error("a step with blocks must say how often they run at most")
	}
	for members, path := range c.Broken {
		_, _, err := c.compile(t, members)
		issues, ok := errors.AsType[*step.Issues](err)
		if !ok || len(issues.List) == 0 {
			t.Errorf("%s: got %v, want issues", members, err)
			continue
		}
		if got := issues.List[0]; got.Path != path || got.Message == "" {
			t.Errorf("%s: got %q at %q, want it at %q", members, got.Message, got.Path, path)
		}
	}
}

// repeatable: the value can be stored, and a step that calls nobody has the
// same value every time.
func (c Case) repeatable(t *testing.T) {
	first := c.run(t, c.Members)
	if c.Want != "" {
		if diff := cmp.Diff(first, decode(t, c.Want)); diff != "" {
			t.Errorf("the value differs (- got, + want): %s", diff)
		}
	}
	if diff := cmp.Diff(first, decode(t, encode(t, first))); diff != "" {
		t.Errorf("the value is another one after it was stored (- before, + after): %s", diff)
	}
	if c.Effect == step.Calls {
		return
	}
	if diff := cmp.Diff(first, c.run(t, c.Members)); diff != "" {
		t.Errorf("another value the second time: %s", diff)
	}
}

// keepsNothing: neither the scope nor a later run sees what becomes of a value.
func (c Case) keepsNothing(t *testing.T) {
	program, _, err := c.compile(t, c.Members)
	if err != nil {
		t.Fatal(err)
	}
	scope := c.scope(t)
	before := inputOf(t, scope)
	result, err := program.Run(t.Context(), c.given(t, scope))
	if err != nil {
		t.Fatal(err)
	}
	wanted := encode(t, result.Value)
	spoil(result.Value)
	if after := inputOf(t, scope); after != before {
		t.Errorf("the value is shared with the scope: it was %s, and is %s now", before, after)
	}
	if c.Effect == step.Calls {
		return
	}
	again, err := program.Run(t.Context(), c.given(t, c.scope(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, again.Value); got != wanted {
		t.Errorf("a run sees what became of the value of another: got %s, want %s", got, wanted)
	}
}

// atTheSameTime is for the race detector.
func (c Case) atTheSameTime(t *testing.T) {
	program, _, err := c.compile(t, c.Members)
	if err != nil {
		t.Fatal(err)
	}
	scope := c.scope(t)
	var all sync.WaitGroup
	for range 4 {
		given := c.given(t, scope.Inner())
		all.Go(func() {
			if _, err := program.Run(t.Context(), given); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// cancelled: a step whose context is done ends, and if it fails it says so in
// the form that the engine knows. One that calls must not have succeeded.
func (c Case) cancelled(t *testing.T) {
	program, _, err := c.compile(t, c.Members)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	given := c.given(t, c.scope(t))
	given.Now = func() time.Time { return c.Started }
	done := make(chan error, 1)
	go func() {
		_, err := program.Run(ctx, given)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil && c.Effect != step.Pure {
			t.Error("a step succeeds after its context was done")
		}
		checkError(t, err)
	case <-time.After(soon):
		t.Error("a step goes on after its context was done")
	}
}

func (c Case) failing(t *testing.T) {
	for _, members := range c.Failing {
		program, _, err := c.compile(t, members)
		if err != nil {
			t.Errorf("%s: does not compile: %v", members, err)
			continue
		}
		if _, err = program.Run(t.Context(), c.given(t, c.scope(t))); err == nil {
			t.Errorf("%s: no error", members)
		}
		checkError(t, err)
	}
}

// calls: every call carries the derived key, and what calls nobody says so.
func (c Case) calls(t *testing.T) {
	if c.Effect != step.Calls {
		program, _, err := c.compile(t, c.Members)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := program.Run(t.Context(), c.given(t, c.scope(t))); err != nil || result.Call != nil {
			t.Errorf("got a call %v, %v, of a step that makes none", result.Call, err)
		}
		return
	}
	before := len(c.Keys())
	program, _, err := c.compile(t, c.Members)
	if err != nil {
		t.Fatal(err)
	}
	result, err := program.Run(t.Context(), c.given(t, c.scope(t)))
	if err != nil {
		t.Fatal(err)
	}
	keys := c.Keys()[before:]
	if len(keys) != 1 || keys[0] != key {
		t.Errorf("one run called with the keys %q, want %q once", keys, key)
	}
	if result.Call == nil || result.Call.Kind == "" {
		t.Fatalf("got the call %+v, want what was called", result.Call)
	}
	for _, said := range []json.RawMessage{result.Call.Request, result.Call.Response} {
		if said != nil && !json.Valid(said) {
			t.Errorf("what was said is no JSON: %s", said)
		}
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	failed, ok := errors.AsType[*step.Error](err)
	switch {
	case !ok:
		t.Errorf("got %T, %v, want a *step.Error", err, err)
	case failed.Code != api.CodeStepFailed && failed.Code != api.CodeModelError:
		t.Errorf("the code is %s", failed.Code)
	case failed.Message == "" || strings.ContainsAny(failed.Message, "\n\x00"):
		t.Errorf("the message is not a line of text: %q", failed.Message)
	}
}

// spoil changes everything within a value.
func spoil(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			spoil(one)
			v[name] = "spoilt"
		}
	case []any:
		for i, one := range v {
			spoil(one)
			v[i] = "spoilt"
		}
	}
}

func inputOf(t *testing.T, s *template.Scope) string {
	t.Helper()
	all, err := template.Compile("${[input, item, index]}")
	if err != nil {
		t.Fatal(err)
	}
	value, err := all.Eval(s)
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, value)
}
