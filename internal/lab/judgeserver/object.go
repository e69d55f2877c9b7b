package judgeserver

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// objects sees whether a unit has so many objects, by what answers say and by
// what the server says when it is asked. Without either it is inconclusive.
func (j *judge) objects(ctx context.Context, u unit, want int, answers ...answer) finding {
	ids := map[string]bool{}
	for _, a := range answers {
		if a.id != "" {
			ids[a.id] = true
		}
	}
	names := slices.Sorted(maps.Keys(ids))
	if len(names) > want {
		return fail("%s: the answers name %d objects where there should be %d: %s", u.name, len(names), want, strings.Join(names, ", "))
	}
	n, counted, err := j.count(ctx, u)
	switch {
	case err != nil:
		return inconclusive("%s: the objects could not be counted: %v", u.name, err)
	case counted && n != want:
		return fail("%s: there are %d objects where there should be %d", u.name, n, want)
	case !counted && len(names) < want, !counted && want == 0:
		return inconclusive("%s: how many objects there are cannot be seen: it takes a way to count them", u.name)
	}
	if j.endpoint.Agree != nil {
		if err := j.endpoint.Agree(ctx, u.name, want); err != nil {
			return fail("%s: %v", u.name, err)
		}
	}
	if want == 0 {
		return pass("%s: nothing was made", u.name)
	}
	return pass("%s: %d object(s): %s", u.name, want, strings.Join(names, ", "))
}

// same sees whether answers of one unit of work agree: they name the same
// object or, where answers name none, have the same body.
func (j *judge) same(u unit, answers ...answer) finding {
	first := -1
	for i, a := range answers {
		if !a.succeeded() {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		if different := j.differ(answers[first], a); different != "" {
			return fail("%s: two answers for one key %s: %s and %s", u.name, different, answers[first].short(), a.short())
		}
	}
	return pass("%s: all answers agree", u.name)
}

func (j *judge) differ(a, b answer) string {
	switch {
	case j.endpoint.Identify != nil && a.id != b.id:
		return "name different objects"
	case (j.endpoint.Exact || j.endpoint.Identify == nil) && !bytes.Equal(a.body, b.body):
		return "have different bytes"
	default:
		return ""
	}
}

// one sees that answers agree and that there is one object.
func (j *judge) one(ctx context.Context, u unit, answers ...answer) finding {
	return j.same(u, answers...).and(j.objects(ctx, u, 1, answers...))
}

// succeeds sees that an answer is a success.
func succeeds(u unit, what string, a answer) finding {
	if !a.succeeded() {
		return fail("%s: %s: %s", u.name, what, a.short())
	}
	return pass("%s: %s: %d", u.name, what, a.status)
}

// statuses counts answers by status.
func statuses(answers []answer) string {
	counts := map[string]int{}
	for _, a := range answers {
		status := "no answer"
		if a.err == nil {
			status = fmt.Sprint(a.status)
		}
		counts[status]++
	}
	var out []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d× %s", counts[status], status))
	}
	return strings.Join(out, ", ")
}
