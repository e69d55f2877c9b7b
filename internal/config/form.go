package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// settingError is a fault of a setting.
type settingError struct{ name, text string }

// Error says which setting it is, and what is allowed.
func (e *settingError) Error() string { return e.name + ": " + e.text }

func wrong(name, format string, parts ...any) error {
	return &settingError{shorten(name), fmt.Sprintf(format, parts...)}
}

// maxShown is how many characters of what was found a message shows.
const maxShown = 64

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

// form is how a kind of setting is written in the file.
type form struct {
	allowed string
	// text returns a value as it would be written on the command line, and whether
	// it has the form.
	text func(jsontext.Value) (string, bool)
}

var (
	durationForm = form{`a duration such as "90s" or "48h"`, func(v jsontext.Value) (string, bool) {
		text, ok := scalar(v)
		_, err := time.ParseDuration(text)
		return text, ok && err == nil
	}}
	sizeForm = form{`a size such as "2GB" or a number of bytes`, func(v jsontext.Value) (string, bool) {
		text, ok := scalar(v)
		return text, ok && new(Size).UnmarshalText([]byte(text)) == nil
	}}
	boolForm = form{"true or false", func(v jsontext.Value) (string, bool) {
		text := strings.Trim(string(v), `"`)
		return text, text == "true" || text == "false"
	}}
	wholeForm = form{"a whole number of at most 15 digits", func(v jsontext.Value) (string, bool) {
		n, ok := number(v)
		return strconv.FormatFloat(n, 'f', 0, 64), ok && n == math.Trunc(n) && math.Abs(n) < 1e15
	}}
	numberForm = form{"a number", func(v jsontext.Value) (string, bool) {
		n, ok := number(v)
		return strconv.FormatFloat(n, 'f', -1, 64), ok
	}}
	textForm     = form{"a string", unquote}
	networksForm = form{`a list of networks such as ["10.0.0.0/8", "fd00::/8"]`, networks}
)

// formOf returns how settings of a type are written.
func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return durationForm
	case reflect.TypeFor[Size]():
		return sizeForm
	case reflect.TypeFor[[]netip.Prefix]():
		return networksForm
	}
	switch t.Kind() { //nolint:exhaustive // a setting of another kind is text, which the parser judges
	case reflect.Bool:
		return boolForm
	case reflect.Int:
		return wholeForm
	case reflect.Float64:
		return numberForm
	default:
		return textForm
	}
}

// isSecret says whether settings of a type must not be shown.
func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[SecretKey]() || t == reflect.TypeFor[DatabaseURL]()
}

// fileText writes a setting of the file as it would be written on the command
// line, or returns its faults.
func fileText(name string, kind reflect.Type, value jsontext.Value) (string, []error) {
	if kind == reflect.TypeFor[Plans]() {
		_, faults := readPlans(value)
		return string(value), faults
	}
	allowed := formOf(kind)
	text, ok := allowed.text(value)
	switch {
	case ok:
		return text, nil
	case isSecret(kind):
		return "", []error{wrong(name, "must be %s, not %s", allowed.allowed, kindOf(value))}
	default:
		return "", []error{wrong(name, "must be %s, not %s", allowed.allowed, found(value))}
	}
}

// readJSON reads the object that a file is. The error says where it is none.
func readJSON(content []byte) (map[string]jsontext.Value, error) {
	var root jsontext.Value
	if err := json.Unmarshal(content, &root); err != nil {
		return nil, syntaxFault(content, err)
	}
	members, err := readObject(root)
	if err != nil {
		return nil, fmt.Errorf("not a JSON object but %s", kindOf(root))
	}
	return members, nil
}

// syntaxFault says at which line and column, from 1, of which byte, a text is
// no JSON.
func syntaxFault(content []byte, err error) error {
	at, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || len(bytes.TrimSpace(content)) == 0 {
		return errors.New("not a JSON object but nothing; {} has no settings")
	}
	before := content[:min(at.ByteOffset, int64(len(content)))]
	line, column := 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	where := ""
	if at.JSONPointer != "" {
		where = " (" + shorten(strings.Join(slices.Collect(at.JSONPointer.Tokens()), ".")) + ")"
	}
	return fmt.Errorf("not a JSON object: line %d, column %d%s: %w", line, column, where, at.Err)
}

// readObject returns the members of an object.
func readObject(value jsontext.Value) (members map[string]jsontext.Value, err error) {
	if value.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	if err := json.Unmarshal(value, &members); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return members, nil
}

// kindOf names the kind of a value.
func kindOf(value jsontext.Value) string {
	switch value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	default:
		return string(value)
	}
}

// found shows the beginning of a value.
func found(value jsontext.Value) string {
	compact := value.Clone()
	if err := compact.Compact(); err != nil {
		return kindOf(value)
	}
	return shorten(string(compact))
}

func unquote(value jsontext.Value) (text string, ok bool) {
	return text, value.Kind() == '"' && json.Unmarshal(value, &text) == nil
}

// scalar is the text of a string or a number.
func scalar(value jsontext.Value) (string, bool) {
	if n, ok := number(value); ok && value.Kind() == '0' {
		return strconv.FormatFloat(n, 'f', -1, 64), true
	}
	return unquote(value)
}

// number reads a number, or a string of one.
func number(value jsontext.Value) (float64, bool) {
	text, ok := unquote(value)
	if value.Kind() == '0' {
		text, ok = string(value), true
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, ok && err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// networks are strings in a list, or one string with commas.
func networks(value jsontext.Value) (string, bool) {
	var parts []string
	if one, ok := unquote(value); ok {
		parts = strings.Split(one, ",")
	} else if value.Kind() != '[' || json.Unmarshal(value, &parts) != nil {
		return "", false
	}
	for _, part := range parts {
		if _, err := netip.ParsePrefix(part); err != nil {
			return "", false
		}
	}
	return strings.Join(parts, ","), true
}
