package actionpulse

import (
	"fmt"

	"github.com/actionpulse/actionpulse/api"
)

// ExecutionError says that an execution exists and has not succeeded. Its key
// is taken: a repeat gets the same end. To run again, with other input or
// another model, take a new key.
type ExecutionError struct {
	// ID is the execution's; its trace says what it has done.
	ID string
	// Status is failed or cancelled.
	Status string
	// Code says why it has failed, like model_error; empty if it was
	// cancelled.
	Code    api.Code
	Message string
	// IdempotencyKey is the key that names the execution.
	IdempotencyKey string
	// Err is the refusal that told of it; nil if the execution was read.
	Err error
}

// Error says which execution has ended how.
func (e *ExecutionError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("actionpulse: execution %s: %s", e.ID, e.Status)
	}
	return fmt.Sprintf("actionpulse: execution %s: %s: %s: %s", e.ID, e.Status, e.Code, e.Message)
}

// Unwrap returns the refusal that told of it, if one did.
func (e *ExecutionError) Unwrap() error { return e.Err }

// failureOf is the error of an execution that has ended without success; nil
// if it has not.
func failureOf(x *api.Execution, refusal *Error) error {
	if x.Status != StatusFailed && x.Status != StatusCancelled {
		return nil
	}
	e := &ExecutionError{ID: x.ID, Status: x.Status, IdempotencyKey: x.IdempotencyKey}
	if x.Error != nil {
		e.Code, e.Message = api.Code(x.Error.Code), x.Error.Message
	}
	if refusal != nil {
		e.Err = refusal
	}
	return e
}
