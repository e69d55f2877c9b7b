package sdk

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

var markerScenarios = []scenario{
	{"headers of deploy markers", markerHeaders},
	{"repeats of deploy markers", markerRepeats},
	{"deploy markers that are not valid", invalidMarkers},
	{"matrix build", matrixBuild},
	{"markers by hand", markersByHand},
}

func (c *conversation) markers() string {
	return "/api/v1/projects/" + c.projectID + "/release-markers"
}

func (c *conversation) deploy(key, body string) *answer {
	c.Helper()
	return c.send(request{path: c.markers() + "/deploy", credential: c.ci(), key: key, body: body})
}

func (c *conversation) list(query string) *answer {
	c.Helper()
	return c.send(request{method: http.MethodGet, path: c.markers() + query, credential: c.access})
}

func markerHeaders(c *conversation) {
	for _, values := range [][]string{
		nil, {""}, {"  "}, {"deploy-1", "deploy-1"}, {"deploy-1, deploy-2"}, {"1234567"}, {strings.Repeat("x", 129)}, {"with space"}, {"a,b,c,d,e"}, {"déploy-1"},
	} {
		c.send(request{path: c.markers() + "/deploy", credential: c.ci(), body: `{"version":"1"}`, header: http.Header{"Idempotency-Key": values}}).
			refuses(422, "validation_failed").has("error.details.header", `"Idempotency-Key"`)
	}
	c.list("").wants(200).has("items", "[]")
	c.deploy("12345678", `{"version":"1"}`).wants(201)
	c.deploy(strings.Repeat("x", 128), `{"version":"1"}`).wants(201)
	c.send(request{path: "/api/v1/projects/" + anyID + "/release-markers/deploy", credential: c.ci(), key: "12345678", body: `{"version":"1"}`}).
		refuses(404, "not_found")
}

func markerRepeats(c *conversation) {
	const first = `{"version":"1.4.2","ts":"2026-05-01T10:00:00Z","commit":"abc","metadata":{"n":1.0,"text":"é"},"url":"https://ci.example/1","title":"T"}`
	made := c.deploy("deploy-42", first).wants(201).replayed(false)
	id := made.text("id")
	for _, same := range []string{
		first,
		`{"metadata":{"text":"\u00e9","n":10e-1},"ts":"2026-05-01T12:00:00.000+02:00","title":"T","url":"https://ci.example/1","commit":"abc","version":"1.4.2"}`,
		strings.Replace(first, "{", `{ "environment" : "production",`, 1),
	} {
		c.deploy("deploy-42", same).wants(200).replayed(true).has("id", `"`+id+`"`)
	}
	for _, other := range []struct{ body, differs string }{
		{strings.Replace(first, "10:00:00Z", "10:00:01Z", 1), `["ts"]`},
		{strings.Replace(first, `"T"`, `"U"`, 1), `["title"]`},
		{strings.Replace(first, "{", `{"environment":"staging",`, 1), `["environment"]`},
		{strings.Replace(first, "1.4.2", "1.4.3", 1), `["version"]`},
		{strings.Replace(first, "1.0", "1.1", 1), `["metadata"]`},
		{`{"version":"1.4.2"}`, `["commit","metadata","title","ts","url"]`},
		{`{`, `["body","commit","metadata","environment","title","ts","url","version"]`},
		{`{"version":7}`, ``},
	} {
		a := c.deploy("deploy-42", other.body).refuses(409, "validation_failed").has("error.details.header", `"Idempotency-Key"`).has("error.details.key", `"taken"`)
		if other.differs != "" && other.body != "{" {
			a.has("error.details.differs", other.differs)
		}
	}
	c.list("?idempotency_key=deploy-42").wants(200).has("items.0.id", `"`+id+`"`).has("unit.status", `"created"`)
	c.send(request{method: http.MethodDelete, path: c.markers() + "/" + id, credential: c.access}).wants(204)
	if c.deploy("deploy-42", first).wants(200).replayed(true).at("deleted_at") == nil {
		c.Errorf("%s: a deleted marker is shown without deleted_at", c.name)
	}
	c.list("?idempotency_key=deploy-42").wants(200).has("unit.status", `"deleted"`)
	c.list("?idempotency_key=deploy-43").refuses(404, "not_found")
	c.list("").wants(200).has("items", "[]")
	c.get("/v1/idempotency-keys?key=deploy-42").refuses(404, "not_found")
}

