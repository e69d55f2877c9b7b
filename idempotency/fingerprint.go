package idempotency

import (
	"crypto/sha256"
	"slices"
)

// Fingerprint says what of a request is compared. Implementations must not
// change what they compute between releases: stored prints outlive them.
type Fingerprint interface {
	// Print must not fail: a body that it cannot read has a print, too. It is
	// made by [NewPrint] or by another fingerprint.
	Print(r *Request) Print
}

// wholeBody names the part that stands for a body that is compared whole.
const wholeBody = "body"

// RawBytes compares bodies byte by byte: the same members in another order are
// another request.
func RawBytes() Fingerprint { return rawBytes{} }

type rawBytes struct{}

func (rawBytes) Print(r *Request) Print {
	p := NewPrint(r, map[string][]byte{wholeBody: r.Body})
	if text, err := appendNormal(nil, r.Body); err == nil {
		p.json = sha256.Sum256(text)
	}
	return p
}

// NormalJSON compares JSON objects by value, each top-level member alone:
// member order, white space, the spelling of numbers and strings, and a
// top-level null against an absent member do not matter. Fields say which
// members need more than that. A body that is not a JSON object (or repeats a
// name, nests deeper than 64, or has more than a thousand digits of exponent)
// is compared byte by byte.
//
// It panics if a field's Default is not JSON.
func NormalJSON(fields ...Field) Fingerprint { return newNormalJSON(fields, false) }

// ChosenFields compares the named top-level members of JSON objects and
// ignores the others. A body that is not a JSON object is compared byte by
// byte.
//
// It panics if a field's Default is not JSON.
func ChosenFields(fields ...Field) Fingerprint { return newNormalJSON(fields, true) }

// Field says how one top-level member is compared.
type Field struct {
	Name string
	Kind FieldKind
	// Default is the JSON value that an absent or null member stands for;
	// empty if it stands for nothing.
	Default string
	// Depth is how deep the body may nest within this member; 0 stands for 64.
	Depth int
}

// FieldKind says what a member's value is. A value that is not of that kind is
// compared as any other.
type FieldKind int

// The kinds.
const (
	AnyValue FieldKind = iota
	// Timestamp compares strings as RFC 3339 times: the offset and zeros at the
	// end of the fraction do not matter.
	Timestamp
	// Decimal compares numbers, and strings that are written like one, by their
	// exact value: "10.50", 10.5 and 105e-1 are one.
	Decimal
)

type normalJSON struct {
	fields []Field
	only   bool
}

func newNormalJSON(fields []Field, only bool) Fingerprint {
	n := normalJSON{fields: slices.Clone(fields), only: only}
	for i := range n.fields {
		f := &n.fields[i]
		if f.Default == "" {
			continue
		}
		normal, err := appendNormal(nil, []byte(f.Default))
		if err != nil {
			panic("idempotency: the default of " + f.Name + " is not JSON: " + err.Error())
		}
		f.Default = string(normal)
	}
	return n
}

func (n normalJSON) Print(r *Request) Print {
	members, err := readMembers(r.Body, n.fields)
	if err != nil {
		// No value is spelt like this, not even that of a member named "body".
		return NewPrint(r, map[string][]byte{wholeBody: slices.Concat([]byte("raw "), r.Body)})
	}
	for _, f := range n.fields {
		if f.Default != "" && members[f.Name] == nil {
			members[f.Name] = []byte(f.Default)
		}
	}
	for name, value := range members {
		i := slices.IndexFunc(n.fields, func(f Field) bool { return f.Name == name })
		switch {
		case value == nil, i < 0 && n.only:
			delete(members, name)
		case i >= 0:
			members[name] = normalMember(value, n.fields[i].Kind)
		}
	}
	return NewPrint(r, members)
}
