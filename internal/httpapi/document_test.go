package httpapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

func TestOpenAPIIsServed(t *testing.T) {
	b := setup(t)
	r := b.do(t, request{method: "GET", path: "/api/openapi.json"})
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil || r.status != http.StatusOK {
		t.Fatalf("%d %v", r.status, err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Paths["/v1/track"]["post"] == nil {
		t.Errorf("%s, %d paths", doc.OpenAPI, len(doc.Paths))
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Error(got)
	}
	if r.header.Get("Cache-Control") != "no-cache" || r.header.Get("Content-Security-Policy") != "" {
		t.Errorf("%v", r.header)
	}
}

func TestDocumentsAreSentOnce(t *testing.T) {
	b := setup(t)
	for _, path := range []string{"/api/openapi.json", "/api/docs"} {
		first := b.do(t, request{method: "GET", path: path})
		tag := first.header.Get("Etag")
		if !strings.HasPrefix(tag, `"`) || len(tag) < 10 {
			t.Fatalf("%s: ETag %q", path, tag)
		}
		for match, status := range map[string]int{
			tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200, strings.Trim(tag, `"`): 200,
		} {
			r := b.do(t, request{method: "GET", path: path, headers: map[string]string{"If-None-Match": match}})
			if r.status != status || (r.body == "") != (status == 304) || r.header.Get("Etag") != tag {
				t.Errorf("%s, %s: %d with %d bytes", path, match, r.status, len(r.body))
			}
		}
		head := b.do(t, request{method: "HEAD", path: path})
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != first.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %v", path, head.status, head.header)
		}
		wantRefusal(t, b.do(t, request{path: path}), api.CodeMethodNotAllowed)
	}
}

// TestDocsPage: everything is on the page, and nothing it shows or runs comes
// from elsewhere.
func TestDocsPage(t *testing.T) {
	b := setup(t)
	r := b.do(t, request{method: "GET", path: "/api/docs"})
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for _, rt := range routes() {
		for _, want := range []string{`<article id="` + rt.doc.id + `">`, `href="#` + rt.doc.id + `"`, "<code>" + rt.path + "</code>"} {
			if !strings.Contains(r.body, want) {
				t.Errorf("%s is missing", want)
			}
		}
	}
	for _, spec := range api.Catalogue {
		if !strings.Contains(r.body, `id="`+string(spec.Code)+"-"+statusText(spec.Status)+`"`) {
			t.Errorf("%s is missing", spec.Code)
		}
	}
	for _, want := range []string{"events[].event_id", "steps[].where[].op", "TrendQuery", "browserTokenInURL", "422"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if bad := regexp.MustCompile(`(?i)<script|javascript:|\son\w+=|src=|@import|url\(|href="(https?:)?//|ZgotmplZ`).FindString(r.body); bad != "" {
		t.Errorf("the page holds %q", bad)
	}
	anchors := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(r.body, -1) {
		if anchors[id[1]] {
			t.Errorf("two places are called %s", id[1])
		}
		anchors[id[1]] = true
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(r.body, -1) {
		if !anchors[link[1]] {
			t.Errorf("#%s leads nowhere", link[1])
		}
	}
}

func TestDocsPolicy(t *testing.T) {
	b := setup(t)
	r := b.do(t, request{method: "GET", path: "/api/docs"})
	policy := r.header.Get("Content-Security-Policy")
	_, style, _ := strings.Cut(r.body, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	if want := "style-src 'sha256-" + hashOf(style) + "'"; !strings.Contains(policy, want) {
		t.Errorf("the style of the page is not allowed: %s, want %s", policy, want)
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
		t.Error(policy)
	}
	if r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("the page may be taken for something else")
	}
}
