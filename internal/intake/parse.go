package intake

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// parser reads request bodies. It keeps its buffers from request to request;
// nothing it returns may be used after release.
type parser struct {
	outer, inner       jsontext.Decoder
	outerBuf, innerBuf bytes.Buffer
	canonical          canonical
	names              map[string]bool
	encoded            []byte
}

var parsers = sync.Pool{New: func() any { return &parser{names: map[string]bool{}} }}

func newParser() *parser { return parsers.Get().(*parser) } //nolint:forcetypeassert // the pool holds nothing else

// maxPooled and maxPooledNames bound what a parser keeps between requests.
const (
	maxPooled      = 2 << 20
	maxPooledNames = 1 << 10
)

func (p *parser) release() {
	if cap(p.encoded) > maxPooled || len(p.names) > maxPooledNames {
		return
	}
	p.outerBuf, p.innerBuf = bytes.Buffer{}, bytes.Buffer{}
	p.encoded = p.encoded[:0]
	parsers.Put(p)
}

// strict decoders refuse repeated member names at every level; the outer one
// leaves them to the check of the value, which knows what a repeat spoils.
var (
	strict  = []jsontext.Options{jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)}
	lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false)}
)

// members calls fn for each member of the object that body must be. A value is
// valid JSON but may hold repeated names and nest too deep; fn judges it and
// may read it from the decoder itself. It returns invalid_json for a body that
// is not JSON and validation_failed for one that is not an object.
func (p *parser) members(body []byte, fn func(name string, dec *jsontext.Decoder) error) error {
	err := p.tryMembers(body, fn)
	if err == nil || isFault(err) {
		return err
	}
	if depthOf(body) > foldDepth { // deeper than the decoder goes, perhaps
		if body, err = fold(body); err == nil {
			err = p.tryMembers(body, fn)
		}
		if err == nil || isFault(err) {
			return err
		}
	}
	return fault.Wrap(api.CodeInvalidJSON, err, "The body is not valid JSON in UTF-8")
}

func isFault(err error) bool {
	_, ok := errors.AsType[*fault.Error](err)
	return ok
}

func (p *parser) tryMembers(body []byte, fn func(name string, dec *jsontext.Decoder) error) error {
	p.outerBuf = *bytes.NewBuffer(body)
	dec := &p.outer
	dec.Reset(&p.outerBuf, lenient...)
	clear(p.names)
	if kind := dec.PeekKind(); kind != '{' {
		if err := p.rest(dec); err != nil {
			return err
		}
		return fault.New(api.CodeValidationFailed, "The body must be a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if p.names[name] {
			return fault.New(api.CodeInvalidJSON, "The body repeats the member %q", short(name))
		}
		p.names[name] = true
		if err := fn(name, dec); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return end(dec)
}

// rest reads the only value of a body that is no object, and what follows it.
func (p *parser) rest(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if err := p.check(value, 1); err != nil {
		return err
	}
	return end(dec)
}

var errTrailing = errors.New("something follows the body's value")

func end(dec *jsontext.Decoder) error {
	_, err := dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return fault.Wrap(api.CodeInvalidJSON, errTrailing, "The body is not valid JSON: something follows it")
	default:
		return err
	}
}

// memberLevel is how deep the value of a member of the body lies.
const memberLevel = 2

// value reads the value of a member of the body and checks it whole.
func (p *parser) value(dec *jsontext.Decoder) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return value, p.check(value, memberLevel)
}

// check refuses repeated names and deep nesting in a value at a level.
func (p *parser) check(value jsontext.Value, level int) error {
	if kind := value.Kind(); kind != '{' && kind != '[' {
		return nil
	}
	if depthOf(value)+level-1 > maxDepth {
		return fault.New(api.CodeInvalidJSON, "The body nests deeper than %d levels", maxDepth)
	}
	if err := p.unique(value); err != nil {
		return fault.Wrap(api.CodeInvalidJSON, err, "The body repeats a member name")
	}
	return nil
}

// unique reads a value with the strict decoder, which refuses repeated names.
func (p *parser) unique(value jsontext.Value) error {
	p.resetInner(value)
	return p.inner.SkipValue()
}

func (p *parser) resetInner(value jsontext.Value) {
	p.innerBuf = *bytes.NewBuffer(value)
	p.inner.Reset(&p.innerBuf, strict...)
}

// text returns what a JSON string says; ok is false if value is none. The
// result may share the request's body and lives no longer than it.
func (p *parser) text(value jsontext.Value) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return unsafe.String(unsafe.SliceData(value[1:]), len(value)-2), true //nolint:gosec // the body outlives the text
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	return string(unquoted), err == nil
}

// plain returns a quoted member name without escapes, as a quoted name.
func (p *parser) plain(name jsontext.Value) jsontext.Value {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	text, _ := p.text(name)
	return jsontext.Value(`"` + text + `"`)
}

// short cuts a submitted value for a message.
func short(s string) string {
	const limit = 64
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
