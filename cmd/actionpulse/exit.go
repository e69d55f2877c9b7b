package main

import "errors"

// The exit codes. Each has one meaning in every command.
const (
	exitOK = 0
	// exitFailure: the command could not do its work, and the message says
	// why.
	exitFailure = 1
	// exitUsage: a flag, an argument or a setting is wrong; nothing was done.
	exitUsage = 2
	// exitRejected: what was given was read to its end, and some of it was
	// rejected: items by the server, or a flow's definition.
	exitRejected = 3
	// exitGaveUp: a request was repeated as often as it may be without
	// success; the same command can go on later.
	exitGaveUp = 4
	// exitRefused: the data folder cannot be used as it is, and the message
	// says what helps.
	exitRefused = 5
	// exitStorage: a write to the data folder failed while serving, and the
	// process ended at once rather than say something untrue.
	exitStorage = 6
	// exitExecution: the execution of a flow has ended without success: it
	// failed or was cancelled.
	exitExecution = 7
	// exitBroken: the lab has judged a client or a server, and at least one
	// rule was broken.
	exitBroken = 8
	// exitInterrupted: the command was stopped by a signal.
	exitInterrupted = 130
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	// err is nil if everything has been said already.
	err error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCode returns the exit code for what a command returned: exitOK for nil,
// exitFailure for an error without a code.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}
