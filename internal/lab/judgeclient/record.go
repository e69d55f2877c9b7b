package judgeclient

import (
	"fmt"
	"strings"
	"time"
)

// Item is one fact in a request: an event, or the unit of work that a keyed
// request asks for.
type Item struct {
	// ID is the event_id or key as it was sent; "" if there was none.
	ID string
	// TS is the time as it was sent, raw JSON; "" if there was none.
	TS string
	// Fact is a hash of what the item says, without its id and times.
	Fact string
	// Name is for evidence: what the item is called.
	Name string
}

// Request is one request as the server saw it. Times are counted from the
// start of the scenario.
type Request struct {
	// N numbers the requests of a scenario in order of arrival, from 1; Run
	// is the start of the client that it belongs to, from 1.
	N, Run int
	// Arrived is when its head was there, Ended when the answer was written
	// or the connection was cut.
	Arrived, Ended time.Duration
	Method, Path   string
	// Credential names the key that it carried, as the lab calls it.
	Credential Credential
	// Keys are its Idempotency-Key headers.
	Keys []string
	// Items are the facts of a request that the profile is about; none means
	// that it is another one, such as a read.
	Items []Item
	// Body is a hash of the body without its Content-Encoding.
	Body string
	// Problem says why the items could not be read; "" if they could.
	Problem string
	// Answer is what it was answered with; Due, when Answer has a wait, is
	// the earliest time for another attempt.
	Answer Answer
	Due    time.Duration
	// Refresh marks a request that spends a refresh token.
	Refresh bool

	// open says that it is not answered yet.
	open bool
}

// failed reports whether the client did not hear of a success.
func (r *Request) failed() bool { return !r.Answer.success() }

// String names a request in evidence.
func (r *Request) String() string {
	return fmt.Sprintf("request %d at %s (%s)", r.N, seconds(r.Arrived), r.Answer)
}

// shares reports whether two requests carry the same fact.
func (r *Request) shares(other *Request) bool {
	for i := range r.Items {
		if other.find(r.Items[i].Fact) != nil {
			return true
		}
	}
	return false
}

// sharesID reports whether two requests carry the same id.
func (r *Request) sharesID(other *Request) bool {
	for i := range r.Items {
		for j := range other.Items {
			if id := r.Items[i].ID; id != "" && id == other.Items[j].ID {
				return true
			}
		}
	}
	return false
}

// find returns the item about a fact, or nil.
func (r *Request) find(fact string) *Item {
	for i := range r.Items {
		if r.Items[i].Fact == fact {
			return &r.Items[i]
		}
	}
	return nil
}

// Exit is how one run of the client ended.
type Exit struct {
	// Code is its exit code, and Known says that there is one: a client that
	// was killed, or that is not the lab's own process, has none.
	Code  int
	Known bool
	// Killed says that the script ended it; TimedOut, that it was still
	// running when its time was over.
	Killed, TimedOut bool
	// Output is what it printed, cut off at 64 KiB.
	Output string
}

// Record is all that was seen in one scenario.
type Record struct {
	Scenario *Scenario
	// Began is when the scenario did, by the wall clock.
	Began time.Time
	// Requests are in order of arrival; Exits have one entry a run.
	Requests []*Request
	Exits    []Exit
	// Ended is when each run ended.
	Ended []time.Duration
}

// attempt is one fact in one request.
type attempt struct {
	request *Request
	item    *Item
}

// pair is a fact that was sent, did not succeed, and was sent again.
type pair struct{ before, after attempt }

// attempts lists, by fact, where it was sent, in order of arrival. Facts are
// in the order in which they first came.
func (r *Record) attempts() (facts []string, by map[string][]attempt) {
	by = map[string][]attempt{}
	for _, request := range r.Requests {
		for i := range request.Items {
			item := &request.Items[i]
			if by[item.Fact] == nil {
				facts = append(facts, item.Fact)
			}
			by[item.Fact] = append(by[item.Fact], attempt{request, item})
		}
	}
	return facts, by
}

// pairs are the repeats after a failure, of all facts.
func (r *Record) pairs() []pair {
	var out []pair
	facts, by := r.attempts()
	for _, fact := range facts {
		for i := 1; i < len(by[fact]); i++ {
			before, after := by[fact][i-1], by[fact][i]
			if before.request.failed() && before.request != after.request {
				out = append(out, pair{before, after})
			}
		}
	}
	return out
}

// sameRun reports whether the client lived on between the two.
func (p pair) sameRun() bool { return p.before.request.Run == p.after.request.Run }

// next returns the first request after r in the same run that carries one of
// its facts, or nil.
func (r *Record) next(request *Request) *Request {
	for _, later := range r.Requests {
		if later.N > request.N && later.Run == request.Run && later.shares(request) {
			return later
		}
	}
	return nil
}

// exit returns how a run ended; a run that is not there has no exit.
func (r *Record) exit(run int) Exit {
	if run < 1 || run > len(r.Exits) {
		return Exit{}
	}
	return r.Exits[run-1]
}

// seconds writes a time as evidence shows it.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

// short cuts a value so that evidence stays readable.
func short(s string) string {
	const most = 60
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
