package judgeclient

import (
	"net/http"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/api"
)

// repeatChecks are about what is sent again after which answer.
func repeatChecks() []Check {
	return []Check{
		{
			ID: "rejected-not-resent", Title: "Items listed in rejected are not sent again", Profiles: []Profile{Events},
			Source: "intake: a rejected item is refused for its content; a repeat gets the same refusal",
			How:    "the first item is rejected; neither the same run nor a new one may send it again",
			judge:  rejectedStay,
		},
		{
			ID: "rejected-logged", Title: "A rejected item is logged with its code", Profiles: []Profile{Events},
			Source: "client checklist: the code invalid_event_id shows up in the log",
			How:    "the output of the command must hold the code; a log that goes elsewhere cannot be seen",
			judge:  rejectedLogged,
		},
		{
			ID: "whole-batch-after-500", Title: "After a 500 the whole batch is sent again", Profiles: []Profile{Events, Replay},
			Source: "intake: 500 means that nothing was accepted; the whole batch is sent again",
			How:    "every item of a batch answered with 500 must come again, in whatever batches",
			judge:  wholeBatch,
		},
		{
			ID: "no-answer-repeated", Title: "What got no answer is sent again", Profiles: []Profile{Events, Replay},
			Source: "retry table: no answer, or a proxy's 502, 503, 504: events with ids are repeated",
			How:    "connections are cut, a proxy answers, an answer is cut short; the items must come again",
			judge:  func(f *findings) { comesAgain(f, func(a Answer) bool { return a.Lost || a.Cut || a.Foreign }) },
		},
		{
			ID: "503-perhaps-applied", Title: "A 503 is not read as \"nothing happened\"", Profiles: repeating,
			Source: "client checklist: 503 is not treated as though nothing had happened; some mean that the change was made",
			How:    "whatever comes again after a 503 must carry the id or key of before",
			judge:  afterUnavailable,
		},
		{
			ID: "503-read-first", Title: "A mutation without a key is not sent again after a 503", Profiles: []Profile{Mutation},
			Source: "client checklist: 503 is not treated as though nothing had happened: first the state is read",
			How:    "the same request may not come again by itself; reads may",
			judge: func(f *findings) {
				notAgain(f, func(a Answer) bool { return a.is(http.StatusServiceUnavailable) && !a.Foreign })
			},
		},
		{
			ID: "no-automatic-repeat", Title: "A mutation without a key is not repeated automatically", Profiles: []Profile{Mutation},
			Source: "client checklist: ordinary mutations are not repeated automatically; first the state is read",
			How:    "after a 500, a cut connection or a proxy's 502 the same request may not come again by itself; reads may",
			judge: func(f *findings) {
				notAgain(f, func(a Answer) bool { return a.Lost || a.Cut || a.Foreign || a.is(http.StatusInternalServerError) })
			},
		},
		{
			ID: "replay-is-success", Title: "A replay counts as a success", Profiles: []Profile{Keyed, Deploy, Replay},
			Source: "client checklist: an answer with Idempotency-Replayed, or duplicate, is a success and no error",
			How:    "after a replay nothing is sent again, and the command exits with 0",
			judge:  replaySucceeds,
		},
		{
			ID: "one-request-after-failure", Title: "After a failure, one request at a time per key until one succeeds", Profiles: []Profile{Events, Replay},
			Source: "delays: do not repeat in parallel with one ingest key, it has one rate budget",
			How:    "failures are held back so that requests can overlap; none may begin while another is open, between a failure and the next success",
			judge:  oneAtATime,
		},
	}
}

func rejectedStay(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			for i := range min(request.Answer.Rejected, len(request.Items)) {
				f.rejectedItem(r, request, &request.Items[i])
			}
		}
	}
	f.none("no item was rejected: the scenario was not played, or this API rejects no single items")
}

func (f *findings) rejectedItem(r *Record, request *Request, item *Item) {
	for _, later := range r.Requests {
		if later.N <= request.N {
			continue
		}
		for i := range later.Items {
			if again := &later.Items[i]; again.Fact == item.Fact || item.ID != "" && again.ID == item.ID {
				f.broken(r, "%s was rejected in request %d and came again in request %d of run %d", item.Name, request.N, later.N, later.Run)
				return
			}
		}
	}
	f.kept("%s was rejected and never came again", item.Name)
}

func rejectedLogged(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if request.Answer.Rejected == 0 || len(request.Items) == 0 {
				continue
			}
			if strings.Contains(r.exit(request.Run).Output, string(api.RejectInvalidEventID)) {
				f.kept("the output names the code")
			} else {
				f.unclear("the output of the command does not name invalid_event_id; if it is logged elsewhere, look there")
			}
		}
	}
	f.none("no item was rejected: the scenario was not played, or this API rejects no single items")
}

