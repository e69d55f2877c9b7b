package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// exitOf is the exit code of a request that [retry.Do] has ended.
func exitOf(ended error) int {
	gaveUp, isRetry := errors.AsType[*retry.Error](ended)
	switch {
	case errors.Is(ended, context.Canceled):
		return exitInterrupted
	case isRetry && gaveUp.Verdict.Retry:
		return exitGaveUp
	default:
		return exitFailure
	}
}

// repeats is how requests are repeated, which is said on standard error.
func repeats(std streams) retry.Policy {
	return retry.Policy{OnRetry: func(r retry.Retry) {
		what := fmt.Sprint(r.Outcome.Status, " ", r.Outcome.Code)
		if r.Outcome.Err != nil {
			what = r.Outcome.Err.Error()
		}
		fmt.Fprintf(std.stderr, "attempt %d: %s (%s); again in %s\n", //nolint:errcheck // it is no reason to stop
			r.Attempt, r.Verdict.Reason, oneLine(what), r.Wait.Round(10*time.Millisecond))
	}}
}
