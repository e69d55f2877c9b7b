package judgeclient

import "net/http"

// refusalChecks are the rows of the retry table that say no, one check each,
// and the one conflict that may be repeated.
func refusalChecks() []Check {
	out := make([]Check, 0, len(refusals)+1)
	for _, row := range refusals {
		c := Check{
			ID: "not-repeated-" + row.name, Title: "Nothing is repeated after " + row.answer.String(), Profiles: row.profiles, Source: row.source,
			How:   "every request gets this answer; none may come again in the same run",
			judge: func(f *findings) { refused(f, row) },
		}
		switch row.answer.Status {
		case http.StatusRequestEntityTooLarge, http.StatusBadRequest, http.StatusUnprocessableEntity:
			c.How += ", but for smaller batches, which are other requests"
		case http.StatusUnauthorized:
			c.How += ", but for one after a refresh of the access token"
		}
		if c.Profiles == nil {
			c.Profiles = every
		}
		out = append(out, c)
	}
	return append(out, Check{
		ID: "repeated-409-retryable", Title: "A 409 with details.retryable is repeated", Profiles: repeating,
		Source: "retry table: 409 privacy_job_active is marked with details.retryable true and may be repeated",
		How:    "the first request gets it; it must come again",
		judge: func(f *findings) {
			comesAgain(f, func(a Answer) bool { return a.is(http.StatusConflict, codePrivacyJobActive) })
		},
	})
}

func refused(f *findings, row refusal) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if len(request.Items) == 0 || !request.Answer.is(row.answer.Status, row.answer.Code) {
				continue
			}
			again := r.next(request)
			switch {
			case again == nil:
				f.kept("not repeated: %v", request)
			case r.excused(request, again):
				f.kept("changed before it came again: %v, then %v", request, again)
			default:
				f.broken(r, "%s came again in request %d, %s after %v", request.Items[0].Name, again.N, seconds(again.Arrived-request.Ended), request)
			}
		}
	}
	f.none("no request was answered so")
}

// excused reports whether what came again is not the same request: a part of a
// batch that was too large, or of which one item may have spoiled the others;
// or one with a refreshed token after the first 401.
func (r *Record) excused(request, again *Request) bool {
	switch request.Answer.Status {
	case http.StatusRequestEntityTooLarge, http.StatusBadRequest, http.StatusUnprocessableEntity:
		return len(again.Items) < len(request.Items)
	case http.StatusUnauthorized:
		return again.Credential == NewToken && request.Credential != NewToken
	default:
		return false
	}
}
