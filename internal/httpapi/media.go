package httpapi

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// body says what a route reads.
type body struct {
	// limit is the most it may hold, inflated; 0 if the route reads none.
	limit int
	// plain says that text/plain is taken for JSON: a beacon sends it, since
	// it needs no preflight.
	plain bool
	// yaml says that YAML is read as well as JSON.
	yaml bool
	// key is how a keyed route treats its Idempotency-Key; nil on others.
	key *idempotency.Policy
	// invalid is the code of a body that is JSON and is refused by its schema;
	// validation_failed if empty.
	invalid api.Code
}

func beacon(limit int) body   { return body{limit: limit, plain: true} }
func jsonBody(limit int) body { return body{limit: limit} }

// under is the body of a keyed route, whose key is treated as p says.
func (b body) under(p *idempotency.Policy) body {
	b.key = p
	return b
}

// refusedAs is a body that is refused with a code of its own if it is not valid.
func (b body) refusedAs(code api.Code) body { //nolint:unparam // at a route it says with which code
	b.invalid = code
	return b
}

// orYAML is a body that may be YAML, as its Content-Type says.
func (b body) orYAML() body {
	b.yaml = true
	return b
}

// yamlKinds are the content types of YAML.
var yamlKinds = []string{"application/yaml", "text/yaml"}

// isYAML reports whether a body that [checkMedia] has let through is YAML.
func isYAML(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && slices.Contains(yamlKinds, kind)
}

// encoding is how a body is coded in transit.
type encoding string

const (
	identity  encoding = ""
	gzipped   encoding = "gzip"
	zstandard encoding = "zstd"
)

// takes reports whether a route reads bodies of a kind.
func (b body) takes(kind string) bool {
	return kind == "application/json" || (b.plain && kind == "text/plain") || (b.yaml && slices.Contains(yamlKinds, kind))
}

// kinds are those that a route reads, in words.
func (b body) kinds() string {
	switch {
	case b.plain:
		return "application/json, text/plain or absent"
	case b.yaml:
		return "application/json, application/yaml, text/yaml or absent"
	default:
		return "application/json or absent"
	}
}

// checkMedia refuses content types that are not JSON in UTF-8, or what else the
// route reads.
func checkMedia(h http.Header, b body) error {
	values := h["Content-Type"]
	if len(values) == 0 || (len(values) == 1 && (values[0] == "" || values[0] == "application/json")) {
		return nil
	}
	if len(values) > 1 {
		return unsupported("send one Content-Type")
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil {
		return unsupported("the Content-Type is malformed")
	}
	if !b.takes(kind) {
		return unsupported("the Content-Type must be " + b.kinds())
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return unsupported("the charset must be utf-8")
	}
	return nil
}

// contentEncoding returns how a body is coded. More than one coding, or one
// that is not read here, is refused.
func contentEncoding(h http.Header) (encoding, error) {
	values := h["Content-Encoding"]
	if len(values) == 0 {
		return identity, nil
	}
	if len(values) == 1 {
		switch strings.ToLower(strings.TrimSpace(values[0])) {
		case "", "identity":
			return identity, nil
		case "gzip", "x-gzip":
			return gzipped, nil
		case "zstd":
			return zstandard, nil
		}
	}
	return identity, unsupported("the Content-Encoding must be gzip, zstd or identity, and only one")
}

func unsupported(message string) error {
	return fault.New(api.CodeUnsupportedMediaType, "%s", message)
}