func invalidMarkers(c *conversation) {
	for i, body := range []string{
		`{}`, `{"version":""}`, `{"version":" "}`, `{"version":null}`, `{"version":7}`, `{"version":"` + strings.Repeat("é", 201) + `"}`, `{"version":"a\nb"}`,
		`{"version":"1","environment":""}`, `{"version":"1","environment":" "}`, `{"version":"1","environment":"` + strings.Repeat("e", 101) + `"}`,
		`{"version":"1","ts":"yesterday"}`, `{"version":"1","ts":1777629600000}`, `{"version":"1","ts":"1969-12-31T23:59:59Z"}`,
		`{"version":"1","ts":"2026-05-01T10:00:00,5Z"}`, `{"version":"1","url":"ftp://x"}`, `{"version":"1","url":"nothing"}`,
		`{"version":"1","url":"https://"}`, `{"version":"1","title":"` + strings.Repeat("t", 501) + `"}`, `{"version":"1","commit":"` + strings.Repeat("c", 201) + `"}`,
		`{"version":"1","metadata":[]}`, `{"version":"1","metadata":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, `{"version":"1","Version":"1"}`,
		`{"version":"1","unknown":1}`, `[]`, `7`, `null`, `"version"`, `{"version":"1","title":"a\u0001"}`,
	} {
		key := fmt.Sprintf("invalid-%d", i)
		c.deploy(key, body).refuses(422, "validation_failed").has("error.details.key", `"free"`)
		c.deploy(key, `{"version":"1","title":null,"ts":null,"environment":null,"metadata":null}`).wants(201)
	}
	c.deploy("invalid-json", `{"version":"1","version":"2"}`).refuses(400, "invalid_json").has("error.details.key", `"free"`)
	c.deploy("invalid-json", `{"version":"1",}`).refuses(400, "invalid_json")
	c.deploy("invalid-json", ``).refuses(400, "invalid_json")
	c.deploy("invalid-json", `{"version":"1","metadata":{"a":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}}`).refuses(400, "invalid_json")
	c.deploy("edges-of-a-marker", `{"version":"`+strings.Repeat("é", 200)+`","ts":"9999-12-31T23:59:59Z","commit":"","url":"","title":"","metadata":{}}`).wants(201)
}

// matrixBuild: six legs post one marker at once, the seventh has another second,
// the eighth another spelling.
func matrixBuild(c *conversation) {
	const body = `{"version":"2.0","ts":"2026-05-01T10:00:00Z"}`
	statuses := c.atOnce(6, request{path: c.markers() + "/deploy", credential: c.ci(), key: "matrix-1", body: body})
	if statuses[201] != 1 || statuses[200] != 5 {
		c.Errorf("%s: %v", c.name, statuses)
	}
	c.deploy("matrix-1", strings.Replace(body, "10:00:00Z", "10:00:01Z", 1)).refuses(409, "validation_failed").has("error.details.differs", `["ts"]`)
	c.deploy("matrix-1", `{"ts":"2026-05-01T10:00:00+00:00","version":"2.0"}`).wants(200)
	c.list("").wants(200).has("items.1", "null")
}

// atOnce sends a request n times at once, and counts the statuses.
func (c *conversation) atOnce(n int, r request) map[int]int {
	if r.credential == "" {
		r.credential = c.project()
	}
	statuses := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			a := c.quietly(r)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	all.Wait()
	return statuses
}

func markersByHand(c *conversation) {
	byHand := func(body string) *answer {
		return c.send(request{path: c.markers(), credential: c.access, key: "by-hand-1", body: body})
	}
	byHand(`{"version":"1"}`).wants(201).has("source", `"manual"`)
	byHand(`{"version":"1"}`).wants(201)
	byHand(`{}`).refuses(422, "validation_failed")
	for i := range 5 {
		byHand(fmt.Sprintf(`{"version":"v%d","ts":"2026-05-0%dT10:00:00Z","environment":"staging"}`, i, i+1)).wants(201)
	}
	a := c.list("?environment=staging&limit=2").wants(200).has("items.0.version", `"v4"`)
	a = c.list("?environment=staging&limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.0.version", `"v2"`)
	c.list("?environment=staging&limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.1", "null").has("next_cursor", "null")
	c.list("?from=2026-05-02T10:00:00Z&to=2026-05-04T10:00:00Z").wants(200).has("items.0.version", `"v2"`).has("items.2", "null")
	c.list("?environment="+strings.Repeat("x", 101)).wants(200).has("items", "[]")
	for _, query := range []string{
		"?limit=0", "?limit=201", "?limit=x", "?limit=1&limit=2", "?cursor=x", "?cursor=", "?cursor=bm90aGluZw", "?from=x", "?to=x", "?from=", "?environment=a&environment=b",
	} {
		c.list(query)
	}
	id := c.list("?limit=1").text("items.0.id")
	c.send(request{method: http.MethodGet, path: c.markers() + "/" + id, credential: c.access}).wants(200)
	for _, path := range []string{c.markers() + "/" + anyID, c.markers() + "/nothing", "/api/v1/projects/" + anyID + "/release-markers/" + id, "/api/v1/projects/nothing/release-markers"} {
		c.send(request{method: http.MethodGet, path: path, credential: c.access}).refuses(404, "not_found")
	}
	for _, status := range []int{204, 404} {
		c.send(request{method: http.MethodDelete, path: c.markers() + "/" + id, credential: c.access}).wants(status)
	}
	c.send(request{method: http.MethodGet, path: c.markers() + "/" + id, credential: c.access}).refuses(404, "not_found")
}
