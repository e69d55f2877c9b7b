package api_test

import (
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestOpenAPIIsValid reads the committed document with a library that had no
// part in writing it.
func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := validate(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Servers[0].URL != "/" || doc.Paths.Len() == 0 {
		t.Errorf("version %s, servers %v, %d paths", doc.OpenAPI, doc.Servers, doc.Paths.Len())
	}
	for _, broken := range []string{
		strings.ReplaceAll(string(text), "in: path", "in: nowhere"),
		strings.ReplaceAll(string(text), "type: string", "type: text"),
		strings.ReplaceAll(string(text), "schemas/Error", "schemas/Nowhere"),
	} {
		if _, err := validate(t, broken); err == nil {
			t.Error("a broken document is valid: the check checks nothing")
		}
	}
}

func validate(t *testing.T, text string) (*openapi3.T, error) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableMultiError())
}
