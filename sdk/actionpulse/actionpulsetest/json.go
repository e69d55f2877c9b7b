package actionpulsetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
)

// maxDepth is how deep JSON may nest.
const maxDepth = 64

var (
	errSyntax  = errors.New("is not valid JSON in UTF-8")
	errRepeats = errors.New("repeats a member name")
	errDepth   = errors.New("nests too deep")
)

// checkText returns errSyntax unless text is one JSON value in UTF-8. A half of
// a surrogate pair is none.
func checkText(text []byte) error {
	if !utf8.Valid(text) || !json.Valid(text) {
		return errSyntax
	}
	for rest := text; ; {
		_, after, found := bytes.Cut(rest, []byte(`\`))
		if !found {
			return nil
		}
		first, size := escaped(after)
		if second, more := escaped(after[min(size+1, len(after)):]); first>>10 == 0xd800>>10 {
			if after[size] != '\\' || second>>10 != 0xdc00>>10 {
				return errSyntax
			}
			size += 1 + more
		} else if first>>10 == 0xdc00>>10 {
			return errSyntax
		}
		rest = after[size:]
	}
}

// escaped reads what follows a backslash: the number after a u, or else 0, and
// how many bytes that takes.
func escaped(text []byte) (rune, int) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, min(1, len(text))
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	if err != nil {
		return 0, 1
	}
	return rune(n), 5
}

// tree is where a value is: depth is its own level. Within its member deep, if
// that is not empty, it may nest to maxEventsDepth.
type tree struct {
	depth int
	deep  string
}

// limit is how deep the member of a name may nest.
func (t tree) limit(name string) int {
	if t.deep != "" && name == t.deep {
		return maxEventsDepth
	}
	return maxDepth
}

// checkTree returns errRepeats or errDepth for a valid value.
func checkTree(text []byte, at tree) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var names []map[string]bool // of the objects around; nil for lists
	isName, limit := false, maxDepth
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errSyntax
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if names = append(names, nil); token == json.Delim('{') {
				names[len(names)-1] = map[string]bool{}
			}
			if len(names)+at.depth-1 > limit {
				return errDepth
			}
		case json.Delim('}'), json.Delim(']'):
			names = names[:len(names)-1]
		default:
			if isName {
				seen := names[len(names)-1]
				if seen[token.(string)] { //nolint:forcetypeassert // a name is a string
					return errRepeats
				}
				seen[token.(string)] = true //nolint:forcetypeassert // as above
				if len(names) == 1 {
					limit = at.limit(token.(string)) //nolint:forcetypeassert // as above
				}
				isName = false
				continue
			}
		}
		isName = len(names) > 0 && names[len(names)-1] != nil && d.More()
	}
}

// checkBody returns invalid_json unless a body is one JSON value without
// repeated names and not too deep.
func checkBody(body []byte) error { return checkDeepBody(body, "") }

// checkDeepBody is checkBody, but for a member that may nest deeper.
func checkDeepBody(body []byte, deep string) error {
	err := checkText(body)
	if err == nil {
		err = checkTree(body, tree{depth: 1, deep: deep})
	}
	if err != nil {
		return refuse(api.CodeInvalidJSON, "the body "+err.Error())
	}
	return nil
}

// decode reads the body into a T by the tags that the API document is made of:
// no member is unknown, an optional one that is null counts as absent. It
// refuses with invalid_json, and with validation_failed or invalid_request and
// the member that is at fault.
func decode[T any](x *exchange) (T, error) {
	var v T
	if err := checkBody(x.body); err != nil {
		return v, err
	}
	invalid := func(field, message string) (T, error) {
		f := invalidField(field, message)
		if x.route.invalid != "" {
			f.code = x.route.invalid
		}
		return v, f
	}
	var members map[string]json.RawMessage
	if x.body[0] == 'n' || json.Unmarshal(x.body, &members) != nil {
		return invalid("body", "must be an object")
	}
	fields := fieldsOf(reflect.TypeFor[T]())
	for _, f := range fields {
		if value, ok := members[f.name]; f.required && (!ok || isNull(value) && f.kind != anything) {
			return invalid(f.name, "is required")
		}
	}
	for _, name := range sortedKeys(members) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return invalid(shorten(name), "is not known here")
		}
		if !isNull(members[name]) && !fields[i].allows(members[name]) {
			return invalid(name, "has a value that is not allowed")
		}
	}
	if err := json.Unmarshal(x.body, &v); err != nil {
		return invalid("body", "cannot be read")
	}
	return v, nil
}

// decodeOptional is decode for a body whose members are all optional: no body
// is an object without members.
func decodeOptional[T any](x *exchange) (T, error) {
	if len(x.body) == 0 {
		var v T
		return v, nil
	}
	return decode[T](x)
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// longestShown is the longest submitted text that a refusal repeats, in
// characters.
const longestShown = 64

func shorten(name string) string {
	if r := []rune(name); len(r) > longestShown {
		return string(r[:longestShown-1]) + "…"
	}
	return name
}

// field is a member of a body.
type field struct {
	name     string
	required bool
	kind     valueKind
	tag      reflect.StructTag
}

// valueKind is what JSON a member holds.
type valueKind int

const (
	anything valueKind = iota
	text
	whole
	flag
	object
)

// fieldsOf returns the members of a type of package api, in their order.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for f := range t.Fields() {
		if f.Anonymous {
			list = append(list, fieldsOf(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" {
			list = append(list, field{name, options == "", kindOf(f.Type), f.Tag})
		}
	}
	return list
}

func kindOf(t reflect.Type) valueKind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // others are anything
	case reflect.String:
		return text
	case reflect.Int, reflect.Int64:
		return whole
	case reflect.Bool:
		return flag
	case reflect.Map:
		return object
	default:
		return anything
	}
}

// allows says whether a value is what the tags demand.
func (f *field) allows(value json.RawMessage) bool {
	switch f.kind {
	case text:
		var s string
		return json.Unmarshal(value, &s) == nil && f.allowsText(s)
	case whole:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil && f.within(n, "minimum", "maximum")
	case flag:
		return value[0] == 't' || value[0] == 'f'
	case object:
		return value[0] == '{'
	default:
		return true
	}
}

func (f *field) allowsText(s string) bool {
	if f.tag.Get("format") == "date-time" {
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return false
		}
	}
	allowed := f.tag.Get("enum")
	return f.within(int64(utf8.RuneCountInString(s)), "minLength", "maxLength") &&
		(allowed == "" || slices.Contains(strings.Split(allowed, ","), s))
}

// within says whether n is between two tags, of which each may be absent.
func (f *field) within(n int64, least, most string) bool {
	low, err := strconv.ParseInt(f.tag.Get(least), 10, 64)
	if err == nil && n < low {
		return false
	}
	high, err := strconv.ParseInt(f.tag.Get(most), 10, 64)
	return err != nil || n <= high
}
