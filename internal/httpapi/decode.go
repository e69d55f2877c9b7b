package httpapi

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// decode reads the body into a T, by the schema that the API document shows
// for it: no member is unknown, an optional one that is null counts as absent,
// unless T tells them apart by a pointer to a pointer.
// It refuses with invalid_json, and with validation_failed (or as the route
// says) and the member that is at fault.
func decode[T any](x *exchange) (T, error) {
	var v T
	if err := jsonsyntax.Check(x.body.data); err != nil {
		return v, err
	}
	err := decodeInto(x.body.data, schemaOf(reflect.TypeFor[T]()), &v)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == api.CodeValidationFailed && x.invalid != "" {
		refused := *f
		refused.Code = x.invalid
		err = &refused
	}
	return v, err
}

// decodeOptional is decode for a body whose members are all optional: no body
// is an object without members.
func decodeOptional[T any](x *exchange) (T, error) {
	if len(x.body.data) == 0 {
		var v T
		return v, nil
	}
	return decode[T](x)
}

// decodeInto reads a body whose syntax is right into v.
func decodeInto(body []byte, s *typeSchema, v any) error {
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return semanticFault(err)
	}
	if err := s.check(tree); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true), keepNull); err != nil {
		return semanticFault(err)
	}
	return nil
}

// keepNull reads null into a pointer to a pointer to nil, where the library
// would leave the outer one nil, as for a member that is absent.
var keepNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v ***int) error {
	if d.PeekKind() != jsontext.KindNull {
		return errors.ErrUnsupported
	}
	*v = new((*int)(nil))
	return d.SkipValue()
}))

// semanticFault says which member a Go type could not take although its schema
// does, such as a number that is too large. The library's own text is not
// shown: it quotes what was sent.
func semanticFault(err error) error {
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fmt.Errorf("decode body: %w", err)
	}
	at := place("")
	for token := range e.JSONPointer.Tokens() {
		at = at.token(token)
	}
	return at.fault("has a value that cannot be read")
}
