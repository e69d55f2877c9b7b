package judgeclient

import "net/http"

// sessionChecks are about access tokens that expire.
func sessionChecks() []Check {
	only := []Profile{Session}
	return []Check{
		{
			ID: "refresh-once", Title: "An expired access token is refreshed at most once for a call", Profiles: only,
			Source: "retry table: 401: refresh the access token and call anew, which is no retry; once",
			How:    "the token has expired once, for ever, or the refresh is refused; more than one refresh, or more than one call after it, fails",
			judge:  refreshedOnce,
		},
		{
			ID: "refreshed-token-used", Title: "The call is made anew with the new access token", Profiles: only,
			Source: "retry table: 401: refresh the access token and call anew",
			How:    "after the refresh the call must come with the token that it brought",
			judge:  newTokenUsed,
		},
	}
}

// expiredCalls counts the calls that heard that their token has expired.
func (r *Record) expiredCalls() (calls, refreshes int) {
	for _, request := range r.Requests {
		switch {
		case request.Refresh:
			refreshes++
		case request.Answer.is(http.StatusUnauthorized, expired.Code):
			calls++
		}
	}
	return calls, refreshes
}

func refreshedOnce(f *findings) {
	for _, r := range f.records {
		calls, refreshes := r.expiredCalls()
		allowed := 1
		if refreshes > 0 && !refreshRefused(r) {
			allowed = 2
		}
		switch facts, _ := r.attempts(); {
		case calls == 0:
		case refreshes > len(facts):
			f.broken(r, "the access token was refreshed %d times for %d calls", refreshes, len(facts))
		case calls > allowed*len(facts):
			f.broken(r, "%d calls were made with expired tokens, %d would do", calls, allowed*len(facts))
		case refreshes == 0:
			f.none("the client refreshed no token")
		default:
			f.kept("scenario %s: %d refresh, %d calls with expired tokens", r.Scenario.Name, refreshes, calls)
		}
	}
	f.none("no access token had expired: the scenarios were not played")
}

func refreshRefused(r *Record) bool { return r.Scenario.stages[0].refresh.Status != 0 }

func newTokenUsed(f *findings) {
	for _, r := range f.records {
		refreshed := false
		for _, request := range r.Requests {
			switch {
			case request.Refresh:
				refreshed = !request.failed()
			case !refreshed || len(request.Items) == 0:
			case request.Credential == NewToken:
				f.kept("scenario %s: request %d came with the new token", r.Scenario.Name, request.N)
			default:
				f.broken(r, "request %d came with the %s after the refresh", request.N, request.Credential)
			}
		}
	}
	f.none("the client refreshed no token")
}
