package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// decodeDelta reads a delta. Numbers stay as they were written.
func decodeDelta(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var delta map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return delta, decoder.Decode(&delta)
}

// names are members whose text is whole each time it comes: some servers
// repeat it with every delta.
var names = []string{"role", "type", "id", "name", "format", "signature"}

// merge adds a delta to what was before: texts are continued, objects merged,
// elements of lists merged by their member index, or else added. Members that
// nobody knows are kept by these rules, too.
func merge(into, delta map[string]any) {
	for name, value := range delta {
		into[name] = merged(name, into[name], value)
	}
}

func merged(name string, before, now any) any {
	switch now := now.(type) {
	case nil:
		return before
	case string:
		if slices.Contains(names, name) {
			if now == "" && before != nil {
				return before
			}
			return now
		}
		grown, ok := before.(*text)
		if !ok {
			grown = &text{}
		}
		grown.WriteString(now)
		return grown
	case map[string]any:
		object, ok := before.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		merge(object, now)
		return object
	case []any:
		list, _ := before.([]any)
		return mergeList(list, now)
	}
	return now
}

// text is one that grows: a long one comes in many thousand pieces.
type text struct{ strings.Builder }

// MarshalJSON writes it as a text.
func (t *text) MarshalJSON() ([]byte, error) { return jsonsyntax.Marshal(t.String()) }

func mergeList(list, now []any) []any {
	for _, element := range now {
		object, ok := element.(map[string]any)
		i := -1
		if ok && object["index"] != nil {
			i = slices.IndexFunc(list, func(e any) bool {
				before, is := e.(map[string]any)
				return is && before["index"] == object["index"]
			})
		}
		switch {
		case i >= 0:
			merge(list[i].(map[string]any), object)
		case ok:
			fresh := map[string]any{}
			merge(fresh, object)
			list = append(list, fresh)
		default:
			list = append(list, element)
		}
	}
	return list
}

// finished makes of what was put together a message as it would have come in
// one piece: with a role and a content, and tool calls in their order, without
// the index that only a stream needs.
func finished(message map[string]any) map[string]any {
	out := maps.Clone(message)
	if out["role"] == nil {
		out["role"] = "assistant"
	}
	if _, ok := out["content"]; !ok {
		out["content"] = nil
	}
	calls, ok := out["tool_calls"].([]any)
	if !ok {
		return out
	}
	slices.SortStableFunc(calls, func(a, b any) int { return cmp.Compare(indexOf(a), indexOf(b)) })
	for _, call := range calls {
		if object, ok := call.(map[string]any); ok {
			delete(object, "index")
		}
	}
	return out
}

func indexOf(call any) int64 {
	object, _ := call.(map[string]any)
	number, _ := object["index"].(json.Number)
	n, _ := number.Int64()
	return n
}
