package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

var openAPIOperation = operation{
	id: "getOpenAPI", tag: tagServer, summary: "This document, as JSON",
	replies: append(
		replyOK("The OpenAPI 3.1 document.", map[string]any{}),
		reply{status: http.StatusNotModified, doc: "It is the one that If-None-Match names."},
	),
}

var docsOperation = operation{
	id: "getDocs", tag: tagServer, summary: "This document, as a page to read",
	replies: []reply{
		{status: http.StatusOK, doc: "The page.", body: "", kind: "text/html"},
		{status: http.StatusNotModified, doc: "It is the one that If-None-Match names."},
	},
}

// documents are what is served about the API itself.
type documents struct {
	openAPI, page, invite, flowSchema document
}

// document is a text that does not change while the process lives.
type document struct {
	kind, tag string
	body      []byte
}

// ownDocuments makes those that follow from this package alone, once a process:
// they take a noticeable part of a start.
var ownDocuments = sync.OnceValues(func() (documents, error) {
	api := newOpenAPI()
	text, err := openAPIJSON(api)
	if err != nil {
		return documents{}, fmt.Errorf("write the API document: %w", err)
	}
	page, err := renderDocs(api)
	if err != nil {
		return documents{}, fmt.Errorf("render the API document: %w", err)
	}
	invite, err := renderInvite()
	if err != nil {
		return documents{}, fmt.Errorf("render the page of invitations: %w", err)
	}
	return documents{
		invite:  newDocument("text/html; charset=utf-8", invite),
		openAPI: newDocument("application/json", text),
		page:    newDocument("text/html; charset=utf-8", page),
	}, nil
})

func newDocuments(flowSchema []byte) (documents, error) {
	d, err := ownDocuments()
	d.flowSchema = newDocument("application/json", flowSchema)
	return d, err
}

// openAPIJSON writes the document with its parts in the order in which they
// are read. Within a part, names are sorted.
func openAPIJSON(api *huma.OpenAPI) ([]byte, error) {
	text, err := json.Marshal(api)
	if err != nil {
		return nil, err
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	separator := "{"
	for _, name := range []string{"openapi", "info", "servers", "tags", "paths", "components"} {
		fmt.Fprintf(&out, "%s%q:%s", separator, name, parts[name])
		separator = ","
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}

func newDocument(kind string, body []byte) document {
	sum := sha256.Sum256(body)
	return document{kind: kind, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body: body}
}

// openAPI answers with the API document.
func (s *service) openAPI(x *exchange) (answer, error) {
	return s.documents.openAPI.answer(x), nil
}

// docs answers with the page that shows the API document. It runs no scripts,
// and nothing on it comes from elsewhere.
func (s *service) docs(x *exchange) (answer, error) {
	setPagePolicy(x, docsPolicy)
	return s.documents.page.answer(x), nil
}

// setPagePolicy says what a page may do.
func setPagePolicy(x *exchange, policy []string) {
	h := x.w.Header()
	h["Content-Security-Policy"] = policy
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Referrer-Policy"] = []string{"no-referrer"}
}

// answer says 304 to who has the document already.
func (d document) answer(x *exchange) answer {
	h := x.w.Header()
	h["Etag"] = []string{d.tag}
	h["Cache-Control"] = []string{"no-cache"}
	if matches(x.r.Header["If-None-Match"], d.tag) {
		return answer{status: http.StatusNotModified}
	}
	return answer{status: http.StatusOK, contentType: d.kind, body: d.body}
}

// matches reports whether an If-None-Match names a tag.
func matches(headers []string, tag string) bool {
	list := strings.Split(strings.Join(headers, ","), ",")
	return slices.ContainsFunc(list, func(one string) bool {
		one = strings.TrimSpace(one)
		return one == "*" || strings.TrimPrefix(one, "W/") == tag
	})
}
