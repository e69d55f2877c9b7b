package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// versionParam is a version in the query string.
func versionParam(name, doc string, required bool) param {
	least := float64(1)
	return param{in: "query", name: name, doc: doc, required: required, schema: huma.Schema{Type: huma.TypeInteger, Minimum: &least}}
}

// version reads a version of the query string; 0 if it is absent. It refuses
// with validation_failed.
func (x *exchange) version(name string) (int64, error) {
	text, err := x.text(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Field(name, "%s must be a whole number from 1", name)
	}
	return n, nil
}

var listFlowVersionsOperation = operation{
	id: "listFlowVersions", tag: tagFlows, summary: "List the versions of a flow, latest first",
	params:  append([]param{slugParam()}, pageParams()...),
	replies: replyOK("A page of versions.", api.List[api.FlowVersion]{}),
	errors:  codes(api.CodeFlowNotFound),
}

func (s *service) listFlowVersions(x *exchange) (answer, error) {
	p, before, err := x.numberPage()
	if err != nil {
		return answer{}, err
	}
	f, all, err := s.Flows.Versions(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"), flow.VersionsParams{Before: before, Limit: p.limit + 1})
	if err != nil {
		return answer{}, err
	}
	show := func(v *flow.Published) api.FlowVersion {
		return api.FlowVersion{Slug: f.Slug, Version: v.Number, CreatedAt: api.TimeText(v.CreatedAt), Pinned: v.Number == f.Pinned}
	}
	return pageAnswer(all, p.limit, show, func(v *flow.Published) string { return strconv.FormatInt(v.Number, 10) })
}

var diffFlowOperation = operation{
	id: "diffFlow", tag: tagFlows, summary: "Compare two versions of a flow",
	params: []param{
		slugParam(), versionParam("from", "The version before.", true), versionParam("to", "The version after.", true),
	},
	replies: replyOK("What has changed.", api.FlowDiff{}),
	errors:  codes(api.CodeFlowNotFound),
}

func (s *service) diffFlow(x *exchange) (answer, error) {
	var versions [2]int64
	for i, name := range []string{"from", "to"} {
		n, err := x.version(name)
		if err == nil && n == 0 {
			err = fault.Field(name, "%s is required", name)
		}
		if err != nil {
			return answer{}, err
		}
		versions[i] = n
	}
	changes, err := s.Flows.Diff(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"), versions[0], versions[1])
	if err != nil {
		return answer{}, err
	}
	out := api.FlowDiff{Slug: x.r.PathValue("slug"), From: versions[0], To: versions[1], Changes: make([]api.FlowChange, len(changes))}
	for i := range changes {
		if out.Changes[i], err = flowChangeOf(&changes[i]); err != nil {
			return answer{}, err
		}
	}
	return jsonAnswer(http.StatusOK, out)
}

// flowChangeOf is a change as it is sent: null is a value, and not absent.
func flowChangeOf(c *flow.Change) (api.FlowChange, error) {
	out := api.FlowChange{Path: c.Path, Op: string(c.Op)}
	var err error
	if c.Op != flow.Added {
		if out.From, err = template.Encode(c.From); err != nil {
			return out, fmt.Errorf("write a change of a flow: %w", err)
		}
	}
	if c.Op != flow.Removed {
		if out.To, err = template.Encode(c.To); err != nil {
			return out, fmt.Errorf("write a change of a flow: %w", err)
		}
	}
	return out, nil
}
