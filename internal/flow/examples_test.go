package flow_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/branch"
	httpstep "github.com/actionpulse/actionpulse/internal/flow/step/http"
	modelstep "github.com/actionpulse/actionpulse/internal/flow/step/model"
	"github.com/actionpulse/actionpulse/internal/flow/step/parallel"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/step/wait"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/model/echo"
)

// examples are what every worked example gives for the input beside it.
var examples = map[string]string{
	"hello":     `{"text": "Hello, world", "tokens": 3}`,
	"triage":    `{"kind": "urgent", "text": "Answer at once: The site is down"}`,
	"summaries": `{"count": 2, "digest": "1. Rain: It rains.; 2. Sun: The sun shines."}`,
	"lookup":    `{"status": 202, "waited": true, "text": "Order A-17 is preparing."}`,
	"priced":    `"What does it cost?"`,
	"tools":     `{"text": "What is the weather in Utrecht?", "calls": [], "finish_reason": "stop"}`,
}

// echoOnly resolves echo, and nothing else.
type echoOnly struct{}

func (echoOnly) Resolve(_ context.Context, _, name string) (model.Provider, error) {
	if name != echo.Name {
		return nil, &model.Error{Outcome: model.NotSent, Message: "there is no provider " + name}
	}
	return echo.New(time.After), nil
}

// orders stands for the service that the example calls.
type orders struct{ t *testing.T }

func (o orders) Call(_ context.Context, r *httpstep.Request) (*httpstep.Response, error) {
	if r.Method != "POST" || string(r.Body) != `{"order":"A-17"}` {
		o.t.Errorf("called with %s %s", r.Method, r.Body)
	}
	return &httpstep.Response{Status: 202, Headers: map[string]string{"content-type": "application/json"}, Body: []byte(`{"state": "preparing"}`)}, nil
}

func TestExamples(t *testing.T) {
	t.Parallel()
	const folder = "../../examples/flows"
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) != len(examples) {
		t.Fatalf("got %d flows, %v, want the %d that are tested here", len(files), err, len(examples))
	}
	for name, want := range examples {
		source := read(t, filepath.Join(folder, name+".yaml"))
		if !strings.HasPrefix(source, "# ") || strings.Count(source, "provider: echo\n") != 1 {
			t.Errorf("%s: it must say what it does, and name its provider in one line", name)
		}
		input, err := template.Decode([]byte(read(t, filepath.Join(folder, name+".input.json"))))
		if err != nil {
			t.Fatal(err)
		}
		for _, provider := range []string{"echo", "my-server"} {
			p := example(t, strings.Replace(source, "provider: echo", "provider: "+provider, 1))
			if err := p.CheckInput(input); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if provider == "echo" {
				checkOutput(t, name, run(t, p, input), want)
			}
		}
	}
}

func example(t *testing.T, source string) *flow.Program {
	t.Helper()
	canonical, err := flow.Canonical([]byte(source), flow.YAML)
	if err != nil {
		t.Fatal(err)
	}
	all := []step.Type{
		transform.Type{}, branch.Type{}, parallel.Type{}, wait.Type{}, modelstep.New(echoOnly{}), httpstep.New(orders{t}),
	}
	p, err := flow.Compile(all, canonical)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkOutput(t *testing.T, name string, output any, want string) {
	t.Helper()
	wanted, err := template.Decode([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(output, wanted); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// run runs a flow as the engine does, but for all that makes it durable. Waits
// are over when they begin.
func run(t *testing.T, p *flow.Program, input any) any {
	t.Helper()
	scope := template.NewScope(input, nil)
	if err := (plainRunner{}).RunBlock(t.Context(), p.Steps, scope, ""); err != nil {
		t.Fatal(err)
	}
	output, err := p.Output.Eval(scope)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

type plainRunner struct{}

func (plainRunner) RunBlock(ctx context.Context, b *step.Block, scope *template.Scope, iteration string) error {
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range b.Steps {
		if s.If != nil {
			holds, err := step.Holds(s.If, scope)
			if err != nil {
				return err
			}
			if !holds {
				scope.SetStep(s.ID, nil)
				continue
			}
		}
		result, err := s.Program.Run(ctx, &step.Run{
			ProjectID: "project", Scope: scope, Key: "ex_1/" + s.ID + "/" + iteration, Attempt: 1, Started: began,
			Now: func() time.Time { return began.Add(time.Hour) }, Blocks: plainRunner{}, Emit: func(string) {},
		})
		if err != nil {
			return err
		}
		scope.SetStep(s.ID, result.Value)
	}
	return nil
}
