package actionpulse

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Page says which part of a list is asked for.
type Page struct {
	// Limit is how many items a page may have, 1 to 200; 0 means the server's
	// default, 50.
	Limit int
	// Cursor is NextCursor of the page before; empty for the first page.
	Cursor string
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	setText(q, "cursor", p.Cursor)
	return q
}

// setText adds a parameter that may be absent.
func setText(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// setTime adds a time that may be absent, which is the zero time.
func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, timeText(t))
	}
}

// timeText writes a time exactly.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// optionalTime is nil for the zero time.
func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(timeText(t))
}

// list asks for one page.
func list[T any](ctx context.Context, l *link, c call) (*api.List[T], error) {
	return fetch[api.List[T]](ctx, l, c)
}

// errCursor stops an iteration that would never end.
var errCursor = errors.New("actionpulse: the server gave the same cursor again")

// all yields the items of page after page, beginning with p. A page is asked
// for when its first item is; an error is yielded once and is the last.
func all[T any](p Page, fetch func(Page) (*api.List[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for p := p; ; { // an iteration may be begun again
			page, err := fetch(p)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == nil || *page.NextCursor == "" {
				return
			}
			if *page.NextCursor == p.Cursor {
				yield(none, errCursor)
				return
			}
			p.Cursor = *page.NextCursor
		}
	}
}
