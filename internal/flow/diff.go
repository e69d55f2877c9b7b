package flow

import (
	"maps"
	"reflect"
	"slices"

	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Change is one difference between two definitions.
type Change struct {
	// Path is where: limits.timeout, or steps[say].model, since steps are found
	// by their ids.
	Path string `json:"path"`
	Op   Op     `json:"op"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
}

// Op is what has happened to a part of a definition.
type Op string

// What may have happened.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Diff returns what has changed from one definition to another, both in their
// canonical form, in order of the paths within each object. Steps are matched
// by their ids, also if they have moved; that their order is another is a change
// of the list.
func Diff(a, b []byte) []Change {
	before, err := template.Decode(a)
	after, err2 := template.Decode(b)
	if err != nil || err2 != nil {
		return nil // neither was ever stored
	}
	return appendDiff(nil, "", before, after)
}

func appendDiff(changes []Change, path string, a, b any) []Change {
	if reflect.DeepEqual(a, b) {
		return changes
	}
	switch from := a.(type) {
	case map[string]any:
		if to, ok := b.(map[string]any); ok {
			return diffObjects(changes, path, from, to)
		}
	case []any:
		if to, ok := b.([]any); ok {
			return diffLists(changes, path, from, to)
		}
	}
	return append(changes, Change{Path: path, Op: Changed, From: a, To: b})
}

func diffObjects(changes []Change, path string, a, b map[string]any) []Change {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, before := a[name]
		to, after := b[name]
		changes = diffMember(changes, member(path, name), pairOf{from, before}, pairOf{to, after})
	}
	return changes
}

// pairOf is a value that may be absent.
type pairOf struct {
	value any
	there bool
}

func diffMember(changes []Change, path string, a, b pairOf) []Change {
	switch {
	case !a.there:
		return append(changes, Change{Path: path, Op: Added, To: b.value})
	case !b.there:
		return append(changes, Change{Path: path, Op: Removed, From: a.value})
	default:
		return appendDiff(changes, path, a.value, b.value)
	}
}

func diffLists(changes []Change, path string, a, b []any) []Change {
	from, fromSteps := idsOf(a)
	to, toSteps := idsOf(b)
	if fromSteps && toSteps {
		return diffSteps(changes, path, stepList{a, from}, stepList{b, to})
	}
	for i := range max(len(a), len(b)) {
		changes = diffMember(changes, element(path, i), at(a, i), at(b, i))
	}
	return changes
}

func at(list []any, i int) pairOf {
	if i >= len(list) {
		return pairOf{}
	}
	return pairOf{list[i], true}
}

// stepList is a list whose elements have ids.
type stepList struct {
	list []any
	ids  []string
}

func (l stepList) find(id string) pairOf {
	i := slices.Index(l.ids, id)
	if i < 0 {
		return pairOf{}
	}
	return pairOf{l.list[i], true}
}

func diffSteps(changes []Change, path string, a, b stepList) []Change {
	kept := func(l stepList, other stepList) []any {
		ids := []any{}
		for _, id := range l.ids {
			if other.find(id).there {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if from, to := kept(a, b), kept(b, a); !slices.Equal(from, to) {
		changes = append(changes, Change{Path: path, Op: Changed, From: from, To: to})
	}
	for _, id := range a.ids {
		changes = diffMember(changes, path+"["+id+"]", a.find(id), b.find(id))
	}
	for _, id := range b.ids {
		if !a.find(id).there {
			changes = diffMember(changes, path+"["+id+"]", pairOf{}, b.find(id))
		}
	}
	return changes
}

// idsOf returns the ids of a list of steps, and whether it is one.
func idsOf(list []any) ([]string, bool) {
	ids := make([]string, 0, len(list))
	for _, one := range list {
		members, ok := one.(map[string]any)
		id, isText := members["id"].(string)
		if !ok || !isText || members["type"] == nil || slices.Contains(ids, id) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}
