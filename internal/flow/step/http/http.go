package http

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Type implements [step.Type].
type Type struct{ caller Caller }

var _ step.Type = Type{}

// New returns the type.
func New(c Caller) Type { return Type{caller: c} }

// Name implements [step.Type].
func (Type) Name() string { return "http" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Makes an HTTP call: steps.<id> has status, headers, body and encoding. No redirect is followed.",
		"properties": {
			"method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET"},
			"url": {"type": "string", "minLength": 1, "description": "An http or https URL."},
			"headers": {
				"type": "object", "maxProperties": 50, "description": "Further headers.",
				"propertyNames": {"pattern": "^[!#$%&'*+.^_|~0-9A-Za-z-]+$"},
				"additionalProperties": {"type": ["string", "number", "boolean"]}
			},
			"query": {
				"type": "object", "maxProperties": 100,
				"description": "Parameters that are added to the URL. A list is sent as one after the other, null is not sent.",
				"additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]}
			},
			"body": {"description": "Any JSON. It is sent as JSON, or, if it is a text and headers has a Content-Type that is none of JSON, as it is."},
			"success": {
				"type": "array", "minItems": 1, "maxItems": 50, "items": {"type": "integer", "minimum": 200, "maximum": 599},
				"description": "The statuses that are a success; any from 200 to 299 by default."
			}
		},
		"required": ["url"],
		"additionalProperties": false
	}`)
}

// reserved are the headers that a flow must not set: those that follow from
// the request, those of the connection, and the derived key. Many servers take
// a name with _ for the one with -.
var reserved = []string{
	"connection", "content-length", "expect", "host", idempotencyKey, "keep-alive", "proxy-authorization", "proxy-connection", "te",
	"trailer", "transfer-encoding", "upgrade",
}

// Compile implements [step.Type].
func (t Type) Compile(c *step.Compiler) (step.Program, error) {
	p := &program{caller: t.caller, method: "GET"}
	for _, member := range []struct {
		name string
		into **template.Template
	}{{"url", &p.url}, {"headers", &p.headers}, {"query", &p.query}, {"body", &p.body}} {
		var err error
		if *member.into, err = c.Template(member.name); err != nil {
			return nil, err
		}
	}
	if method, ok := c.Members["method"].(string); ok {
		p.method = method
	}
	if statuses, ok := c.Members["success"].([]any); ok {
		for _, status := range statuses {
			n, _ := status.(int64)
			p.success = append(p.success, int(n))
		}
	}
	return p, p.check(c)
}

// check refuses what the schema cannot.
func (p *program) check(c *step.Compiler) error {
	if p.body != nil && (p.method == "GET" || p.method == "HEAD") {
		return step.Refuse(c.Path+".body", "a %s has no body", p.method)
	}
	headers, _ := c.Members["headers"].(map[string]any)
	seen := map[string]bool{}
	for name := range headers {
		lower := strings.ToLower(name)
		if slices.Contains(reserved, strings.ReplaceAll(lower, "_", "-")) {
			return step.Refuse(c.Path+".headers."+name, "this header is set by the server")
		}
		if seen[lower] {
			return step.Refuse(c.Path+".headers", "two headers have the name %s", lower)
		}
		seen[lower] = true
	}
	if value, ok := p.url.Literal(); ok {
		if text, _ := value.(string); !validURL(text) {
			return step.Refuse(c.Path+".url", "%s", urlRule)
		}
	}
	return nil
}

type program struct {
	caller                    Caller
	method                    string
	url, headers, query, body *template.Template
	// success is nil for any 2xx.
	success []int
}

// Effect implements [step.Program].
func (*program) Effect() step.Effect { return step.Calls }

// Run implements [step.Program].
func (p *program) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	request, traced, err := p.request(r)
	if err != nil {
		return step.Result{}, err
	}
	call := &step.Call{Kind: "http"}
	if call.Request, err = template.Encode(traced); err != nil {
		return step.Result{}, step.Failed(err, fmt.Sprintf("the request cannot be kept: %v", err))
	}
	response, err := p.caller.Call(ctx, request)
	if err != nil {
		return step.Result{}, failed(err, call)
	}
	return p.result(response, call, r.Now())
}

// succeeds says whether a status is a success.
func (p *program) succeeds(status int) bool {
	if p.success == nil {
		return status >= 200 && status <= 299
	}
	return slices.Contains(p.success, status)
}
