package httpapi

import (
	"context"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow"
)

// Flows publishes flows and finds them again. The errors are described where
// flow.Service has these methods.
type Flows interface {
	Publish(ctx context.Context, p flow.PublishParams) (f flow.Flow, created bool, err error)
	Get(ctx context.Context, projectID, slug string, version int64) (flow.Flow, error)
	List(ctx context.Context, projectID, after string, limit int) ([]flow.Flow, error)
	Versions(ctx context.Context, projectID, slug string, p flow.VersionsParams) (flow.Flow, []flow.Published, error)
	Diff(ctx context.Context, projectID, slug string, from, to int64) ([]flow.Change, error)
	Pin(ctx context.Context, projectID, slug string, version int64) (flow.Flow, error)
	Archive(ctx context.Context, projectID, slug string) (flow.Flow, error)
	Unarchive(ctx context.Context, projectID, slug string) (flow.Flow, error)
}

// slugParam is the name of a flow in the path.
func slugParam() param {
	return pathText("slug", "The flow's name: 1 to 64 small letters, digits, - and _, beginning with a letter or digit.")
}

var publishFlowOperation = operation{
	id: "publishFlow", tag: tagFlows, summary: "Publish a version of a flow",
	description: "The body is the definition, as JSON or YAML: the Content-Type says which. A definition that is equal to the latest version makes no new one; the order of members and the form do not matter. What is wrong with a definition is all in details.issues, each with its path.",
	params:      []param{slugParam()}, request: api.FlowDefinition{},
	replies: append(replyCreated("The version was made.", api.FlowAnswer{}), replyOK("It is equal to the latest version.", api.FlowAnswer{})...),
	errors:  codes(api.CodeConflict),
}

func (s *service) publishFlow(x *exchange) (answer, error) {
	format := flow.JSON
	if isYAML(x.r.Header) {
		format = flow.YAML
	}
	f, created, err := s.Flows.Publish(x.r.Context(), flow.PublishParams{
		ProjectID: x.caller.ProjectID, Slug: x.r.PathValue("slug"), Source: x.body.data, Format: format,
	})
	if err != nil {
		return answer{}, err
	}
	f.Shown.Definition = nil // whoever has sent it has it
	return jsonAnswer(createdOr(created), api.FlowAnswer{Flow: flowOf(&f)})
}

var listFlowsOperation = operation{
	id: "listFlows", tag: tagFlows, summary: "List the flows of the project, by name",
	params:  pageParams(),
	replies: replyOK("A page of flows, archived ones too, each with its latest version.", api.List[api.Flow]{}),
}

func (s *service) listFlows(x *exchange) (answer, error) {
	p, err := x.page()
	if err == nil && p.after != "" && !flow.IsSlug(p.after) {
		err = badCursor()
	}
	if err != nil {
		return answer{}, err
	}
	all, err := s.Flows.List(x.r.Context(), x.caller.ProjectID, p.after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, flowOf, func(f *flow.Flow) string { return f.Slug })
}

var getFlowOperation = operation{
	id: "getFlow", tag: tagFlows, summary: "Get a flow with a definition",
	params:  []param{slugParam(), versionParam("version", "The version to show; the latest if absent.", false)},
	replies: replyOK("The flow.", api.FlowAnswer{}),
	errors:  codes(api.CodeFlowNotFound),
}

func (s *service) getFlow(x *exchange) (answer, error) {
	version, err := x.version("version")
	if err != nil {
		return answer{}, err
	}
	f, err := s.Flows.Get(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"), version)
	return flowAnswer(f, err)
}

var pinFlowOperation = operation{
	id: "pinFlow", tag: tagFlows, summary: "Pin a flow to a version",
	description: "The version is executed when none is asked for, whatever is published later.",
	params:      []param{slugParam()}, request: api.FlowPin{},
	replies: replyOK("The flow, with its latest version.", api.FlowAnswer{}),
	errors:  codes(api.CodeFlowNotFound),
}

func (s *service) pinFlow(x *exchange) (answer, error) {
	in, err := decode[api.FlowPin](x)
	if err != nil {
		return answer{}, err
	}
	f, err := s.Flows.Pin(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"), in.Version)
	return flowAnswer(f, err)
}

var unpinFlowOperation = operation{
	id: "unpinFlow", tag: tagFlows, summary: "Have the latest version executed again",
	params:  []param{slugParam()},
	replies: replyOK("The flow, with its latest version.", api.FlowAnswer{}),
	errors:  codes(api.CodeFlowNotFound),
}

func (s *service) unpinFlow(x *exchange) (answer, error) {
	f, err := s.Flows.Pin(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"), 0)
	return flowAnswer(f, err)
}

var archiveFlowOperation = operation{
	id: "archiveFlow", tag: tagFlows, summary: "Archive a flow",
	description: "It is neither published nor executed any more. Executions that exist go on, and their flow can be read. A repeat changes nothing.",
	params:      []param{slugParam()},
	replies:     replyOK("The flow, with its latest version.", api.FlowAnswer{}),
	errors:      codes(api.CodeFlowNotFound),
}

func (s *service) archiveFlow(x *exchange) (answer, error) {
	f, err := s.Flows.Archive(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"))
	return flowAnswer(f, err)
}

var unarchiveFlowOperation = operation{
	id: "unarchiveFlow", tag: tagFlows, summary: "Undo the archiving of a flow",
	description: "A repeat changes nothing.",
	params:      []param{slugParam()},
	replies:     replyOK("The flow, with its latest version.", api.FlowAnswer{}),
	errors:      codes(api.CodeFlowNotFound),
}

func (s *service) unarchiveFlow(x *exchange) (answer, error) {
	f, err := s.Flows.Unarchive(x.r.Context(), x.caller.ProjectID, x.r.PathValue("slug"))
	return flowAnswer(f, err)
}

var flowSchemaOperation = operation{
	id: "getFlowSchema", tag: tagServer, summary: "The JSON Schema of flows, for editors",
	replies: append(
		replyOK("A JSON Schema (2020-12) of definitions.", map[string]any{}),
		reply{status: http.StatusNotModified, doc: "It is the one that If-None-Match names."},
	),
}

func (s *service) flowSchema(x *exchange) (answer, error) {
	return s.documents.flowSchema.answer(x), nil
}

// flowAnswer is a 200 with a flow, unless there is an error.
func flowAnswer(f flow.Flow, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, api.FlowAnswer{Flow: flowOf(&f)})
}

// flowOf is a flow as it is sent.
func flowOf(f *flow.Flow) api.Flow {
	out := api.Flow{
		Slug: f.Slug, Version: f.Shown.Number, CreatedAt: api.TimeText(f.Shown.CreatedAt), LatestVersion: f.Latest,
		ArchivedAt: api.OptionalTime(f.ArchivedAt), Definition: f.Shown.Definition,
	}
	if f.Pinned != 0 {
		out.PinnedVersion = &f.Pinned
	}
	return out
}
