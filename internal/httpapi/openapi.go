package httpapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
)

// apiVersion is the version of the API, which is also in its paths.
const apiVersion = "1"

const apiDescription = `Every answer has an X-Request-Id: the caller's own, if the request had one of 1 to 128 visible ASCII characters. Every error has one shape, whose codes are never renamed. Times are RFC 3339; answers have UTC and milliseconds. Bodies are JSON in UTF-8, plain or encoded with gzip or zstd. Members that are not known are refused, except by intake, which ignores them.

A path that exists answers other methods with 405 method_not_allowed, any other path is 404 not_found.`

// newOpenAPI builds the API document from the routes. It panics on a route
// that cannot be described, which a test would have met.
func newOpenAPI() *huma.OpenAPI {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "ActionPulse", Version: apiVersion, Description: apiDescription, License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{
			Schemas: newRegistry(), SecuritySchemes: securitySchemes(), Headers: answerHeaders(),
		},
	}
	used := map[tag]bool{}
	for _, rt := range routes() {
		used[rt.doc.tag] = true
		doc.AddOperation(describeRoute(doc.Components.Schemas, rt))
	}
	for _, t := range tags {
		if used[t.name] {
			doc.Tags = append(doc.Tags, &huma.Tag{Name: string(t.name), Description: t.doc})
		}
	}
	enumerate(doc.Components.Schemas.Map())
	return doc
}

// enumerate lists the codes, which are constants of a Go type, and says what an
// amount is, which Go reads as any JSON, and that there may be no error, which
// the library cannot say of an object.
func enumerate(schemas map[string]*huma.Schema) {
	var known, rejections []any
	for _, spec := range api.Catalogue {
		if !slices.Contains(known, any(string(spec.Code))) {
			known = append(known, string(spec.Code))
		}
	}
	for _, code := range api.RejectCodes {
		rejections = append(rejections, string(code))
	}
	schemas["ErrorBody"].Properties["code"].Enum = known
	schemas["Rejection"].Properties["code"].Enum = rejections
	for _, name := range []string{"CreditMove", "CreditTopup", "NewHold", "HoldCapture", "NewReversal"} {
		schemas[name].Properties["amount"].OneOf = []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}}
	}
	for _, name := range []string{"Execution", "TraceStep"} {
		object := schemas[name].Properties
		object["error"] = &huma.Schema{OneOf: []*huma.Schema{object["error"], {Type: "null"}}}
	}
}

// credentialDocs says of each kind how it is called in the document, and what
// it is.
var credentialDocs = []struct {
	kind      credential.Kind
	name, doc string
}{
	{credential.Browser, "browserToken", "apb_…: public by nature, may be bound to origins."},
	{credential.Server, "serverKey", "aps_…: for servers that send events."},
	{credential.Legacy, "legacyKey", "Any string that was imported as a key."},
	{credential.Project, "projectKey", "apk_…: for keyed work of one project."},
	{credential.CI, "ciToken", "apc_…: for the deploy markers of one project."},
	{credential.Access, "accessToken", "apt_…: made by a login, speaks for a user with a role."},
}

// inURL is the scheme of a browser token that a beacon sends.
const inURL = "browserTokenInURL"

func securitySchemes() map[string]*huma.SecurityScheme {
	schemes := map[string]*huma.SecurityScheme{
		inURL: {Type: "apiKey", In: "query", Name: "key", Description: "A browser token in the URL, for beacons, which cannot set headers."},
	}
	for _, c := range credentialDocs {
		schemes[c.name] = &huma.SecurityScheme{Type: "http", Scheme: "bearer", Description: c.doc}
	}
	return schemes
}

// security lists the credentials of which one is needed.
func (a access) security() []map[string][]string {
	var list []map[string][]string
	for _, c := range credentialDocs {
		if !slices.Contains(a.kinds, c.kind) {
			continue
		}
		list = append(list, map[string][]string{c.name: {}})
		if c.kind == credential.Browser && a.keyInURL {
			list = append(list, map[string][]string{inURL: {}})
		}
	}
	return list
}

// Headers of answers.
const (
	headerRequestID   = "X-Request-Id"
	headerShouldRetry = "X-Should-Retry"
	headerRetryAfter  = "Retry-After"
	headerReplayed    = "Idempotency-Replayed"
)

func answerHeaders() map[string]*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return map[string]*huma.Param{
		headerRequestID:   {Description: "Names the request in the log.", Schema: text},
		headerShouldRetry: {Description: "Whether a stock client may simply repeat the request.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"true", "false"}}},
		headerRetryAfter:  {Description: "How many seconds to wait before a repeat.", Schema: &huma.Schema{Type: huma.TypeInteger}},
		headerReplayed:    {Description: "true if the answer is to a repeat.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"true"}}},
	}
}

func headerRefs(names ...string) map[string]*huma.Param {
	refs := make(map[string]*huma.Param, len(names))
	for _, name := range names {
		refs[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return refs
}

// schemaOfValue is the schema of a value's type, with references.
func schemaOfValue(r huma.Registry, v any) *huma.Schema {
	list, ok := v.(alternatives)
	if !ok {
		return r.Schema(reflect.TypeOf(v), true, "")
	}
	s := &huma.Schema{}
	kinds := map[string]string{}
	for _, one := range list {
		ref := r.Schema(reflect.TypeOf(one), true, "")
		s.OneOf = append(s.OneOf, ref)
		if kind := r.SchemaFromRef(ref.Ref).Properties["type"]; kind != nil && len(kind.Enum) == 1 {
			kinds[kind.Enum[0].(string)] = ref.Ref
		}
	}
	if len(kinds) == len(list) {
		s.Discriminator = &huma.Discriminator{PropertyName: "type", Mapping: kinds}
	}
	return s
}

// statuses are the statuses of some rows, in order.
func statuses(specs []api.Spec) []int {
	set := map[int]bool{}
	for _, spec := range specs {
		set[spec.Status] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func statusText(status int) string { return strconv.Itoa(status) }
