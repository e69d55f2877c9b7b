package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
)

// TestEveryRouteIsDescribed: the document has every route and nothing else,
// and each says who may call it, what it takes and what can come back.
func TestEveryRouteIsDescribed(t *testing.T) {
	doc := newOpenAPI()
	count := 0
	for path, item := range doc.Paths {
		for _, op := range operations(item) {
			count++
			where := op.Method + " " + path
			rt := findRoute(t, op.Method, path)
			if op.OperationID == "" || op.Summary == "" || strings.HasSuffix(op.Summary, ".") || len(op.Tags) != 1 {
				t.Errorf("%s: id %q, summary %q, tags %v", where, op.OperationID, op.Summary, op.Tags)
			}
			if (op.Security == nil) != rt.access.open {
				t.Errorf("%s: security %v", where, op.Security)
			}
			if (op.RequestBody != nil) != (rt.body.limit > 0) {
				t.Errorf("%s: has a request body: %v", where, op.RequestBody != nil)
			}
			for _, name := range pathNames(path) {
				if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "path" && p.Name == name && p.Required }) {
					t.Errorf("%s: the parameter %s is not described", where, name)
				}
			}
			for _, p := range op.Parameters {
				if p.Description == "" || p.Schema == nil {
					t.Errorf("%s: %s has no description or schema", where, p.Name)
				}
			}
			checkResponses(t, where, rt, op)
		}
	}
	if count != len(routes()) {
		t.Errorf("%d operations, %d routes", count, len(routes()))
	}
}

func operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func findRoute(t *testing.T, method, path string) route {
	t.Helper()
	for _, rt := range routes() {
		if rt.method == method && rt.path == path {
			return rt
		}
	}
	t.Fatalf("%s %s is no route", method, path)
	return route{}
}

func pathNames(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

func checkResponses(t *testing.T, where string, rt route, op *huma.Operation) {
	t.Helper()
	succeeds := false
	for status, r := range op.Responses {
		succeeds = succeeds || status < "3"
		if r.Description == "" || r.Headers["X-Request-Id"] == nil {
			t.Errorf("%s: %s: description %q, headers %v", where, status, r.Description, r.Headers)
		}
		refusal := status >= "4"
		if refusal != (r.Headers["X-Should-Retry"] != nil) {
			t.Errorf("%s: %s: X-Should-Retry", where, status)
		}
		if (r.Headers["Retry-After"] != nil) != (status == "429" || status == "503") {
			t.Errorf("%s: %s: Retry-After", where, status)
		}
		if refusal && r.Content["application/json"].Schema.Ref != "#/components/schemas/Error" {
			t.Errorf("%s: %s is not the envelope", where, status)
		}
	}
	for _, spec := range rt.refusals() {
		if r := op.Responses[statusText(spec.Status)]; r == nil || !strings.Contains(r.Description, "`"+string(spec.Code)+"`") {
			t.Errorf("%s: %d does not name %s", where, spec.Status, spec.Code)
		}
	}
	if !succeeds {
		t.Errorf("%s: never succeeds", where)
	}
}

// keyedWork are the operations that read an Idempotency-Key. There are no
// others, ever.
var keyedWork = []string{
	"POST /api/v1/projects/{id}/release-markers/deploy",
	"POST /v1/operations/execute",
	"POST /v1/customers/{external_user_id}/topup",
	"POST /v1/customers/{external_user_id}/charge",
	"POST /v1/customers/{external_user_id}/adjust",
}

func TestOnlyKeyedWorkDeclaresTheKey(t *testing.T) {
	schemas := newRegistry()
	present := 0
	for _, rt := range routes() {
		name := rt.method + " " + rt.path
		if rt.effect == keyed {
			present++
		}
		if rt.effect == keyed && !slices.Contains(keyedWork, name) {
			t.Errorf("%s is keyed, which the contract does not know", name)
		}
		declares := 0
		for _, p := range describeRoute(schemas, rt).Parameters {
			if strings.EqualFold(p.Name, idempotencyKey) {
				declares++
				if p.In != "header" || !p.Required {
					t.Errorf("%s: in %s, required %v", name, p.In, p.Required)
				}
			}
		}
		if (declares == 1) != (rt.effect == keyed) || declares > 1 {
			t.Errorf("%s declares the header %d times", name, declares)
		}
	}
	if present != len(keyedWork) {
		t.Errorf("%d operations are keyed", present)
	}
}

// TestKeyedRoutesAreDescribed: what the document says of a keyed route, which
// the table may not have.
func TestKeyedRoutesAreDescribed(t *testing.T) {
	op := describeRoute(newRegistry(), route{method: "POST", path: "/x", effect: keyed, body: jsonBody(1 << 10), doc: operation{
		request: api.Nothing{},
		replies: []reply{{status: 200, doc: "A repeat.", body: api.Nothing{}, replayed: true}},
		errors:  []api.Spec{api.LookupStatus(api.CodeValidationFailed, http.StatusConflict)},
	}})
	if op.Parameters[0].Name != "Idempotency-Key" || !op.Parameters[0].Required {
		t.Errorf("parameters %+v", op.Parameters[0])
	}
	if op.Responses["200"].Headers["Idempotency-Replayed"] == nil {
		t.Error("a replay does not say so")
	}
	if got := op.Responses["409"]; got == nil || !strings.HasPrefix(got.Description, "`validation_failed`: the Idempotency-Key") {
		t.Errorf("409: %+v", got)
	}
	if got := op.Responses["422"]; got == nil || strings.Contains(got.Description, "already used") {
		t.Errorf("422: %+v", got)
	}
}

// TestMethodsAndEffects: what GET does is read, and only a few POSTs do.
func TestMethodsAndEffects(t *testing.T) {
	for _, rt := range routes() {
		if rt.method == "GET" && rt.effect != reads {
			t.Errorf("GET %s changes something", rt.path)
		}
		if rt.effect == takesIn && !strings.HasPrefix(rt.path, "/v1/") {
			t.Errorf("%s is no intake", rt.path)
		}
		if rt.effect == reads && rt.method != "GET" && !strings.HasSuffix(rt.path, "/query") && !strings.HasSuffix(rt.path, "/alerts/preview") {
			t.Errorf("%s %s: does it only read?", rt.method, rt.path)
		}
	}
}

func TestTheDocumentNamesEveryCode(t *testing.T) {
	codes := newOpenAPI().Components.Schemas.Map()["ErrorBody"].Properties["code"].Enum
	for _, spec := range api.Catalogue {
		if !slices.Contains(codes, any(string(spec.Code))) {
			t.Errorf("%s is missing", spec.Code)
		}
	}
}

// TestEnvelopeIsAsDocumented holds real refusals against the schema.
func TestEnvelopeIsAsDocumented(t *testing.T) {
	b := setup(t)
	doc := newOpenAPI()
	schema := schemaOfValue(doc.Components.Schemas, api.Error{})
	for _, q := range []request{
		{method: "GET", path: "/nothing"},
		{method: "PUT", path: "/v1/track"},
		{path: "/v1/track"},
		{path: "/v1/track", secret: "server", body: "{"},
		{path: queryPath, secret: "member", body: `{"type":"slow"}`},
		{path: "/v1/track", secret: "server", body: strings.Repeat(" ", trackLimit+1)},
	} {
		r := b.do(t, q)
		var v any
		if err := json.Unmarshal([]byte(r.body), &v); err != nil {
			t.Fatal(err)
		}
		var result huma.ValidateResult
		huma.Validate(doc.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &result)
		if len(result.Errors) > 0 {
			t.Errorf("%+v: %s: %v", q, r.body, result.Errors)
		}
	}
}
