package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's template and style
	"encoding/base64"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
)

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS string

// docsPolicy lets the page have its own style and nothing else.
var docsPolicy = []string{
	"default-src 'none'; style-src 'sha256-" + hashOf(docsCSS) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

// hashOf is how a policy names a style or script.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// docsPage is what the template shows.
type docsPage struct {
	Title, Description string
	Style              template.CSS
	Groups             []docsGroup
	Codes              []api.Spec
}

type docsGroup struct {
	Name, Doc  string
	Operations []docsEntry
}

// docsEntry is one operation.
type docsEntry struct {
	*huma.Operation

	Credentials string
	Request     []docsTable
	Replies     []docsReply
	Refusals    []docsReply
}

// docsReply is one status.
type docsReply struct {
	Status, Kind, Doc string
	Codes             []string
	Tables            []docsTable
}

// renderDocs makes the page of a document.
func renderDocs(doc *huma.OpenAPI) ([]byte, error) {
	page := docsPage{
		Title: doc.Info.Title, Description: doc.Info.Description,
		Style: template.CSS(docsCSS), //nolint:gosec // a file of ours
		Codes: api.Catalogue,
	}
	for _, t := range doc.Tags {
		page.Groups = append(page.Groups, docsGroup{Name: t.Name, Doc: t.Description, Operations: entries(doc, t.Name)})
	}
	t, err := template.New("docs").Funcs(template.FuncMap{
		"anchor":     func(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") },
		"paragraphs": func(s string) []string { return strings.Split(s, "\n\n") },
		"typeOf":     typeName,
	}).Parse(docsHTML)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, page)
	return out.Bytes(), err
}

// entries are the operations with a tag, by path.
func entries(doc *huma.OpenAPI, tagName string) []docsEntry {
	var list []docsEntry
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && slices.Contains(op.Tags, tagName) {
				list = append(list, newEntry(doc.Components.Schemas, op))
			}
		}
	}
	return list
}

func newEntry(r huma.Registry, op *huma.Operation) docsEntry {
	e := docsEntry{Operation: op}
	var credentials []string
	for _, alternative := range op.Security {
		credentials = slices.AppendSeq(credentials, maps.Keys(alternative))
	}
	e.Credentials = strings.Join(credentials, ", ")
	if op.RequestBody != nil {
		e.Request = tables(r, op.RequestBody.Content["application/json"].Schema)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := op.Responses[status]
		one := docsReply{Status: status, Doc: response.Description}
		one.Codes, _ = response.Extensions[codesExtension].([]string)
		if one.Codes != nil {
			e.Refusals = append(e.Refusals, one)
			continue
		}
		for kind, media := range response.Content {
			one.Kind, one.Tables = kind, tables(r, media.Schema)
		}
		e.Replies = append(e.Replies, one)
	}
	return e
}

// typeName says in a word or two what a schema takes.
func typeName(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return "object"
	case s.Type == huma.TypeArray:
		return "list of " + typeName(s.Items)
	case len(s.Enum) > 0:
		return oneOf(s.Enum)
	case s.Type == "":
		return "any"
	}
	text := s.Type
	if s.Format != "" && s.Type == huma.TypeString {
		text = s.Format
	}
	text += bounds(s)
	if s.Nullable {
		text += " or null"
	}
	return text
}

func bounds(s *huma.Schema) string {
	switch {
	case s.Type == huma.TypeString:
		return counted(s.MinLength, s.MaxLength, "characters")
	case s.Minimum != nil && s.Maximum != nil:
		return " from " + plain(*s.Minimum) + " to " + plain(*s.Maximum)
	}
	return ""
}
