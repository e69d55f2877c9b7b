package duck

import (
	"errors"
	"strings"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Error is what DuckDB said about a failed call.
type Error struct {
	Type    bindings.ErrorType
	Message string
}

func (e *Error) Error() string { return strings.TrimSpace(e.Message) }

// Invalidated reports whether err says that the database can no longer be used
// by this process: after a fatal error DuckDB refuses everything until the
// file is opened anew.
func Invalidated(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	return e.Type == bindings.ErrorTypeFatal || strings.Contains(e.Message, "has been invalidated")
}

// OutOfResources reports whether err says that a file, disk space or memory
// was lacking, which has nothing to do with what was being stored.
func OutOfResources(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Type == bindings.ErrorTypeErrorIO || e.Type == bindings.ErrorTypePermission || e.Type == bindings.ErrorTypeOutOfMemory)
}

// Interrupted reports whether err says that the call was interrupted.
func Interrupted(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Type == bindings.ErrorTypeInterrupt
}

// NoTransaction reports whether err says that there is no transaction to end.
func NoTransaction(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Type == bindings.ErrorTypeTransaction && strings.Contains(e.Message, "no transaction is active")
}

// Busy reports whether err says that there can be no checkpoint just now, since a
// transaction is active or what it has changed is still kept for a reader.
func Busy(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Type == bindings.ErrorTypeTransaction && strings.Contains(e.Message, "Cannot CHECKPOINT")
}
