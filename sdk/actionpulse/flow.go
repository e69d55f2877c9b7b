package actionpulse

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
)

// Flows are published in immutable, numbered versions.
//
// None of the changes is repeated by itself: a repeat that comes late would
// undo what another has published, pinned or archived since.
type Flows struct{ link *link }

const flowPath = "/v1/flows/{slug}"

// List returns a page of flows.
func (f *Flows) List(ctx context.Context, p Page) (*api.List[api.Flow], error) {
	return list[api.Flow](ctx, f.link, reads("listFlows", "/v1/flows").ask(p.query()))
}

// All yields every flow from p on.
func (f *Flows) All(ctx context.Context, p Page) iter.Seq2[api.Flow, error] {
	return all(p, func(p Page) (*api.List[api.Flow], error) { return f.List(ctx, p) })
}

// Get returns a flow with the definition of a version; 0 means the latest.
func (f *Flows) Get(ctx context.Context, slug string, version int64) (*api.Flow, error) {
	q := url.Values{}
	setNumber(q, "version", version)
	return f.one(ctx, reads("getFlow", flowPath, slug).ask(q))
}

// Publish makes a version of a flow, and the flow if there is none. A
// definition that equals the latest version makes none and returns that. What
// is wrong with a definition is in Details.Issues of the error.
func (f *Flows) Publish(ctx context.Context, slug string, definition api.FlowDefinition) (*api.Flow, error) {
	return f.one(ctx, changes("publishFlow", http.MethodPut, flowPath, slug).with(definition))
}

// PublishYAML is Publish for a definition in YAML, at most 256 KiB.
func (f *Flows) PublishYAML(ctx context.Context, slug string, definition []byte) (*api.Flow, error) {
	c := changes("publishFlow", http.MethodPut, flowPath, slug)
	c.raw = &payload{contentType: "application/yaml", content: definition}
	return f.one(ctx, c)
}

// Versions returns a page of a flow's versions.
func (f *Flows) Versions(ctx context.Context, slug string, p Page) (*api.List[api.FlowVersion], error) {
	return list[api.FlowVersion](ctx, f.link, reads("listFlowVersions", flowPath+"/versions", slug).ask(p.query()))
}

// AllVersions yields every version from p on.
func (f *Flows) AllVersions(ctx context.Context, slug string, p Page) iter.Seq2[api.FlowVersion, error] {
	return all(p, func(p Page) (*api.List[api.FlowVersion], error) { return f.Versions(ctx, slug, p) })
}

// Diff returns what has changed between two versions; 0 leaves the choice of
// one to the server.
func (f *Flows) Diff(ctx context.Context, slug string, from, to int64) (*api.FlowDiff, error) {
	q := url.Values{}
	setNumber(q, "from", from)
	setNumber(q, "to", to)
	return fetch[api.FlowDiff](ctx, f.link, reads("diffFlow", flowPath+"/diff", slug).ask(q))
}

// Pin makes a version the one that is executed when none is asked for.
func (f *Flows) Pin(ctx context.Context, slug string, version int64) (*api.Flow, error) {
	return f.one(ctx, changes("pinFlow", http.MethodPut, flowPath+"/pin", slug).with(api.FlowPin{Version: version}))
}

// Unpin makes the latest version the one that is executed.
func (f *Flows) Unpin(ctx context.Context, slug string) (*api.Flow, error) {
	return f.one(ctx, changes("unpinFlow", http.MethodDelete, flowPath+"/pin", slug))
}

// Archive ends that a flow is published and executed.
func (f *Flows) Archive(ctx context.Context, slug string) (*api.Flow, error) {
	return f.one(ctx, changes("archiveFlow", http.MethodPost, flowPath+"/archive", slug))
}

// Unarchive brings an archived flow back.
func (f *Flows) Unarchive(ctx context.Context, slug string) (*api.Flow, error) {
	return f.one(ctx, changes("unarchiveFlow", http.MethodPost, flowPath+"/unarchive", slug))
}

func (f *Flows) one(ctx context.Context, c call) (*api.Flow, error) {
	answer, err := fetch[api.FlowAnswer](ctx, f.link, c)
	if err != nil {
		return nil, err
	}
	return &answer.Flow, nil
}

// setNumber adds a number that may be absent, which is 0.
func setNumber(q url.Values, name string, n int64) {
	if n != 0 {
		q.Set(name, strconv.FormatInt(n, 10))
	}
}
