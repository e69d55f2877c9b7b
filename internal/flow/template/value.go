package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a value may nest.
const maxDepth = 200

var (
	errDepth  = fmt.Errorf("the value nests deeper than %d levels", maxDepth)
	errSize   = fmt.Errorf("the value is longer than %d bytes of JSON", maxEncoded)
	errFinite = errors.New("a number is infinite or not a number, which JSON cannot hold")
	errUTF8   = errors.New("a text is not UTF-8")
	errAfter  = errors.New("something follows the JSON value")
)

// Decode reads JSON: objects as map[string]any, lists as []any, whole numbers
// that fit as int64, others as float64. Repeated names, texts that are not
// UTF-8, numbers too large for float64 and more than 200 levels are errors.
func Decode(data []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	value, err := decode(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errAfter
	}
	return value, nil
}

func decode(dec *jsontext.Decoder) (any, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return decodeNumber(token.String())
	}
	if dec.StackDepth() > maxDepth {
		return nil, errDepth
	}
	if token.Kind() == '[' {
		return decodeList(dec)
	}
	return decodeObject(dec)
}

func decodeList(dec *jsontext.Decoder) (any, error) {
	values := []any{}
	for dec.PeekKind() != ']' {
		v, err := decode(dec)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := dec.ReadToken()
	return values, err
}

func decodeObject(dec *jsontext.Decoder) (any, error) {
	values := map[string]any{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if values[key], err = decode(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return values, err
}

func decodeNumber(text string) (any, error) {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return whole, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", shorten(text))
	}
	return number(f)
}

// number returns a number as Decode reads it, whatever it was computed as: the
// same value before and after it was stored.
func number(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errFinite
	}
	if f == math.Trunc(f) && f >= math.MinInt64 && f < -math.MinInt64 {
		return int64(f), nil
	}
	return f, nil
}

// Encode writes what Decode has read, or what an expression has made of it, as
// JSON, with the members of objects in order. What JSON cannot hold is an error.
func Encode(value any) ([]byte, error) { return appendJSON(nil, value, 0) }

func appendJSON(out []byte, value any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case string:
		return appendText(out, v)
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case int:
		return strconv.AppendInt(out, int64(v), 10), nil
	case float64:
		return appendFloat(out, v)
	case []any:
		return appendList(out, v, depth)
	case map[string]any:
		return appendObject(out, v, depth)
	default:
		return nil, fmt.Errorf("JSON cannot hold a %T", value)
	}
}

func appendText(out []byte, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, errUTF8
	}
	return jsontext.AppendQuote(out, text)
}

func appendFloat(out []byte, f float64) ([]byte, error) {
	n, err := number(f)
	if err != nil {
		return nil, err
	}
	if whole, ok := n.(int64); ok {
		return strconv.AppendInt(out, whole, 10), nil
	}
	return strconv.AppendFloat(out, f, 'g', -1, 64), nil
}

func appendList(out []byte, values []any, depth int) ([]byte, error) {
	out = append(out, '[')
	for i, one := range values {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendJSON(out, one, depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendObject(out []byte, values map[string]any, depth int) ([]byte, error) {
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendText(out, name); err != nil {
			return nil, err
		}
		if out, err = appendJSON(append(out, ':'), values[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// CheckSize refuses a value that is longer than 1 MiB as JSON, or that JSON cannot
// hold.
func CheckSize(value any) error {
	switch v := value.(type) {
	case nil, bool, int64:
		return nil
	case string:
		if len(v) < maxEncoded/8 && utf8.ValidString(v) {
			return nil
		}
	}
	encoded, err := Encode(value)
	if err == nil && len(encoded) > maxEncoded {
		return errSize
	}
	return err
}

// asText writes a value into a text.
func asText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		encoded, err := Encode(v)
		return string(encoded), err
	}
}
