package http

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// urlRule says what a URL must be.
const urlRule = "url is an http or https URL of at most 8000 bytes, without user, password and fragment"

// maxURL is how long a URL may be with its parameters, in bytes.
const maxURL = 8000

// contentType says what a body is, by its name in lower case.
const contentType = "content-type"

func validURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// request evaluates what the step says: what is sent, and what of it is kept
// for traces.
func (p *program) request(r *step.Run) (*Request, map[string]any, error) {
	q := &Request{Method: p.method, Headers: map[string]string{}}
	var err error
	if q.URL, err = p.address(r.Scope); err != nil {
		return nil, nil, err
	}
	if p.headers != nil {
		if err := p.addHeaders(q, r.Scope); err != nil {
			return nil, nil, err
		}
	}
	traced := map[string]any{"method": q.Method, "url": shownURL(q.URL)}
	if p.body != nil {
		body, err := eval("body", p.body, r.Scope)
		if err != nil {
			return nil, nil, err
		}
		if q.Body, err = encodeBody(body, q.Headers); err != nil {
			return nil, nil, err
		}
		traced["body"] = body
	}
	traced["headers"] = shownRequest(q.Headers)
	q.Headers[idempotencyKey] = r.Key
	return q, traced, nil
}

// address is the URL with its parameters.
func (p *program) address(scope *template.Scope) (string, error) {
	value, err := eval("url", p.url, scope)
	if err != nil {
		return "", err
	}
	text, _ := value.(string)
	if !validURL(text) {
		return "", step.Failed(nil, urlRule)
	}
	if p.query == nil {
		return text, nil
	}
	query, err := eval("query", p.query, scope)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", step.Failed(err, urlRule)
	}
	added, err := parameters(query)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" && added != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += added
	if text = u.String(); len(text) > maxURL {
		return "", step.Failed(nil, urlRule)
	}
	return text, nil
}

// parameters writes the members of query, in the order of their names.
func parameters(query any) (string, error) {
	values := url.Values{}
	members, _ := query.(map[string]any) // the schema allows no other, nor an expression
	for name, value := range members {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			if one == nil {
				continue
			}
			text, ok := textOf(one)
			if !ok {
				return "", step.Failed(nil, fmt.Sprintf("query: %s must be a text, a number, true, false, null, or a list of them", name))
			}
			values.Add(name, text)
		}
	}
	return values.Encode(), nil
}

func (p *program) addHeaders(q *Request, scope *template.Scope) error {
	headers, err := eval("headers", p.headers, scope)
	if err != nil {
		return err
	}
	members, _ := headers.(map[string]any) // the schema allows no other, nor an expression
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text, ok := textOf(members[name])
		if !ok || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return step.Failed(nil, fmt.Sprintf("headers: %s must be a text without control characters, a number, true or false", name))
		}
		q.Headers[strings.ToLower(name)] = text
	}
	return nil
}

// textOf is a scalar as text.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool, int64, float64:
		encoded, err := template.Encode(v)
		return string(encoded), err == nil
	default:
		return "", false
	}
}

// encodeBody writes a body, and says in the headers that it is JSON if nobody
// says what it is.
func encodeBody(body any, headers map[string]string) ([]byte, error) {
	if headers[contentType] == "" {
		headers[contentType] = "application/json"
	}
	if isJSON(headers[contentType]) {
		encoded, err := template.Encode(body)
		if err != nil {
			return nil, step.Failed(err, fmt.Sprintf("body: %v", err))
		}
		return encoded, nil
	}
	text, ok := body.(string)
	if !ok {
		return nil, step.Failed(nil, "body must be a text, since its Content-Type is none of JSON")
	}
	return []byte(text), nil
}

// isJSON reports whether a media type is one of JSON.
func isJSON(text string) bool {
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}

func eval(name string, t *template.Template, scope *template.Scope) (any, error) {
	value, err := t.Eval(scope)
	if err != nil {
		return nil, step.Failed(err, fmt.Sprintf("%s: %v", name, err))
	}
	return value, nil
}

func encode(value any) (json.RawMessage, error) {
	encoded, err := template.Encode(value)
	if err != nil {
		return nil, step.Failed(err, fmt.Sprintf("the answer cannot be kept: %v", err))
	}
	return encoded, nil
}
