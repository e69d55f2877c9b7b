package httpapi

import (
	"strconv"

	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// idPage reads ?limit= and ?cursor= of a list whose cursor is an id.
func (x *exchange) idPage() (page, error) {
	p, err := x.page()
	if err == nil && p.after != "" && !id.Valid(p.after) {
		err = badCursor()
	}
	return p, err
}

// number is the cursor of a list that is in the order of positive numbers; 0
// for the first page. It refuses with validation_failed.
func (p page) number() (int64, error) {
	if p.after == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.after, 10, 64)
	if err != nil || n < 0 {
		return 0, badCursor()
	}
	return n, nil
}

func badCursor() error {
	return fault.Field("cursor", "cursor must be a next_cursor of an earlier answer")
}

// pageAnswer is a 200 with a page of a list, made from what was found: one
// more than the limit says that there is a next page. show makes of each what
// is sent, cursor says where the next page begins after it.
func pageAnswer[T, U any](found []T, limit int, show func(*T) U, cursor func(*T) string) (answer, error) {
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = cursor(&found[limit-1])
	}
	items := make([]U, len(found))
	for i := range found {
		items[i] = show(&found[i])
	}
	return listAnswer(items, next)
}
