package openai

import (
	"encoding/json"
	"maps"

	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
	"github.com/actionpulse/actionpulse/internal/model"
)

// encodeRequest writes the body: the same bytes for the same request. What is
// the flow's own to say wins over an option of the same name. A stream is
// asked for its usage, which it would not tell otherwise.
func encodeRequest(r *model.Request) ([]byte, error) {
	members := maps.Clone(r.Options)
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	name, err := json.Marshal(r.Model)
	if err != nil {
		return nil, err
	}
	members["model"], members["messages"] = name, r.Messages
	delete(members, "stream")
	delete(members, "stream_options")
	if r.Stream {
		members["stream"], members["stream_options"] = json.RawMessage("true"), json.RawMessage(`{"include_usage":true}`)
	}
	return jsonsyntax.Marshal(members)
}
