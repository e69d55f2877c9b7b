package sdk

import (
	"fmt"
	"net/http"
	"strings"
)

var accessScenarios = []scenario{
	{"who may call what", whoMayCallWhat},
	{"paths and methods", pathsAndMethods},
	{"request ids", requestIDs},
	{"order of refusals", orderOfRefusals},
	{"sessions", sessions},
}

const anyID = "0197d6a4-5f0e-7cc2-9d33-2f5b0f0c1a09"

// everyRoute is every method of the fake that takes a credential.
func everyRoute(projectID string) []string {
	markers := "/api/v1/projects/" + projectID + "/release-markers"
	return []string{
		"POST /v1/track", "POST /v1/identify", "POST /v1/alias",
		"POST " + markers + "/deploy", "POST " + markers, "GET " + markers, "GET " + markers + "/" + anyID, "DELETE " + markers + "/" + anyID,
		"GET /v1/customers", "GET /v1/customers/nobody", "PUT /v1/customers/nobody", "PATCH /v1/customers/nobody", "POST /v1/customers/nobody/topup",
		"POST /v1/customers/nobody/charge", "POST /v1/customers/nobody/adjust", "GET /v1/customers/nobody/balance", "GET /v1/customers/nobody/grants",
		"GET /v1/customers/nobody/holds", "GET /v1/customers/nobody/holds/h", "PUT /v1/customers/nobody/holds/h", "POST /v1/customers/nobody/holds/h/capture",
		"POST /v1/customers/nobody/holds/h/release", "GET /v1/movements", "GET /v1/movements/" + anyID, "POST /v1/movements/" + anyID + "/reversal",
		"GET /v1/credit-types", "PUT /v1/credit-types/main", "GET /v1/idempotency-keys?key=never", "GET /v1/flows", "GET /v1/flows/nothing",
		"PUT /v1/flows/nothing", "POST /v1/operations/execute", "GET /v1/operations", "GET /v1/executions", "GET /v1/executions/" + anyID,
		"POST /v1/executions/" + anyID + "/cancel",
	}
}

// whoMayCallWhat calls everything with every kind of credential. A body that is
// no JSON shows who has come through, and changes nothing.
func whoMayCallWhat(c *conversation) {
	for _, one := range everyRoute(c.projectID) {
		method, path, _ := strings.Cut(one, " ")
		for _, credential := range []string{c.browser(), c.server(), c.legacy(), c.project(), c.ci(), c.access} {
			body := ""
			if method != http.MethodGet && method != http.MethodDelete {
				body = "{"
			}
			c.send(request{method: method, path: path, credential: credential, key: "key-12345678", body: body})
		}
		c.send(request{method: method, path: path, credential: noCredential}).refuses(401, "unauthenticated")
		c.send(request{method: method, path: path, credential: "apk_unknown"}).refuses(401, "unauthenticated")
	}
	for _, value := range []string{"", "Basic eDp5", "Bearer", "Bearer ", "bearer  " + c.project(), "BEARER " + c.project(), c.project()} {
		c.send(request{method: http.MethodGet, path: "/v1/credit-types", credential: noCredential, header: http.Header{"Authorization": {value}}})
	}
	c.send(request{method: http.MethodGet, path: "/v1/credit-types", credential: noCredential, header: http.Header{
		"Authorization": {"Bearer " + c.project(), "Bearer " + c.project()},
	}}).refuses(401, "unauthenticated")
}

func pathsAndMethods(c *conversation) {
	for _, path := range []string{"/", "/v1", "/v1/nothing", "/v1/track/", "/v1//track", "/v1/customers/../track", "/v1/customers/", "/v1/flows/a/b/c"} {
		c.get(path).refuses(404, "not_found")
	}
	for _, one := range everyRoute(c.projectID) {
		_, path, _ := strings.Cut(one, " ")
		c.send(request{method: http.MethodTrace, path: path, credential: noCredential}).refuses(405, "method_not_allowed")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		c.send(request{method: http.MethodGet, path: path, credential: noCredential}).wants(200)
	}
	c.send(request{method: http.MethodHead, path: "/v1/credit-types"}).wants(200)
	c.send(request{method: http.MethodHead, path: "/v1/customers/nobody"}).wants(404)
}

func requestIDs(c *conversation) {
	for _, one := range []struct {
		given string
		kept  bool
	}{{"mine-1", true}, {strings.Repeat("x", 128), true}, {strings.Repeat("x", 129), false}, {"with space", false}, {"", false}, {"é", false}} {
		a := c.send(request{method: http.MethodGet, path: "/v1/customers/nobody", header: http.Header{"X-Request-Id": {one.given}}}).refuses(404, "customer_not_found")
		id := a.header.Get("X-Request-Id")
		if id == "" || (id == one.given) != one.kept || a.text("error.request_id") != id {
			c.Errorf("%s: %q became %q: %s", c.name, one.given, id, a.raw)
		}
	}
}

