// Package fault owns the one error type that crosses package boundaries: a
// code of the catalogue, a message fit for the caller and the cause, which is
// only logged. It never writes to a response; httpapi does that in one place.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Error is a refusal with a code. Message and Details are shown to the caller
// and must hold neither secrets nor long submitted values; Err is logged only.
type Error struct {
	Code api.Code
	// Status chooses among the statuses that the code comes with in
	// api.Catalogue; 0 is its usual one.
	Status  int
	Message string
	// Details are extra members of error.details.
	Details map[string]any
	// RetryAfter, if positive, becomes the Retry-After header, rounded up to
	// whole seconds.
	RetryAfter time.Duration
	Err        error
}

// New returns an error with a code and a formatted message.
func New(code api.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with a code, a message for the caller and a cause for
// the log.
func Wrap(code api.Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// Field returns a validation_failed error that names the member at fault.
func Field(field, format string, args ...any) *Error {
	return New(api.CodeValidationFailed, format, args...).With("field", field)
}

// With returns a copy that carries one more detail.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[name] = value
	return &c
}

// WithStatus returns a copy that is answered with another of the statuses
// that its code comes with.
func (e *Error) WithStatus(status int) *Error {
	c := *e
	c.Status = status
	return &c
}

// After returns a copy that asks the caller to wait.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether the target is a fault with the same code, so that
// errors.Is(err, fault.New(api.CodeNotFound, "")) matches by code alone.
func (e *Error) Is(target error) bool {
	t, ok := errors.AsType[*Error](target)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of the first fault in err's chain, and
// api.CodeInternal when there is none.
func CodeOf(err error) api.Code {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Code
	}
	return api.CodeInternal
}
