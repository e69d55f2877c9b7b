package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// document is the API document as it is committed, and who finds operations in
// it.
var document = sync.OnceValues(func() (routers.Router, error) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		allowNull(schema)
	}
	router, err := legacy.NewRouter(doc, openapi3.IsOpenAPI31OrLater())
	// Of a 3.1 document the library compiles each schema again for each answer,
	// a tenth of all the time that these tests take, only to walk it itself in the
	// end. It does so at once when it thinks that the document is older.
	doc.OpenAPI = "3.0.3"
	return router, err
})

// allowNull lets members be null that may have any value, which the library
// does not although the document does.
func allowNull(schema *openapi3.SchemaRef) {
	for _, property := range schema.Value.Properties {
		for _, one := range []*openapi3.SchemaRef{property, property.Value.AdditionalProperties.Schema} {
			if one != nil && one.Ref == "" && one.Value.Type == nil && len(one.Value.AllOf)+len(one.Value.AnyOf)+len(one.Value.OneOf) == 0 {
				one.Value.Type = &openapi3.Types{"null", "boolean", "number", "string", "array", "object"}
			}
		}
	}
}

// asDocumented demands that an answer is one that the API document allows for
// the operation: its status, its content type and its body. What is not in the
// document is not_found or method_not_allowed.
func asDocumented(t *testing.T, response *http.Response, content []byte) {
	t.Helper()
	// What was read off a bare connection, or asked for by a text of its own
	// making, has no URL to find the operation by.
	if response.Request == nil || response.Request.URL.Opaque != "" {
		return
	}
	if err := checkAnswer(t, response, content); err != nil {
		t.Errorf("%s %s: not as the API document says: %v", response.Request.Method, response.Request.URL.Path, err)
	}
}

func checkAnswer(t *testing.T, response *http.Response, content []byte) error {
	t.Helper()
	router, err := document()
	if err != nil {
		t.Fatal(err)
	}
	asked := response.Request.Clone(t.Context())
	asked.URL.Host, asked.URL.Scheme, asked.Host = "", "", ""
	asked.URL.Path, asked.URL.RawPath = asked.URL.EscapedPath(), "" // a name in it may hold a slash
	route, parameters, err := router.FindRoute(asked)
	if err != nil {
		if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed {
			return nil
		}
		return fmt.Errorf("%w, but the answer is %d", err, response.StatusCode)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: parameters, Route: route},
		Status:                 response.StatusCode, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		input.SetBodyBytes(content)
	} else {
		input.Options.ExcludeResponseBody = true
	}
	input.Options.WithCustomSchemaErrorFunc(func(e *openapi3.SchemaError) string {
		return "/" + strings.Join(e.JSONPointer(), "/") + ": " + e.Reason
	})
	return openapi3filter.ValidateResponse(t.Context(), input)
}

// TestTheDocumentIsEnforced: a check that finds nothing wrong with anything
// would be none.
func TestTheDocumentIsEnforced(t *testing.T) {
	t.Parallel()
	const one = `{"id":"01980000-0000-7000-8000-000000000001","name":"x","created_at":"2024-01-01T00:00:00.000Z",
		"retention":{"events_days":null,"replays_days":7,"in_force":{"events_days":null,"replays_days":7}}}`
	for _, c := range []struct {
		path    string
		status  int
		content string
		allowed bool
	}{
		{"/api/v1/projects/01980000-0000-7000-8000-000000000001", 200, one, true},
		{"/api/v1/projects/01980000-0000-7000-8000-000000000001", 200, strings.Replace(one, `"x"`, "1", 1), false},
		{"/api/v1/projects/01980000-0000-7000-8000-000000000001", 200, strings.Replace(one, `"name"`, `"nam"`, 1), false},
		{"/api/v1/projects/01980000-0000-7000-8000-000000000001", 201, one, false},
		{"/api/v1/projects/01980000-0000-7000-8000-000000000001", 404, `{"error":"none"}`, false},
		{"/nowhere", 200, one, false},
		{"/nowhere", 404, `{}`, true},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1"+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"a"}, "X-Should-Retry": {"false"}}
		err = checkAnswer(t, &http.Response{Request: request, StatusCode: c.status, Header: header}, []byte(c.content))
		if (err == nil) != c.allowed {
			t.Errorf("%s, %d %s: %v", c.path, c.status, c.content, err)
		}
	}
}
