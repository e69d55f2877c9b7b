package httpapi

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2/yaml"

	"github.com/actionpulse/actionpulse/api"
)

var update = flag.Bool("update", false, "write the generated files in api/ anew")

// wantFile compares what is generated with the file that is committed.
func wantFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil || string(committed) != string(text) {
		t.Errorf("%s is not what would be generated (%v); run: make generate", path, err)
	}
}

func TestOpenAPIFile(t *testing.T) {
	text, err := openAPIJSON(newOpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := yaml.Convert(&out, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	wantFile(t, "../../api/openapi.yaml", out.Bytes())
}

func TestErrorsFile(t *testing.T) {
	wantFile(t, "../../api/errors.md", []byte(errorsMarkdown()))
}

const errorsHead = `# Error codes

Generated from ` + "`Catalogue` in [code.go](code.go)" + ` by ` + "`make generate`" + `. What the columns mean is in
[error-codes.md](../docs/guides/error-codes.md).

| status | code | returned when | what to do | retryable | X-Should-Retry | key |
|---|---|---|---|---|---|---|
`

const rejectionsHead = `
## Rejections of intake

An item at fault is listed in ` + "`rejected`" + ` of a 202, with one of these codes, and does not spoil the others. The first that
applies, in this order, is the one reported; a repeat gets the same. [Sending events](../docs/guides/sending-events.md)
says what each demands.

`

func errorsMarkdown() string {
	var b strings.Builder
	b.WriteString(errorsHead)
	for _, s := range api.Catalogue {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s | %s | %s |\n",
			s.Status, s.Code, s.When, s.Do, yes(s.Retryable), yes(s.ShouldRetry), keyText(s.Key))
	}
	b.WriteString(rejectionsHead)
	for _, code := range api.RejectCodes {
		fmt.Fprintf(&b, "- `%s`\n", code)
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func keyText(k api.KeyFate) string {
	if k == "" {
		return "–"
	}
	return string(k)
}
