package api

import "encoding/json"

// FlowDefinition is a flow as it is published. Its own JSON Schema is served
// beside the API document.
type FlowDefinition map[string]json.RawMessage

// Flow is a flow, and one of its versions.
type Flow struct {
	Slug          string          `json:"slug"`
	Version       int64           `json:"version"              doc:"Which version is shown: the latest, unless another was asked for."`
	CreatedAt     string          `json:"created_at"           format:"date-time"                                                                                 doc:"When that version was published."`
	LatestVersion int64           `json:"latest_version"`
	PinnedVersion *int64          `json:"pinned_version"       doc:"What is executed when no version is asked for; null: the latest."`
	ArchivedAt    *string         `json:"archived_at"          format:"date-time"                                                                                 doc:"Since when it is neither published nor executed; null if it is not archived."`
	Definition    json.RawMessage `json:"definition,omitempty" doc:"The version's definition as JSON, its members in the order of their names; in the answer for one flow." required:"false"`
}

// FlowAnswer is an answer about one flow.
type FlowAnswer struct {
	Flow Flow `json:"flow"`
}

// FlowVersion is a version of a flow in a list.
type FlowVersion struct {
	Slug      string `json:"slug"`
	Version   int64  `json:"version"`
	CreatedAt string `json:"created_at" format:"date-time"`
	Pinned    bool   `json:"pinned"     doc:"true if it is executed when no version is asked for and the flow is pinned to it."`
}

// FlowPin says which version is to be executed.
type FlowPin struct {
	Version int64 `json:"version" minimum:"1" doc:"A version that is executed when none is asked for."`
}

// FlowIssue is one thing that is wrong with a definition, as in details.issues.
type FlowIssue struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// FlowDiff is what has changed between two versions of a flow.
type FlowDiff struct {
	Slug    string       `json:"slug"`
	From    int64        `json:"from"`
	To      int64        `json:"to"`
	Changes []FlowChange `json:"changes" doc:"In the order of the definition; empty if the versions are equal."`
}

// FlowChange is one difference between two definitions.
type FlowChange struct {
	Path string          `json:"path"           doc:"Where: limits.timeout, or steps[say].model, since steps are matched by their ids."`
	Op   string          `json:"op"             enum:"added,removed,changed"`
	From json.RawMessage `json:"from,omitempty" doc:"Absent if it was added."                                                           required:"false"`
	To   json.RawMessage `json:"to,omitempty"   doc:"Absent if it was removed."                                                         required:"false"`
}
