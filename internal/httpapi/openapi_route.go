package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
)

// idempotencyKey is the header that keyed routes read, and no others.
const idempotencyKey = "Idempotency-Key"

// codesExtension lists the codes of an answer for programs that read the
// document.
const codesExtension = "x-error-codes"

func describeRoute(r huma.Registry, rt route) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.doc.id, Tags: []string{string(rt.doc.tag)},
		Summary: rt.doc.summary, Description: describeOperation(rt), Security: rt.access.security(),
		Responses: map[string]*huma.Response{},
	}
	for _, p := range rt.doc.params {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: p.in, Description: p.doc, Required: p.required, Schema: &p.schema})
	}
	if rt.effect == keyed {
		op.Parameters = append(op.Parameters, keyParam())
	}
	if rt.body.limit > 0 {
		op.RequestBody = describeBody(r, rt)
	}
	for _, reply := range rt.doc.replies {
		op.Responses[statusText(reply.status)] = describeReply(r, reply)
	}
	refusals := rt.refusals()
	for _, status := range statuses(refusals) {
		op.Responses[statusText(status)] = describeRefusals(r, status, refusals)
	}
	return op
}

// describeOperation adds the role that is needed.
func describeOperation(rt route) string {
	text := rt.doc.description
	for name, rank := range roles {
		if rank == rt.access.role {
			text = strings.TrimSpace(text + " Needs the role " + name + " or a higher one.")
		}
	}
	return text
}

func keyParam() *huma.Param {
	least := 1
	return &huma.Param{
		Name: idempotencyKey, In: "header", Required: true,
		Description: "Names the unit of work. The same on every attempt: compose it from what the work is, such as a commit or a job's id.",
		Schema:      &huma.Schema{Type: huma.TypeString, MinLength: &least},
	}
}

func describeBody(r huma.Registry, rt route) *huma.RequestBody {
	media := &huma.MediaType{Schema: schemaOfValue(r, rt.doc.request)}
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": media}}
	if rt.body.plain {
		body.Content["text/plain"] = media
	}
	if rt.body.yaml {
		for _, kind := range yamlKinds {
			body.Content[kind] = media
		}
	}
	body.Description = "At most " + sizeText(rt.body.limit) + ", inflated."
	return body
}

func sizeText(n int) string {
	const kib, mib = 1 << 10, 1 << 20
	if n%mib == 0 {
		return statusText(n/mib) + " MiB"
	}
	return statusText(n/kib) + " KiB"
}

func describeReply(r huma.Registry, p reply) *huma.Response {
	response := &huma.Response{Description: p.doc, Headers: headerRefs(headerRequestID)}
	if p.replayed {
		response.Headers = headerRefs(headerRequestID, headerReplayed)
	}
	if p.body == nil {
		return response
	}
	kind := p.kind
	if kind == "" {
		kind = "application/json"
	}
	response.Content = map[string]*huma.MediaType{kind: {Schema: schemaOfValue(r, p.body)}}
	return response
}

// describeRefusals is the answer with a status that is among some refusals.
func describeRefusals(r huma.Registry, status int, refusals []api.Spec) *huma.Response {
	var text strings.Builder
	var names []string
	headers := []string{headerRequestID, headerShouldRetry}
	for _, spec := range refusals {
		if spec.Status != status {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString("`" + string(spec.Code) + "`: " + spec.When + ".")
		names = append(names, string(spec.Code))
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		headers = append(headers, headerRetryAfter)
	}
	return &huma.Response{
		Description: text.String(), Headers: headerRefs(headers...),
		Content:    map[string]*huma.MediaType{"application/json": {Schema: schemaOfValue(r, api.Error{})}},
		Extensions: map[string]any{codesExtension: names},
	}
}

// refusals are all that a route can answer with: those that follow from its
// access, its path and its body, and its own. They are in the catalogue's
// order.
func (rt route) refusals() []api.Spec {
	possible := slices.Concat(codes(api.CodeInternal), rt.doc.errors)
	if !rt.access.open {
		possible = append(possible, codes(
			api.CodeUnauthenticated, api.CodeForbidden, api.CodeRateLimited, api.CodeUnavailable,
		)...)
		if !rt.access.suspended {
			possible = append(possible, api.Lookup(api.CodePaymentRequired))
		}
	}
	if slices.Contains(rt.access.kinds, credential.Access) {
		possible = append(possible, api.Lookup(api.CodeTokenExpired))
	}
	if rt.body.limit > 0 {
		possible = append(possible, codes(
			api.CodeInvalidJSON, api.CodeRequestTimeout, api.CodePayloadTooLarge, api.CodeUnsupportedMediaType,
			cmp.Or(rt.body.invalid, api.CodeValidationFailed), api.CodeUnavailable,
		)...)
	}
	for _, p := range rt.doc.params {
		switch p.in {
		case "path":
			possible = append(possible, api.Lookup(api.CodeNotFound))
		case "query":
			possible = append(possible, api.Lookup(api.CodeValidationFailed))
		}
	}
	var list []api.Spec
	for _, spec := range api.Catalogue {
		if slices.Contains(possible, spec) {
			list = append(list, spec)
		}
	}
	return list
}
