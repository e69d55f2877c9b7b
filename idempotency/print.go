package idempotency

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
)

// Print is what a fingerprint keeps of a request: a digest of each part. The
// zero Print is of no request.
type Print struct {
	known bool
	// parts are in the order of comparePart.
	parts []part
	// json is the digest of the whole body as JSON, however it is spelt; zero
	// if the body is not JSON or is compared by its parts.
	json digest
}

type digest [sha256.Size]byte

// part is a fact (which is compared by its value) or a part of the body.
type part struct {
	fact   bool
	name   string
	digest digest
}

// NewPrint makes the print of a request from its facts and of the named parts
// of its body. It is for fingerprints of your own: two prints are of one
// request if they have the same parts with the same bytes.
func NewPrint(r *Request, parts map[string][]byte) Print {
	p := Print{known: true}
	for _, f := range r.Facts {
		p.parts = append(p.parts, part{fact: true, name: f.Name, digest: sha256.Sum256([]byte(f.Value))})
	}
	for name, value := range parts {
		p.parts = append(p.parts, part{name: name, digest: sha256.Sum256(value)})
	}
	slices.SortFunc(p.parts, comparePart)
	return p
}

// comparePart puts facts first, then orders by name.
func comparePart(a, b part) int {
	switch {
	case a.fact && !b.fact:
		return -1
	case b.fact && !a.fact:
		return 1
	}
	return cmp.Or(strings.Compare(a.name, b.name), bytes.Compare(a.digest[:], b.digest[:]))
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
	for mine, theirs := p.parts, other.parts; len(mine)+len(theirs) > 0 && len(names) < maxDiffers; {
		var name string
		switch order := compareFirst(mine, theirs); {
		case order == 0:
			mine, theirs = mine[1:], theirs[1:]
			continue
		case order < 0:
			name, mine = mine[0].name, mine[1:]
		default:
			name, theirs = theirs[0].name, theirs[1:]
		}
		if len(name) > maxNameLength {
			name = "…"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// compareFirst compares the first of two lists; one that is at its end comes
// last.
func compareFirst(a, b []part) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	default:
		return comparePart(a[0], b[0])
	}
}

// sameJSON says whether nothing but the spelling of the body differs.
func (p Print) sameJSON(other Print) bool {
	return p.json != digest{} && p.json == other.json && slices.Equal(p.facts(), other.facts())
}

func (p Print) facts() []part {
	i := slices.IndexFunc(p.parts, func(one part) bool { return !one.fact })
	if i < 0 {
		return p.parts
	}
	return p.parts[:i]
}

// IsZero says whether this is the print of no request.
func (p Print) IsZero() bool { return !p.known }

// printVersion is the first byte of an encoded print. A print of another
// version cannot be compared and is refused, never guessed at.
const printVersion = 1

var errPrint = errors.New("the stored fingerprint cannot be read")

// MarshalBinary encodes a print for a store. The zero Print is no bytes.
func (p Print) MarshalBinary() ([]byte, error) {
	if p.IsZero() {
		return []byte{}, nil
	}
	out := append([]byte{printVersion}, p.json[:]...)
	for _, one := range p.parts {
		if len(one.name) > 1<<16-1 {
			return nil, errors.New("the name of a fact or part is too long")
		}
		fact := byte(0)
		if one.fact {
			fact = 1
		}
		out = append(out, fact, byte(len(one.name)>>8), byte(len(one.name)))
		out = append(out, one.name...)
		out = append(out, one.digest[:]...)
	}
	return out, nil
}

// UnmarshalBinary decodes what MarshalBinary has encoded, and nothing else.
func (p *Print) UnmarshalBinary(b []byte) error {
	*p = Print{}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 1+len(p.json) || b[0] != printVersion {
		return errPrint
	}
	decoded := Print{known: true}
	for b = b[1+copy(decoded.json[:], b[1:]):]; len(b) > 0; {
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
		decoded.parts = append(decoded.parts, one)
		b = b[n+len(one.digest):]
	}
	if !slices.IsSortedFunc(decoded.parts, comparePart) {
		return errPrint
	}
	*p = decoded
	return nil
}
