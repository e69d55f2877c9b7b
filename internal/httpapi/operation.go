package httpapi

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
)

// effect says what a request of a route does, and so what a repeat of it could
// do.
type effect uint8

// The effects. The zero value is the one that is repeated least.
const (
	// mutates: it changes something and carries neither a key nor ids. When
	// its outcome is not known, the state is to be read before anything is
	// sent again.
	mutates effect = iota
	// reads: it changes nothing, whatever its method.
	reads
	// takesIn: it is an intake method, which may be repeated.
	takesIn
	// keyed: it has an Idempotency-Key, which makes a repeat harmless.
	keyed
)

// operation is what the API document says of a route, beyond what follows
// from its access, its body and its effect.
type operation struct {
	// id is the operationId: a verb and a noun in lower camel case.
	id string
	// tag is one of tags.
	tag tag
	// summary is a few words, description whole sentences.
	summary     string
	description string
	// params are the parameters in path and query.
	params []param
	// request is a value of the type that the body is decoded into; nil on
	// routes that read none.
	request any
	// replies are the answers that are not refusals.
	replies []reply
	// errors are the refusals that do not follow from the route.
	errors []api.Spec
}

// reply is an answer that is no refusal.
type reply struct {
	status int
	doc    string
	// body is a value of the type that is sent; nil if there is no body.
	body any
	// kind is application/json if empty.
	kind string
	// replayed says that the answer is to a repeat and says so in a header.
	replayed bool
}

// Short forms of replies.
func replyOK(doc string, body any) []reply {
	return []reply{{status: http.StatusOK, doc: doc, body: body}}
}

func replyCreated(doc string, body any) []reply {
	return []reply{{status: http.StatusCreated, doc: doc, body: body}}
}
func replyNothing(doc string) []reply { return []reply{{status: http.StatusNoContent, doc: doc}} }

// codes are the rows of the catalogue of these codes, with their usual status.
func codes(list ...api.Code) []api.Spec {
	specs := make([]api.Spec, len(list))
	for i, code := range list {
		specs[i] = api.Lookup(code)
	}
	return specs
}

// alternatives stand for one of several types. If they all have a member
// "type", that says which.
type alternatives []any

// param is a parameter of a request outside its body.
type param struct {
	// in is "path", "query" or "header".
	in       string
	name     string
	doc      string
	required bool
	schema   huma.Schema
}

// idParam is an id in the path.
func idParam(name, doc string) param {
	return param{in: "path", name: name, doc: doc, required: true, schema: huma.Schema{Type: huma.TypeString, Format: "uuid"}}
}

// pathText is a text of the caller's in the path.
func pathText(name, doc string) param {
	least := 1
	return param{in: "path", name: name, doc: doc, required: true, schema: huma.Schema{Type: huma.TypeString, MinLength: &least}}
}

// textParam is an optional text in the query string.
func textParam(name, doc string) param {
	return param{in: "query", name: name, doc: doc, schema: huma.Schema{Type: huma.TypeString}}
}

// requiredText is a text that the query string must hold.
func requiredText(name, doc string) param {
	p := textParam(name, doc)
	p.required = true
	return p
}

// pageParams are those that [exchange.page] reads, after others.
func pageParams(others ...param) []param {
	least, most := float64(1), float64(maxPage)
	return append(others, param{
		in: "query", name: "limit", doc: "How many items, " + strconv.Itoa(defaultPage) + " if absent.",
		schema: huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most, Default: defaultPage},
	}, param{
		in: "query", name: "cursor", doc: "next_cursor of the answer before, for the items after those.",
		schema: huma.Schema{Type: huma.TypeString},
	})
}
