package httpapi

import (
	"net/http"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// TestSegmentsThatAreASlash: a name "/" arrives as it is, alone or beside
// others; no other name is taken for it, and it names no other path.
func TestSegmentsThatAreASlash(t *testing.T) {
	says := func(_ *service, x *exchange) (answer, error) {
		return jsonAnswer(http.StatusOK, []string{x.r.PathValue("one"), x.r.PathValue("two")})
	}
	doc := operation{id: "getNames", tag: tagServer, summary: "Get the names", replies: replyOK("The names.", []string{})}
	b := setupWithin(t, patience,
		route{"GET", "/test/{one}", access{open: true}, body{}, reads, doc, says},
		route{"GET", "/test/{one}/in/{two}/end", access{open: true}, body{}, reads, doc, says},
	)
	for path, want := range map[string][2]string{
		"/test/%2F":                {"/"},
		"/test/%2f":                {"/"},
		"/test/%2F%2F":             {"//"},
		"/test/%252F":              {"%2F"},
		"/test/a%2F":               {"a/"},
		"/test/%2F/in/%2f/end":     {"/", "/"},
		"/test/%2F/in/a%20b/end":   {"/", "a b"},
		"/test/%2F%2F/in/%2F/end":  {"//", "/"},
		"/test/%252F/in/%2F/end":   {"%2F", "/"},
		"/te%73t/%2F/%69n/%2F/end": {"/", "/"},
		"/test/%2F/in/%00/end":     {"/", "\x00"},
	} {
		t.Run(path, func(t *testing.T) {
			got := b.do(t, request{method: "GET", path: path})
			wanted, err := marshal(want)
			if err != nil || got.status != http.StatusOK || got.body != string(wanted) {
				t.Errorf("%d %s, want %s", got.status, got.body, wanted)
			}
		})
	}
	for _, path := range []string{"/%2F", "/%2Ftest/a", "/test%2F/a", "/test/%2F/", "/test/%2F/%2F", "/test/%2F/in/%2F", "/test/a/%2F/b/end", "/healthz/%2F", "/test/%2F/../%2F"} {
		wantRefusal(t, b.do(t, request{method: "GET", path: path}), api.CodeNotFound)
	}
	if r := b.do(t, request{method: "PUT", path: "/test/%2F"}); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%d, allowed %q", r.status, r.header.Get("Allow"))
	}
	if n := b.counted(t, "/test/{one}", "ok", "200"); n != 5 {
		t.Errorf("%v requests are counted", n)
	}
}
