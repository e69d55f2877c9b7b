package actionpulse_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// document is the API document, and who finds operations in it.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(text)
})

// forOthers are operations that no program calls: pages for people, and what a
// monitoring system reads.
var forOthers = []string{"getDocs", "invitePage", "getMetrics"}

// documented returns the ids of the operations that the client has methods
// for.
func documented(t *testing.T) []string {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, path := range doc.Paths.Map() {
		for _, operation := range path.Operations() {
			if !slices.Contains(forOthers, operation.OperationID) {
				ids = append(ids, operation.OperationID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// recorder is a server that notes which operations it was asked for, and what
// is wrong with the requests by the API document.
type recorder struct {
	*httptest.Server
	router routers.Router

	mu     sync.Mutex
	asked  []string
	faults []string
}

// finder finds the operations of requests.
var finder = sync.OnceValues(func() (routers.Router, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc, openapi3.IsOpenAPI31OrLater())
})

func record(t *testing.T) *recorder {
	t.Helper()
	router, err := finder()
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{router: router}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP answers every request with as little as the client can read.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	operation, err := r.check(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, operation)
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s %s: %v", request.Method, request.RequestURI, err))
	}
	answer := answerTo(operation)
	if operation == "followExecution" {
		answer = "event: execution\ndata: {\"execution\":{\"status\":\"succeeded\"}}\n\n"
	}
	_, _ = io.WriteString(w, answer)
}

// check finds the operation of a request and validates all of it: parameters,
// headers, content type and body.
func (r *recorder) check(request *http.Request) (string, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "", err
	}
	asked := request.Clone(request.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	asked.URL.Path, asked.URL.RawPath = asked.URL.EscapedPath(), "" // a name in it may hold a slash
	route, parameters, err := r.router.FindRoute(asked)
	if err != nil {
		return "", err
	}
	operation := route.Operation.OperationID
	for name := range asked.URL.Query() {
		if route.Operation.Parameters.GetByInAndName("query", name) == nil {
			return operation, fmt.Errorf("there is no parameter %s", name)
		}
	}
	if strings.Contains(request.Header.Get("Content-Type"), "yaml") {
		return operation, nil // the library reads JSON only
	}
	return operation, openapi3filter.ValidateRequest(request.Context(), &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: authenticated},
	})
}

// authenticated demands a credential wherever the document does.
func authenticated(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if input.RequestValidationInput.Request.Header.Get("Authorization") == "" {
		return fmt.Errorf("%s: there is no credential", input.SecuritySchemeName)
	}
	return nil
}
