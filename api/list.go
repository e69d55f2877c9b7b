package api

// List is a page of a list, in an order that is stable while items are added.
type List[T any] struct {
	Items []T `json:"items"`
	// NextCursor goes into ?cursor= for the page after this one; null on the
	// last page.
	NextCursor *string `json:"next_cursor" doc:"The cursor of the next page; null on the last one."`
}