func wholeBatch(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if !request.Answer.is(http.StatusInternalServerError) || request.Answer.Foreign || r.cutOff(request) {
				continue
			}
			missing := r.missing(request)
			switch {
			case len(missing) == 0:
				f.kept("scenario %s: all %d items came again after a 500", r.Scenario.Name, len(request.Items))
			case len(missing) == len(request.Items):
				f.broken(r, "none of the %d items of %v came again", len(missing), request)
			default:
				f.broken(r, "%d of the %d items of %v never came again", len(missing), len(request.Items), request)
			}
		}
	}
	f.none("no batch was answered with 500")
}

// missing are the items of a request that no later one carries: neither what
// they say nor their id.
func (r *Record) missing(request *Request) []*Item {
	var out []*Item
	for i := range request.Items {
		item := &request.Items[i]
		same := func(other Item) bool { return other.Fact == item.Fact || item.ID != "" && other.ID == item.ID }
		if !slices.ContainsFunc(r.Requests, func(later *Request) bool {
			return later.N > request.N && slices.ContainsFunc(later.Items, same)
		}) {
			out = append(out, item)
		}
	}
	return out
}

// cutOff reports whether it is no fault of these rules that a request was not
// repeated: the client was ended before, or this was its last attempt of
// several. What becomes of it then is a matter of the buffer.
func (r *Record) cutOff(request *Request) bool {
	if exit := r.exit(request.Run); exit.Killed || exit.TimedOut {
		return true
	}
	for _, earlier := range r.Requests {
		if earlier.N < request.N && earlier.Run == request.Run && earlier.failed() && (earlier.shares(request) || earlier.sharesID(request)) {
			return true
		}
	}
	return false
}

// comesAgain wants the items of failed requests to come again.
func comesAgain(f *findings, after func(Answer) bool) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if len(request.Items) == 0 || !after(request.Answer) || r.cutOff(request) {
				continue
			}
			if missing := r.missing(request); len(missing) > 0 {
				f.broken(r, "%d of the %d items of %v never came again", len(missing), len(request.Items), request)
				continue
			}
			f.kept("scenario %s: all came again after %q", r.Scenario.Name, request.Answer)
		}
	}
	f.none("no request met such an end")
}

func afterUnavailable(f *findings) {
	for _, r := range f.records {
		for _, p := range r.pairs() {
			if p.before.request.Answer.Foreign || !p.before.request.Answer.is(http.StatusServiceUnavailable) {
				continue
			}
			if p.before.item.ID != "" && p.before.item.ID == p.after.item.ID {
				f.kept("scenario %s: repeated with the id of before", r.Scenario.Name)
				continue
			}
			f.broken(r, "%s came again after a 503 under another id (%q, then %q): if the change was made, it is now made twice", p.before.item.Name, short(p.before.item.ID), short(p.after.item.ID))
		}
	}
	f.none("nothing came again after a 503")
}

// notAgain wants requests with an answer not to be repeated in the same run.
func notAgain(f *findings, after func(Answer) bool) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if len(request.Items) == 0 || !after(request.Answer) {
				continue
			}
			if again := r.next(request); again != nil {
				f.broken(r, "%s came again in request %d, %s after %v", request.Items[0].Name, again.N, seconds(again.Arrived-request.Ended), request)
				continue
			}
			f.kept("scenario %s: not repeated after %q", r.Scenario.Name, request.Answer)
		}
	}
	f.none("no request met such an end")
}

func replaySucceeds(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if len(request.Items) == 0 || !request.Answer.Replayed {
				continue
			}
			exit := r.exit(request.Run)
			switch again := r.next(request); {
			case again != nil:
				f.broken(r, "%v was a replay, and request %d asked for the same again", request, again.N)
			case !r.succeeded(request.Run):
				f.unclear("a replay came, but other work of the same run failed, so that the exit code says nothing")
			case exit.Known && !exit.TimedOut && exit.Code != 0:
				f.broken(r, "the command exited with %d after a replay (request %d)", exit.Code, request.N)
			case exit.Known && !exit.TimedOut:
				f.kept("scenario %s: a replay, and the command exited with 0", r.Scenario.Name)
			default:
				f.unclear("nothing was sent again after a replay, but the command had no exit code")
			}
		}
	}
	f.none("no attempt lived to meet a replay")
}

// succeeded reports whether the last request about each fact of a run did.
func (r *Record) succeeded(run int) bool {
	last := map[string]*Request{}
	for _, request := range r.Requests {
		for i := range request.Items {
			if request.Run == run {
				last[request.Items[i].Fact] = request
			}
		}
	}
	for _, request := range last {
		if request.failed() {
			return false
		}
	}
	return true
}
