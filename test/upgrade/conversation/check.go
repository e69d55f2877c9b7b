package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
)

// Again repeats every request that may be repeated, in the order in which they
// were made, and returns what was answered otherwise than the contract says.
func (c *Client) Again(ctx context.Context, all []Exchange) ([]error, error) {
	var faults []error
	for _, first := range all {
		if first.Repeat == Never {
			continue
		}
		said, replayed, err := c.Send(ctx, first)
		if err != nil {
			return faults, err
		}
		if fault := Judge(first, said, replayed); fault != nil {
			faults = append(faults, fault)
		}
	}
	return faults, nil
}

// Judge says what is wrong with the answer to a repeat, nil if nothing is.
func Judge(first, said Exchange, replayed bool) error {
	wrong := func(why string) error {
		return fmt.Errorf("%s: %s\n  first: %d %s\n  now:   %d %s", first, why, first.Status, first.Answer, said.Status, said.Answer)
	}
	var before, now map[string]any
	if json.Unmarshal([]byte(first.Answer), &before) != nil || json.Unmarshal([]byte(said.Answer), &now) != nil {
		return wrong("an answer is no JSON object")
	}
	if !isRepeat(answers{first, said, before, now, replayed}) {
		return wrong("not answered as a repeat: " + string(first.Repeat))
	}
	return nil
}

// answers are the first one and the one to a repeat, with their objects.
type answers struct {
	first, said Exchange
	before, now map[string]any
	replayed    bool
}

// isRepeat says whether an answer is the one that a repeat must get.
func isRepeat(a answers) bool {
	same, ok := a.said.Status == a.first.Status, a.said.Status == http.StatusOK
	switch a.first.Repeat {
	case Duplicates:
		a.before["duplicates"] = a.before["accepted"]
		return same && holds(a.now, a.before)
	case Chunk:
		return same && a.now["duplicate"] == true && a.now["conflict"] != true
	case Bytes:
		return same && a.said.Answer == a.first.Answer && a.replayed
	case Replayed:
		return ok && holds(a.now, a.before) && a.replayed
	case Execution:
		return ok && a.replayed && sameExecution(a.before, a.now)
	case Refused:
		return same && code(a.before) == code(a.now)
	case Same:
		delete(a.before, "balance")
		return a.said.Status < http.StatusMultipleChoices && holds(a.now, a.before)
	case Read:
		delete(a.before, "stored_through")
		return same && holds(a.now, a.before)
	default: // Never
		return true
	}
}

// sameExecution compares the execution that the first answer named with the one
// of a repeat.
func sameExecution(before, now map[string]any) bool {
	got, _ := now["execution"].(map[string]any)
	if want, ok := before["execution"].(map[string]any); ok {
		return got["id"] == want["id"] && (want["status"] == "queued" || holds(got, want))
	}
	e, _ := before["error"].(map[string]any)
	details, _ := e["details"].(map[string]any)
	failed, _ := got["error"].(map[string]any)
	return got["status"] == "failed" && got["id"] == details["execution_id"] && failed["code"] == e["code"]
}

func code(answer map[string]any) any {
	e, _ := answer["error"].(map[string]any)
	return e["code"]
}

// holds says whether got has everything that want has. Members may have been
// added to an object, elements may not to a list.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range want {
			member, there := object[name]
			if !there || !holds(member, value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !holds(list[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(got, want)
	}
}
