package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// How many items a list answers with.
const (
	defaultPage = 50
	maxPage     = 200
	// maxCursor is the longest cursor that is read.
	maxCursor = 1024
)

// page is which part of a list is asked for.
type page struct {
	limit int
	// after is the domain's own cursor; empty for the first page.
	after string
}

// page reads ?limit= and ?cursor=. It refuses with validation_failed. Other
// parameters are ignored.
func (x *exchange) page() (page, error) {
	p := page{limit: defaultPage}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return page{}, fault.Field("query", "the query string is malformed")
	}
	if values, ok := query["limit"]; ok {
		n, err := strconv.ParseUint(values[0], 10, 16)
		if err != nil || len(values) > 1 || n < 1 || n > maxPage {
			return page{}, fault.Field("limit", "limit must be a whole number from 1 to %d", maxPage)
		}
		p.limit = int(n)
	}
	if values, ok := query["cursor"]; ok {
		after, err := base64.RawURLEncoding.Strict().DecodeString(values[0])
		if err != nil || len(values) > 1 || len(after) == 0 || len(after) > maxCursor {
			return page{}, fault.Field("cursor", "cursor must be a next_cursor of an earlier answer")
		}
		p.after = string(after)
	}
	return p, nil
}

// text reads an optional parameter of the query string; empty if it is absent.
// It refuses with validation_failed when there are two.
func (x *exchange) text(name string) (string, error) {
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return "", fault.Field("query", "the query string is malformed")
	}
	if len(query[name]) > 1 {
		return "", fault.Field(name, "send %s once", name)
	}
	return query.Get(name), nil
}

// time reads an optional time of the query string; zero if it is absent. It
// refuses with validation_failed.
func (x *exchange) time(name string) (time.Time, error) {
	text, err := x.text(name)
	if err != nil || text == "" {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fault.Field(name, "%s must be a time as in RFC 3339, like 2024-01-01T00:00:00Z", name)
	}
	return at, nil
}

// listAnswer is a 200 with a page of a list. next is the domain's cursor of
// the page after it; empty if this is the last.
func listAnswer[T any](items []T, next string) (answer, error) {
	list := api.List[T]{Items: items}
	if items == nil {
		list.Items = []T{}
	}
	if next != "" {
		list.NextCursor = new(base64.RawURLEncoding.EncodeToString([]byte(next)))
	}
	return jsonAnswer(http.StatusOK, list)
}
