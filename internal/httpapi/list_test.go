package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// listRoute lists the numbers after a cursor, up to 120, in pages.
func listRoute() route {
	return route{
		"GET", "/test/numbers",
		access{open: true},
		body{},
		reads,
		operation{},
		func(_ *service, x *exchange) (answer, error) {
			p, err := x.page()
			if err != nil {
				return answer{}, err
			}
			after := 0
			if p.after != "" {
				if after, err = strconv.Atoi(p.after); err != nil {
					return answer{}, err
				}
			}
			var items []int
			for n := after + 1; n <= 120 && len(items) < p.limit; n++ {
				items = append(items, n)
			}
			next := ""
			if len(items) > 0 && items[len(items)-1] < 120 {
				next = strconv.Itoa(items[len(items)-1])
			}
			return listAnswer(items, next)
		},
	}
}

func TestPages(t *testing.T) {
	b := setupWithin(t, patience, listRoute())
	cursor := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for query, want := range map[string]struct {
		holds string
		items int
	}{
		"":                                  {`"next_cursor":"` + cursor("50") + `"`, 50},
		"?limit=1":                          {`{"items":[1],"next_cursor":"` + cursor("1") + `"}`, 1},
		"?limit=200":                        {`"next_cursor":null`, 120},
		"?limit=50&cursor=" + cursor("100"): {`"next_cursor":null`, 20},
		"?cursor=" + cursor("120"):          {`{"items":[],"next_cursor":null}`, 0},
		"?other=x&limit=2&other=":           {`{"items":[1,2],`, 2},
	} {
		r := b.do(t, request{method: "GET", path: "/test/numbers" + query})
		items := 0
		if list, _, _ := strings.Cut(r.body, "]"); list != `{"items":[` {
			items = strings.Count(list, ",") + 1
		}
		if r.status != http.StatusOK || !strings.Contains(r.body, want.holds) || items != want.items {
			t.Errorf("%q: %d, %d items: %s", query, r.status, items, r.body)
		}
	}
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=201": "limit", "?limit=": "limit", "?limit=-1": "limit", "?limit=1.0": "limit", "?limit=+1": "limit",
		"?limit=1&limit=1": "limit", "?limit=99999999999999999999": "limit", "?limit=%F0": "limit",
		"?cursor=": "cursor", "?cursor=!": "cursor", "?cursor=MTA=": "cursor", "?cursor=" + cursor("1") + "&cursor=" + cursor("1"): "cursor",
		"?cursor=" + strings.Repeat("A", 4000): "cursor", "?limit=%zz": "query",
	} {
		e := wantRefusal(t, b.do(t, request{method: "GET", path: "/test/numbers" + query}), api.CodeValidationFailed)
		if e.Details["field"] != field {
			t.Errorf("%q: field %v, want %s", query, e.Details["field"], field)
		}
	}
	if r := b.do(t, request{method: "HEAD", path: "/test/numbers"}); r.status != http.StatusOK || r.body != "" || r.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %+v", r)
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 5, 1, 14, 0, 0, 999_999, time.FixedZone("", 7200))
	if got := api.TimeText(at); got != "2026-05-01T12:00:00.000Z" {
		t.Error(got)
	}
	if api.OptionalTime(time.Time{}) != nil || *api.OptionalTime(at) != api.TimeText(at) {
		t.Error("the zero time is not absent")
	}
}
