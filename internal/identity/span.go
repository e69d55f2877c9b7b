package identity

import (
	"cmp"
	"math"
	"slices"
)

// Link says that an anon id was known to be a user from a moment on.
type Link struct {
	UserID string
	// TS is the moment, in milliseconds since 1970.
	TS int64
	// Seq is the position of the item that made the link.
	Seq uint64
}

// Span says which user an anon id's events belong to from From up to, but not
// including, To; both in milliseconds since 1970.
type Span struct {
	From, To int64
	UserID   string
}

// The ends of time. No event has the time Never.
const (
	Always = math.MinInt64
	Never  = math.MaxInt64
)

// Spans returns the spans that follow from an anon id's links, in order of
// time. An event belongs to the user most recently linked at or before it,
// else to the earliest linked after it; of two links with one time the one
// with the higher Seq is the later. Links may come in any order and are not
// changed.
func Spans(links []Link) []Span {
	ordered := slices.Clone(links)
	slices.SortFunc(ordered, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.Seq, b.Seq))
	})
	spans := make([]Span, 0, len(ordered))
	for i, link := range ordered {
		from, to := link.TS, int64(Never)
		if i == 0 {
			from = Always
		}
		if i+1 < len(ordered) {
			to = ordered[i+1].TS
		}
		if from < to {
			spans = append(spans, Span{From: from, To: to, UserID: link.UserID})
		}
	}
	return spans
}
