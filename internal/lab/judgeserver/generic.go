package judgeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Template is a text in which {{unit}} stands for the name of a unit of work:
// letters, digits and hyphens.
type Template string

// For returns the text for a unit.
func (t Template) For(unit string) string { return strings.ReplaceAll(string(t), "{{unit}}", unit) }

func (t Template) bytes() func(string) []byte {
	if t == "" {
		return nil
	}
	return func(unit string) []byte { return []byte(t.For(unit)) }
}

// Generic describes any operation that takes a key.
type Generic struct {
	// Method is that of the request; empty means POST.
	Method string
	// URL, Body, Other and Refused are as in [Endpoint]; Other and Refused may be
	// empty.
	URL, Body, Other, Refused Template
	// Header holds credentials and media type.
	Header      http.Header
	KeyHeader   string
	KeyOptional bool
	LongKey     int
	// ID is a JSON pointer to the object's id in a successful answer.
	ID string
	// CountURL answers a GET with the objects of a unit, and CountAt is a JSON
	// pointer in that answer to a list of them or to their number.
	CountURL Template
	CountAt  string
}

// Endpoint returns the operation.
func (g Generic) Endpoint() (Endpoint, error) {
	if g.URL == "" {
		return Endpoint{}, errors.New("the URL is missing")
	}
	if g.Method == "" {
		g.Method = http.MethodPost
	}
	e := Endpoint{
		Method: g.Method, URL: g.URL.For, Header: g.Header, KeyHeader: g.KeyHeader, KeyOptional: g.KeyOptional,
		LongKey: g.LongKey, Body: g.Body.bytes(), Other: g.Other.bytes(), Refused: g.Refused.bytes(),
	}
	if e.Body == nil {
		e.Body = func(string) []byte { return nil }
	}
	for _, pointer := range []string{g.ID, g.CountAt} {
		if pointer != "" && pointer[0] != '/' {
			return Endpoint{}, fmt.Errorf("%q is no JSON pointer: it begins with /", pointer)
		}
	}
	if g.ID != "" {
		e.Identify = identifyAt(g.ID)
	}
	if g.CountURL != "" {
		counter := newClient(Options{}.withDefaults())
		e.Count = func(ctx context.Context, unit string) (int, error) {
			a := counter.send(ctx, request{method: http.MethodGet, url: g.CountURL.For(unit), header: g.Header})
			return countAt(a, g.CountAt)
		}
	}
	return e, nil
}

// identifyAt returns a function that finds an id in an answer: a string or a
// number that is not empty.
func identifyAt(pointer string) func([]byte) (string, bool) {
	return func(body []byte) (string, bool) {
		value, ok := find(body, pointer)
		if !ok {
			return "", false
		}
		switch v := value.(type) {
		case string:
			return v, v != ""
		case json.Number:
			return v.String(), true
		}
		return "", false
	}
}

// countAt reads the number of objects from an answer: a number, or the length
// of a list. 404 means that there is none.
func countAt(a answer, pointer string) (int, error) {
	if a.err == nil && a.status == http.StatusNotFound {
		return 0, nil
	}
	if !a.succeeded() {
		return 0, errors.New(a.short())
	}
	value, ok := find(a.body, pointer)
	if !ok {
		return 0, fmt.Errorf("there is nothing at %q in %s", pointer, a.short())
	}
	switch v := value.(type) {
	case []any:
		return len(v), nil
	case json.Number:
		n, err := strconv.Atoi(v.String())
		return n, err
	}
	return 0, fmt.Errorf("what is at %q is neither a list nor a number: %s", pointer, a.short())
}

// find returns the value at a JSON pointer (RFC 6901), the whole for an empty
// one.
func find(body []byte, pointer string) (any, bool) {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	if pointer == "" {
		return value, true
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = unescape.Replace(token)
		switch v := value.(type) {
		case map[string]any:
			member, ok := v[token]
			if !ok {
				return nil, false
			}
			value = member
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
