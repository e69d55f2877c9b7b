package actionpulse_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// threePages answers with two customers on each of three pages.
func threePages(w http.ResponseWriter, r *http.Request) {
	next := map[string]string{"": `"b"`, "b": `"c"`, "c": "null"}
	cursor := r.URL.Query().Get("cursor")
	says(200, fmt.Sprintf(`{"items":[{"customer":"%s1"},{"customer":"%s2"}],"next_cursor":%s}`, cursor, cursor, next[cursor]))(w, r)
}

func TestAll(t *testing.T) {
	t.Parallel()
	s := play(t, threePages)
	every := newClients(t, s.URL).Customers.All(t.Context(), actionpulse.Page{Limit: 2})
	for range 2 { // an iteration can be begun again
		var got []string
		for c, err := range every {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.Customer)
		}
		if !slices.Equal(got, []string{"1", "2", "b1", "b2", "c1", "c2"}) {
			t.Errorf("got %v", got)
		}
	}
	var asked []string
	for _, r := range s.requests() {
		asked = append(asked, r.query)
	}
	if want := []string{"limit=2", "cursor=b&limit=2", "cursor=c&limit=2"}; !slices.Equal(asked, append(want, want...)) {
		t.Errorf("asked for %v", asked)
	}
}

// TestFiltersOnEveryPage: the pages after the first are asked for by the same
// filter, and an iteration that is begun again begins at its first page.
func TestFiltersOnEveryPage(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, `{"items":[{}],"next_cursor":"b"}`), says(200, `{"items":[{}],"next_cursor":null}`),
		says(200, `{"items":[{}],"next_cursor":null}`))
	every := newClients(t, s.URL).Movements.All(t.Context(), actionpulse.ListMovements{MovementFilter: actionpulse.MovementFilter{Customer: "ada"}})
	for range 2 {
		if err := drain(every); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	for _, r := range s.requests() {
		asked = append(asked, r.query)
	}
	if want := []string{"customer=ada", "cursor=b&customer=ada", "customer=ada"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v", asked)
	}
}

// TestAllEvents: a query's cursor is in its body, beside the rest of it.
func TestAllEvents(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, `{"items":[{}],"next_cursor":"b"}`), says(200, `{"items":[{}],"next_cursor":null}`))
	if err := drain(newClients(t, s.URL).app.Queries.AllEvents(t.Context(), one, api.EventsQuery{Event: "e", Limit: 1})); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, r := range s.requests() {
		asked = append(asked, r.body)
	}
	want := []string{`{"type":"events","event":"e","limit":1}`, `{"type":"events","event":"e","limit":1,"cursor":"b"}`}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
}

// TestAllStops: a reader who leaves causes no further request, not even when
// the page was just used up.
func TestAllStops(t *testing.T) {
	t.Parallel()
	for stopAfter, requests := range map[int]int{1: 1, 2: 1, 3: 2} {
		s := play(t, threePages)
		n := 0
		for _, err := range newClients(t, s.URL).Customers.All(t.Context(), actionpulse.Page{}) {
			if n++; err != nil {
				t.Fatal(err)
			}
			if n == stopAfter {
				break
			}
		}
		if len(s.requests()) != requests {
			t.Errorf("after %d items %d requests were made, want %d", stopAfter, len(s.requests()), requests)
		}
	}
}

// TestAllEndsAtAnError: what came before it is yielded, it comes once, and
// nothing after it.
func TestAllEndsAtAnError(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, `{"items":[{"customer":"a"}],"next_cursor":"b"}`), refuses(403, "forbidden", ""), says(200, `{"items":[{}]}`))
	var got []string
	for c, err := range newClients(t, s.URL).Customers.All(t.Context(), actionpulse.Page{}) {
		got = append(got, fmt.Sprint(c.Customer, actionpulse.CodeOf(err)))
	}
	if !slices.Equal(got, []string{"a", string(api.CodeForbidden)}) || len(s.requests()) != 2 {
		t.Errorf("got %v of %d requests", got, len(s.requests()))
	}
}

// TestAllWithoutEnd: a server that gives one cursor for ever is left.
func TestAllWithoutEnd(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, `{"items":[],"next_cursor":"b"}`))
	if err := drain(newClients(t, s.URL).Customers.All(t.Context(), actionpulse.Page{})); err == nil || len(s.requests()) != 2 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
}

// TestExport: the movements that came whole are yielded; an export that was cut
// short ends with an error and is never taken for a whole one.
func TestExport(t *testing.T) {
	t.Parallel()
	const lines = `{"id":"m-1","amount":"0.3"}` + "\n" + `{"id":"m-2","amount":"12345678901234567.000001"}` + "\n"
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(lines))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	s := play(t, says(200, lines), cut, refuses(422, "validation_failed", ""), says(200, lines))
	c := hurried(t, s.URL)
	for i, want := range []int{2, 2, 0} {
		n, failed := 0, error(nil)
		for m, err := range c.Movements.Export(t.Context(), actionpulse.MovementFilter{}) {
			if failed = err; err != nil {
				continue
			}
			if n++; n == 2 && m.Amount != "12345678901234567.000001" {
				t.Errorf("an amount is %s", m.Amount)
			}
		}
		if n != want || (failed == nil) != (i == 0) {
			t.Errorf("export %d: %d movements, %v", i, n, failed)
		}
	}
	for _, err := range c.Movements.Export(t.Context(), actionpulse.MovementFilter{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if _, err := c.Movements.ExportCSV(t.Context(), actionpulse.MovementFilter{}); errors.Is(err, http.ErrAbortHandler) || len(s.requests()) != 5 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
}
