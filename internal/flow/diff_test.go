package flow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/flow"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want []flow.Change
	}{
		{`{"steps":[]}`, `{"steps":[]}`, nil},
		{`{"limits":{"timeout":"1s"}}`, `{"limits":{"budget":"1"}}`, []flow.Change{
			{Path: "limits.budget", Op: flow.Added, To: "1"}, {Path: "limits.timeout", Op: flow.Removed, From: "1s"},
		}},
		{
			`{"steps":[{"id":"a","type":"t","x":1},{"id":"b","type":"t"},{"id":"c","type":"t"}]}`,
			`{"steps":[{"id":"new","type":"t"},{"id":"c","type":"t"},{"id":"a","type":"t","x":2}]}`,
			[]flow.Change{
				{Path: "steps", Op: flow.Changed, From: []any{"a", "c"}, To: []any{"c", "a"}},
				{Path: "steps[a].x", Op: flow.Changed, From: int64(1), To: int64(2)},
				{Path: "steps[b]", Op: flow.Removed, From: map[string]any{"id": "b", "type": "t"}},
				{Path: "steps[new]", Op: flow.Added, To: map[string]any{"id": "new", "type": "t"}},
			},
		},
		{
			`{"steps":[{"id":"a","type":"branch","cases":[{"when":true,"steps":[{"id":"i","type":"t"}]}]}]}`,
			`{"steps":[{"id":"a","type":"branch","cases":[{"when":true,"steps":[{"id":"i","type":"u"}]},{"when":false}]}]}`,
			[]flow.Change{
				{Path: "steps[a].cases[0].steps[i].type", Op: flow.Changed, From: "t", To: "u"},
				{Path: "steps[a].cases[1]", Op: flow.Added, To: map[string]any{"when": false}},
			},
		},
		{`{"output":null}`, `{"output":[1]}`, []flow.Change{{Path: "output", Op: flow.Changed, To: []any{int64(1)}}}},
		{`{"output":[1,2,3]}`, `{"output":[1,9]}`, []flow.Change{
			{Path: "output[1]", Op: flow.Changed, From: int64(2), To: int64(9)}, {Path: "output[2]", Op: flow.Removed, From: int64(3)},
		}},
		{`{"steps":[{"id":"a"}]}`, `{"steps":[]}`, []flow.Change{{Path: "steps[0]", Op: flow.Removed, From: map[string]any{"id": "a"}}}},
	} {
		if diff := cmp.Diff(flow.Diff([]byte(c.a), []byte(c.b)), c.want); diff != "" {
			t.Errorf("%s → %s: %s", c.a, c.b, diff)
		}
	}
}
