package idempotency

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep JSON may nest to be compared by value.
const maxDepth = 64

var (
	errDepth     = errors.New("the JSON nests too deep")
	errTrailing  = errors.New("there is more after the JSON value")
	errNotObject = errors.New("the body is not a JSON object")
	errLongName  = errors.New("a member's name is too long")
	errExponent  = errors.New("a number's exponent is too long")
)

const (
	// longestName is the longest name of a member that is compared alone, in
	// bytes.
	longestName = 1 << 10
	// longestExponent bounds an exponent, in digits: to read one takes time by
	// the square of its length.
	longestExponent = 1000
)

// readMembers splits a JSON object into its top-level members. A value of null
// is nil. It demands what this server demands of JSON: valid UTF-8, unique
// names, no more than 64 levels, nothing after the object.
func readMembers(body []byte) (map[string][]byte, error) {
	members := map[string][]byte{}
	_, err := appendNormal(nil, body, func(name string, value []byte) error {
		if len(name) > longestName {
			return errLongName
		}
		members[name] = nil
		if !bytes.Equal(value, []byte("null")) {
			members[name] = slices.Clone(value)
		}
		return nil
	})
	return members, err
}

// appendNormal appends the one normal spelling of a JSON text: no white space,
// members in order of name, strings and numbers in one spelling. Numbers keep
// their exact decimal value. If member is not nil the text must be an object,
// and it is called with each top-level member's name and normal value.
func appendNormal(dst, text []byte, member func(name string, value []byte) error) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if member != nil && d.PeekKind() != '{' {
		return nil, errNotObject
	}
	dst, err := appendValue(dst, d, member)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return dst, nil
}

func appendValue(dst []byte, d *jsontext.Decoder, member func(string, []byte) error) ([]byte, error) {
	if d.StackDepth() > maxDepth {
		return nil, errDepth
	}
	switch d.PeekKind() {
	case '{':
		return appendObject(dst, d, member)
	case '[':
		return appendArray(dst, d)
	case '0':
		raw, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		return appendNumber(dst, string(raw))
	default:
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		if token.Kind() == '"' {
			return jsontext.AppendQuote(dst, token.String())
		}
		return append(dst, token.String()...), nil
	}
}

// appendObject reads an object whose level is at most maxDepth.
func appendObject(dst []byte, d *jsontext.Decoder, member func(string, []byte) error) ([]byte, error) {
	if err := enter(d); err != nil {
		return nil, err
	}
	type pair struct {
		name  string
		value []byte
	}
	var pairs []pair
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		one := pair{name: name.String()}
		if one.value, err = appendValue(nil, d, nil); err != nil {
			return nil, err
		}
		if member != nil {
			if err := member(one.name, one.value); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, one)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, one := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = jsontext.AppendQuote(dst, one.name); err != nil {
			return nil, err
		}
		dst = append(append(dst, ':'), one.value...)
	}
	return append(dst, '}'), nil
}

func appendArray(dst []byte, d *jsontext.Decoder) ([]byte, error) {
	if err := enter(d); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	for first := true; d.PeekKind() != ']'; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, d, nil); err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	return append(dst, ']'), nil
}

// enter reads the bracket that opens an object or array.
func enter(d *jsontext.Decoder) error {
	if d.StackDepth() >= maxDepth {
		return errDepth
	}
	_, err := d.ReadToken()
	return err
}

// appendNumber appends a JSON number as its sign, its digits without zeros at
// either end, and the power of ten: 1.50, 15e-1 and 150E-2 are all 15e-1, and
// every zero is 0. The value is exact: nothing becomes a double.
func appendNumber(dst []byte, number string) ([]byte, error) {
	digits, exponentText, _ := strings.Cut(strings.ToLower(number), "e")
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return append(dst, '0'), nil
	}
	if len(exponentText) > longestExponent {
		return nil, errExponent
	}
	exponent := new(big.Int)
	if exponentText != "" {
		exponent.SetString(strings.TrimPrefix(exponentText, "+"), 10)
	}
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	short := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(short))))
	if negative {
		dst = append(dst, '-')
	}
	return exponent.Append(append(append(dst, short...), 'e'), 10), nil
}

// normalMember returns what is compared of a member's normal value.
func normalMember(value []byte, kind FieldKind) []byte {
	if kind == AnyValue || len(value) == 0 {
		return value
	}
	text := string(value)
	if value[0] == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return value
		}
		text = string(unquoted)
	}
	switch {
	case kind == Timestamp && value[0] == '"':
		if normal, ok := normalTime(text); ok {
			return normal
		}
	case kind == Decimal && isDecimal(text):
		if normal, err := appendNumber([]byte("decimal "), text); err == nil {
			return normal
		}
	}
	return value
}

// rfc3339 is stricter than time.Parse, which takes a comma and single digits.
var rfc3339 = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$`)

// normalTime returns the one normal spelling of a time, with every digit of its
// fraction: more of them than a time.Time holds are compared, too.
func normalTime(text string) ([]byte, bool) {
	match := rfc3339.FindStringSubmatch(text)
	if match == nil {
		return nil, false
	}
	at, err := time.Parse(time.RFC3339, match[1]+match[3])
	if err != nil {
		return nil, false
	}
	normal := at.UTC().AppendFormat([]byte("time "), time.DateTime)
	if fraction := strings.TrimRight(match[2], "0"); fraction != "" {
		normal = append(append(normal, '.'), fraction...)
	}
	return normal, true
}

// isDecimal says whether text is spelt as a JSON number. A number's normal
// spelling is one, too.
func isDecimal(text string) bool {
	v := jsontext.Value(text)
	return v.Kind() == '0' && v.IsValid() && strings.TrimSpace(text) == text
}