// orderOfRefusals has several things be wrong at once.
func orderOfRefusals(c *conversation) {
	xml := http.Header{"Content-Type": {"application/xml"}}
	const topup = "/v1/customers/ada/topup"
	c.send(request{path: topup, credential: c.browser(), header: xml, body: "{"}).refuses(403, "forbidden")
	c.send(request{path: topup, header: xml, body: "{"}).refuses(400, "idempotency_key_required")
	c.send(request{path: topup, key: strings.Repeat("x", 191), header: xml, body: "{"}).refuses(422, "invalid_request")
	c.send(request{path: topup, key: "k", header: xml, body: "{"}).refuses(415, "unsupported_media_type")
	c.post(topup, "k", "{").refuses(400, "invalid_json")
	c.post(topup, "k", `{}`).refuses(422, "invalid_request")
	c.post(topup, "k", `{"credit_type":"main","amount":"1"}`).wants(200)
	c.post(topup, "k", "{").refuses(409, "idempotency_conflict")
	c.send(request{path: topup, key: "k", header: xml, body: "{"}).refuses(415, "unsupported_media_type")
	c.post("/v1/customers/"+strings.Repeat("x", 201)+"/topup", "k2", `{"credit_type":"main","amount":"1"}`).refuses(422, "invalid_request")
	c.post("/v1/customers/%00/topup", "k2", `{"credit_type":"main","amount":"1"}`).refuses(422, "invalid_request")
	c.post("/v1/customers/%2E%2E/topup", "k2", `{"credit_type":"main","amount":"1"}`)
	c.post("/v1/customers/a%2Fb%20%C3%A9/topup", "k2", `{"credit_type":"main","amount":"1"}`).wants(200).has("movement.customer", `"a/b é"`)
	c.get("/v1/customers/a%2Fb%20%C3%A9").wants(200)
	// Elsewhere a key is not read.
	c.send(request{method: http.MethodPut, path: "/v1/customers/bob", key: "k", body: `{}`, header: http.Header{}}).wants(201).replayed(false)
	c.send(request{method: http.MethodPut, path: "/v1/customers/bob", body: `{}`, header: http.Header{"Idempotency-Key": {"", "a"}}}).wants(200)
}

func sessions(c *conversation) {
	post := func(path, body string) *answer {
		return c.send(request{path: "/api/v1/auth/" + path, credential: noCredential, body: body})
	}
	for _, body := range []string{`{}`, `{"email":"x@y"}`, `{"email":7,"password":"p"}`, `{"email":"x@y","password":"p","more":1}`, `[]`} {
		post("login", body).refuses(422, "validation_failed")
	}
	post("login", `{"email":"x@y","password":"wrong"}`).refuses(401, "invalid_credentials")
	in := post("login", fmt.Sprintf(`{"email":%q,"password":%q}`, strings.ToUpper(c.email), c.password)).wants(200).has("expires_in", "3600")
	list := "/api/v1/projects/" + c.projectID + "/release-markers"
	as := func(token string) *answer {
		return c.send(request{method: http.MethodGet, path: list, credential: token})
	}
	as(in.text("access_token")).wants(200)
	as(in.text("refresh_token")).refuses(401, "unauthenticated")
	refresh := func(token string) *answer { return post("refresh", fmt.Sprintf(`{"refresh_token":%q}`, token)) }
	next := refresh(in.text("refresh_token")).wants(200)
	as(next.text("access_token")).wants(200)
	as(in.text("access_token")).wants(200)
	last := refresh(next.text("refresh_token")).wants(200)
	refresh(in.text("refresh_token")).refuses(401, "unauthenticated")
	for _, token := range []string{in.text("access_token"), next.text("access_token"), last.text("access_token")} {
		as(token).refuses(401, "unauthenticated") // the whole family has ended
	}
	refresh(last.text("refresh_token")).refuses(401, "unauthenticated")
	refresh("apr_unknown").refuses(401, "unauthenticated")
	post("refresh", `{}`).refuses(422, "validation_failed")
	in = post("login", fmt.Sprintf(`{"email":%q,"password":%q}`, c.email, c.password)).wants(200)
	post("login", fmt.Sprintf(`{"email":%q,"password":%q,"organization_id":%q}`, c.email, c.password, anyID)).refuses(403, "forbidden")
	post("refresh", fmt.Sprintf(`{"refresh_token":%q,"organization_id":%q}`, in.text("refresh_token"), anyID)).refuses(403, "forbidden")
	in = refresh(in.text("refresh_token")).wants(200)
	c.send(request{path: "/api/v1/auth/logout", credential: in.text("access_token")}).wants(204)
	as(in.text("access_token")).refuses(401, "unauthenticated")
	refresh(in.text("refresh_token")).refuses(401, "unauthenticated")
	c.send(request{path: "/api/v1/auth/logout", credential: c.project()}).refuses(403, "forbidden")
}
