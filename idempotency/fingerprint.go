package idempotency

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
)

// Fingerprint says what of a request is compared. Implementations must not
// change what they compute between releases: stored prints outlive them.
type Fingerprint interface {
	// Print must not fail: a body that it cannot read has a print, too.
	Print(r *Request) Print
}

// Print is what a fingerprint keeps of a request: a digest of each part. The
// zero Print is of no request.
type Print struct {
	parts []part
	// json is the digest of the whole body as JSON, however it is spelt; zero
	// if the body is not JSON.
	json digest
}

type digest [sha256.Size]byte

// part is a fact (which is compared by its value) or a part of the body.
type part struct {
	fact   bool
	name   string
	digest digest
}

// wholeBody names the part that stands for a body that is compared whole.
const wholeBody = "body"

// RawBytes compares bodies byte by byte: the same members in another order are
// another request.
func RawBytes() Fingerprint { return rawBytes{} }

type rawBytes struct{}

func (rawBytes) Print(r *Request) Print {
	p := factsOf(r)
	p.parts = append(p.parts, part{name: wholeBody, digest: sha256.Sum256(r.Body)})
	if text, err := appendNormal(nil, r.Body, nil); err == nil {
		p.json = sha256.Sum256(text)
	}
	return p
}

// NormalJSON compares JSON objects by value, each top-level member alone:
// member order, white space, the spelling of numbers and strings, and a
// top-level null against an absent member do not matter. Fields say which
// members need more than that. A body that is not a JSON object is compared
// byte by byte.
func NormalJSON(fields ...Field) Fingerprint { return normalJSON{fields: fields} }

// ChosenFields compares the named top-level members of JSON objects and
// ignores the others. A body that is not a JSON object is compared byte by
// byte.
func ChosenFields(fields ...Field) Fingerprint { return normalJSON{fields: fields, only: true} }

// Field says how one top-level member is compared.
type Field struct {
	Name string
	Kind FieldKind
	// Default is the JSON value that an absent or null member stands for;
	// empty if it stands for nothing.
	Default string
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

func (n normalJSON) Print(r *Request) Print {
	p := factsOf(r)
	members, err := readMembers(r.Body)
	if err != nil {
		p.parts = append(p.parts, part{name: wholeBody, digest: sha256.Sum256(r.Body)})
		return p
	}
	for _, f := range n.fields {
		if f.Default != "" && members[f.Name] == nil {
			members[f.Name] = []byte(f.Default)
		}
	}
	for name, value := range members {
		i := slices.IndexFunc(n.fields, func(f Field) bool { return f.Name == name })
		if value == nil || i < 0 && n.only {
			continue
		}
		kind := AnyValue
		if i >= 0 {
			kind = n.fields[i].Kind
		}
		p.parts = append(p.parts, part{name: name, digest: sha256.Sum256(normalMember(value, kind))})
	}
	p.sort()
	return p
}

// factsOf starts a print with the facts.
func factsOf(r *Request) Print {
	var p Print
	for _, f := range r.Facts {
		p.parts = append(p.parts, part{fact: true, name: f.Name, digest: sha256.Sum256([]byte(f.Value))})
	}
	p.sort()
	return p
}

func (p *Print) sort() {
	slices.SortFunc(p.parts, func(a, b part) int {
		if a.fact != b.fact {
			if a.fact {
				return -1
			}
			return 1
		}
		return bytes.Compare([]byte(a.name), []byte(b.name))
	})
}

// The most that a conflict names.
const (
	maxDiffers    = 20
	maxNameLength = 64 // bytes
)

// Differs names the parts in which two prints differ, facts first, each in
// order of name. A name that is too long to be shown appears as "…", and no
// more than 20 are named.
func (p Print) Differs(other Print) []string {
	var names []string
	add := func(name string) {
		if len(name) > maxNameLength {
			name = "…"
		}
		if len(names) < maxDiffers && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, mine := range p.parts {
		if !slices.Contains(other.parts, mine) {
			add(mine.name)
		}
	}
	for _, theirs := range other.parts {
		if !slices.Contains(p.parts, theirs) {
			add(theirs.name)
		}
	}
	return names
}

// sameJSON says whether two bodies that differ hold the same JSON.
func (p Print) sameJSON(other Print) bool { return p.json != digest{} && p.json == other.json }

// IsZero says whether this is the print of no request.
func (p Print) IsZero() bool { return len(p.parts) == 0 }

// printVersion is the first byte of an encoded print. A print of another
// version cannot be compared and is refused, never guessed at.
const printVersion = 1

var errPrint = errors.New("the stored fingerprint cannot be read")

// MarshalBinary encodes a print for a store.
func (p Print) MarshalBinary() ([]byte, error) {
	if p.IsZero() {
		return []byte{}, nil
	}
	out := append([]byte{printVersion}, p.json[:]...)
	for _, part := range p.parts {
		fact := byte(0)
		if part.fact {
			fact = 1
		}
		name := part.name
		out = append(out, fact, byte(len(name)>>8), byte(len(name)))
		out = append(out, name...)
		out = append(out, part.digest[:]...)
	}
	return out, nil
}

// UnmarshalBinary decodes what MarshalBinary has encoded.
func (p *Print) UnmarshalBinary(b []byte) error {
	*p = Print{}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 1+len(p.json) || b[0] != printVersion {
		return errPrint
	}
	b = b[1+copy(p.json[:], b[1:]):]
	for len(b) > 0 {
		if len(b) < 3 || b[0] > 1 {
			return errPrint
		}
		one := part{fact: b[0] == 1}
		n := int(b[1])<<8 | int(b[2])
		if b = b[3:]; len(b) < n+len(one.digest) {
			return errPrint
		}
		one.name = string(b[:n])
		copy(one.digest[:], b[n:])
		p.parts = append(p.parts, one)
		b = b[n+len(one.digest):]
	}
	return nil
}
