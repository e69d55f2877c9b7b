package fault

import "errors"

// AppliedUnknown is the detail "applied" of the fault unavailable when the
// change may have been made: the answer to its COMMIT was lost. The detail is
// true or false when that is known.
const AppliedUnknown = "unknown"

// commitAttempts is how often UntilKnown runs a change.
const commitAttempts = 3

// MayBeApplied reports whether an error leaves open whether the change was
// made.
func MayBeApplied(err error) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Details["applied"] == AppliedUnknown
}

// UntilKnown runs a change, a few times more if it is unknown whether it was
// made. Each run must find what an earlier one has made, or make it anew. Once
// that is unknown, only a run without an error makes it known.
func UntilKnown(run func() error) error {
	var unknown error
	for range commitAttempts {
		err := run()
		if MayBeApplied(err) {
			unknown = err
		}
		if err == nil || unknown == nil {
			return err
		}
	}
	return unknown
}
