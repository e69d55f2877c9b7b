package actionpulsetest

import (
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
)

// How many items a list answers with.
const (
	defaultPage = 50
	maxPage     = 200
)

// page is which part of a list is asked for.
type page struct {
	limit int
	// after is the last item of the page before, as the list's own cursor says;
	// empty for the first page.
	after string
}

// page reads ?limit= and ?cursor=. valid says what a cursor may be. It refuses
// with validation_failed.
func (x *exchange) page(valid func(string) bool) (page, error) {
	p, query := page{limit: defaultPage}, x.r.URL.Query()
	if values, ok := query["limit"]; ok {
		n, err := strconv.ParseUint(values[0], 10, 16)
		if err != nil || len(values) > 1 || n < 1 || n > maxPage {
			return p, invalidField("limit", "must be a whole number from 1 to 200")
		}
		p.limit = int(n)
	}
	if values, ok := query["cursor"]; ok {
		after, err := base64.RawURLEncoding.Strict().DecodeString(values[0])
		if err != nil || len(values) > 1 || !valid(string(after)) {
			return p, invalidField("cursor", "must be a next_cursor of an earlier answer")
		}
		p.after = string(after)
	}
	return p, nil
}

// isID says whether a text has the form of an id.
func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

func isNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n >= 0
}

// number is the cursor of a list that is in the order of numbers; 0 for the
// first page.
func (p page) number() int64 {
	n, _ := strconv.ParseInt(p.after, 10, 64)
	return n
}

// listReply is a page of a list. all is what comes after the cursor, in order;
// show makes of an item what is sent, cursor names it.
func listReply[T, U any](p page, all []T, show func(T) U, cursor func(T) string) (reply, error) {
	list := api.List[U]{Items: []U{}}
	if len(all) > p.limit {
		all = all[:p.limit]
		next := base64.RawURLEncoding.EncodeToString([]byte(cursor(all[p.limit-1])))
		list.NextCursor = &next
	}
	for _, one := range all {
		list.Items = append(list.Items, show(one))
	}
	return jsonReply(http.StatusOK, list)
}

// latestFirst returns what keep says of a list, backwards.
func latestFirst[T any](list []T, keep func(T) bool) []T {
	var out []T
	for _, one := range slices.Backward(list) {
		if keep(one) {
			out = append(out, one)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// timeIn reads an optional time of the query string; zero if it is absent. It
// refuses with validation_failed.
func (x *exchange) timeIn(name string) (time.Time, error) {
	given, err := x.text(name)
	if err != nil || given == "" {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return time.Time{}, invalidField(name, "must be a time as in RFC 3339")
	}
	return at, nil
}

// within says whether t is in a half-open range, of which each end may be
// absent.
func within(t, from, to time.Time) bool {
	return !t.Before(from) && (to.IsZero() || t.Before(to))
}

// past says whether t is a time and has come.
func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
