package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Action is what a client does after an answer.
type Action uint8

// The actions.
const (
	// Unlisted: the table does not know the answer. It is not repeated
	// unless the server says that it may be.
	Unlisted Action = iota
	// Repeat: send the same request again, with the same key and ids.
	Repeat
	// ReadFirst: the work may have been done; read the state, then decide
	// anew.
	ReadFirst
	// Change: the same request would meet the same end; a smaller or
	// narrower one may succeed.
	Change
	// Stop: a repeat gets the same refusal.
	Stop
)

// Rule is one row of the table: what to do about an answer, by kind of
// request.
type Rule struct {
	// Statuses are the HTTP statuses of the row; none means "no answer".
	Statuses []int
	// Codes are the codes of the row. None means any code, and with Foreign
	// only answers that are not in the envelope.
	Codes   []string
	Foreign bool
	// Mutation, Read, Event and Keyed are the actions for the four kinds.
	Mutation, Read, Event, Keyed Action
	// How completes the sentence "retry: …", in a few words.
	How string
}

// Table holds the rules; the first that matches counts. It is read only.
var Table = []Rule{
	{
		nil, nil, false, ReadFirst, Repeat, Repeat, Repeat,
		"no answer came",
	},
	{
		statuses(http.StatusTooManyRequests), nil, true, Repeat, Repeat, Repeat, Repeat,
		"a proxy limits the rate",
	},
	{
		statuses(408, 500, 502, 503, 504), nil, true, ReadFirst, Repeat, Repeat, Repeat,
		"a proxy answered in place of the server",
	},
	{
		statuses(http.StatusRequestTimeout), codes("request_timeout"), false, Repeat, Repeat, Repeat, Repeat,
		"the body arrived too slowly",
	},
	{
		statuses(http.StatusGatewayTimeout), codes("query_timeout"), false, Change, Change, Change, Change,
		"narrow the date range or the filters first",
	},
	{
		statuses(http.StatusTooManyRequests), codes("rate_limited"), false, Repeat, Repeat, Repeat, Repeat,
		"the rate budget of the key is used up",
	},
	{
		statuses(http.StatusTooManyRequests), codes("quota_exceeded", "trial_quota_exceeded"), false, Stop, Stop, Stop, Stop,
		"the quota is used up until the next period or payment",
	},
	{
		statuses(http.StatusInternalServerError), codes("internal"), false, ReadFirst, Repeat, Repeat, Repeat,
		"the server failed",
	},
	{
		statuses(http.StatusServiceUnavailable), codes("unavailable"), false, ReadFirst, Repeat, Repeat, Repeat,
		"the server cannot do this now",
	},
	{
		statuses(http.StatusConflict), codes("privacy_job_active"), false, Repeat, Repeat, Repeat, Repeat,
		"a privacy job is running",
	},
	{
		statuses(http.StatusConflict), nil, false, ReadFirst, ReadFirst, ReadFirst, ReadFirst,
		"it conflicts with the present state: read that, then decide anew",
	},
	{
		statuses(http.StatusRequestEntityTooLarge), nil, false, Change, Change, Change, Change,
		"the body is too large: make it smaller",
	},
	{
		statuses(400, 422), nil, false, Stop, Stop, Stop, Stop,
		"a repeat gets the same refusal",
	},
	{
		statuses(401, 402, 403), nil, false, Stop, Stop, Stop, Stop,
		"the credential does not allow it",
	},
	{
		statuses(404, 405, 415), nil, false, Stop, Stop, Stop, Stop,
		"the server does not offer this",
	},
	{
		statuses(502, 504), codes("model_error", "step_failed", "outcome_unknown", "execution_timeout"), false, Stop, Stop, Stop, Stop,
		"the execution failed",
	},
}

func statuses(s ...int) []int { return s }

func codes(c ...string) []string { return c }

// lookUp returns what the table says of an outcome, and why.
func lookUp(o Outcome) (Action, string) {
	if o.Err != nil {
		return lookUpError(o)
	}
	for _, r := range Table {
		if r.matches(o) {
			return r.action(o.Kind), r.How
		}
	}
	return Unlisted, fmt.Sprintf("the answer %d %s is not one that may be repeated", o.Status, o.Code)
}

// lookUpError judges an attempt without an answer. Three causes are final: the
// caller cancelled it, the server's certificate is not to be trusted, or it is
// no request that could be sent.
func lookUpError(o Outcome) (Action, string) {
	if errors.Is(o.Err, context.Canceled) {
		return Stop, "the request was cancelled"
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](o.Err); untrusted {
		return Stop, "the server's certificate is not trusted"
	}
	if _, unfit := errors.AsType[*unfitError](o.Err); unfit {
		return Stop, "the request cannot be sent"
	}
	return Table[0].action(o.Kind), Table[0].How
}

// unfitError is why a request was not sent at all, and never will be.
type unfitError struct{ err error }

func (e *unfitError) Error() string { return e.err.Error() }

func (e *unfitError) Unwrap() error { return e.err }

func (r Rule) matches(o Outcome) bool {
	if !slices.Contains(r.Statuses, o.Status) || (r.Foreign && o.Code != "") {
		return false
	}
	return len(r.Codes) == 0 || slices.Contains(r.Codes, o.Code)
}

func (r Rule) action(k Kind) Action {
	switch k {
	case Read:
		return r.Read
	case Event:
		return r.Event
	case Keyed:
		return r.Keyed
	case Mutation:
		return r.Mutation
	default:
		return r.Mutation
	}
}
