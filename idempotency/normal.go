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

// maxDepth is how deep JSON may nest to be compared by value, unless a field
// may nest deeper.
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
// names, no more levels than allowed, nothing after the object.
func readMembers(body []byte, fields []Field) (map[string][]byte, error) {
	members := map[string][]byte{}
	n := normalizer{fields: fields, member: func(name string, value []byte) error {
		if len(name) > longestName {
			return errLongName
		}
		members[name] = nil
		if !bytes.Equal(value, []byte("null")) {
			members[name] = slices.Clone(value)
		}
		return nil
	}}
	_, err := n.appendText(nil, body)
	return members, err
}

// appendNormal appends the one normal spelling of a JSON text: no white space,
// members in order of name, strings and numbers in one spelling. Numbers keep
// their exact decimal value.
func appendNormal(dst, text []byte) ([]byte, error) { return new(normalizer).appendText(dst, text) }

// normalizer spells one JSON text.
type normalizer struct {
	d *jsontext.Decoder
	// member, if it is not nil, is called with each top-level member's name and
	// normal value, which it must not keep; the text must be an object then.
	member func(name string, value []byte) error
	// fields say how deep members may nest; limit is how deep it is here.
	fields []Field
	limit  int
	// spare is where the members of an object are while they are put in order.
	spare []byte
}

func (n *normalizer) appendText(dst, text []byte) ([]byte, error) {
	n.d, n.limit = jsontext.NewDecoder(bytes.NewReader(text)), maxDepth
	if n.member != nil && n.d.PeekKind() != '{' {
		return nil, errNotObject
	}
	dst, err := n.appendValue(dst)
	if err != nil {
		return nil, err
	}
	if _, err := n.d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return dst, nil
}

func (n *normalizer) appendValue(dst []byte) ([]byte, error) {
	switch n.d.PeekKind() {
	case '{':
		return n.appendObject(dst)
	case '[':
		return n.appendArray(dst)
	case '0':
		raw, err := n.d.ReadValue()
		if err != nil {
			return nil, err
		}
		return appendNumber(dst, string(raw))
	default:
		token, err := n.d.ReadToken()
		if err != nil {
			return nil, err
		}
		if token.Kind() == '"' {
			return jsontext.AppendQuote(dst, token.String())
		}
		return append(dst, token.String()...), nil
	}
}

// span is where a member, with the comma after it, is.
type span struct {
	name     string
	from, to int
}

func (n *normalizer) appendObject(dst []byte) ([]byte, error) {
	if err := n.enter(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	var members []span
	for n.d.PeekKind() != '}' {
		name, err := n.d.ReadToken()
		if err != nil {
			return nil, err
		}
		one := span{name: name.String(), from: len(dst)}
		if dst, err = n.appendMember(dst, one.name); err != nil {
			return nil, err
		}
		dst = append(dst, ',')
		one.to = len(dst)
		members = append(members, one)
	}
	if _, err := n.d.ReadToken(); err != nil {
		return nil, err
	}
	n.order(dst, members)
	if len(members) > 0 {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}'), nil
}

// appendMember appends a member, of which the name was read.
func (n *normalizer) appendMember(dst []byte, name string) ([]byte, error) {
	top := n.d.StackDepth() == 1
	if top {
		n.limit = depthOf(n.fields, name)
	}
	dst, err := jsontext.AppendQuote(dst, name)
	if err != nil {
		return nil, err
	}
	dst = append(dst, ':')
	from := len(dst)
	if dst, err = n.appendValue(dst); err != nil {
		return nil, err
	}
	if top && n.member != nil {
		return dst, n.member(name, dst[from:])
	}
	return dst, nil
}

// depthOf says how deep a body may nest within a top-level member.
func depthOf(fields []Field, name string) int {
	for _, f := range fields {
		if f.Name == name && f.Depth > 0 {
			return f.Depth
		}
	}
	return maxDepth
}

// order puts members that follow one another in text in order of name.
func (n *normalizer) order(text []byte, members []span) {
	byName := func(a, b span) int { return strings.Compare(a.name, b.name) }
	if slices.IsSortedFunc(members, byName) {
		return
	}
	at := members[0].from
	n.spare = append(n.spare[:0], text[at:]...)
	slices.SortFunc(members, byName)
	to := text[at:at]
	for _, one := range members {
		to = append(to, n.spare[one.from-at:one.to-at]...)
	}
}

func (n *normalizer) appendArray(dst []byte) ([]byte, error) {
	if err := n.enter(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	for first := true; n.d.PeekKind() != ']'; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = n.appendValue(dst); err != nil {
			return nil, err
		}
	}
	if _, err := n.d.ReadToken(); err != nil {
		return nil, err
	}
	return append(dst, ']'), nil
}

// enter reads the bracket that opens an object or array.
func (n *normalizer) enter() error {
	if n.d.StackDepth() >= n.limit {
		return errDepth
	}
	_, err := n.d.ReadToken()
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
