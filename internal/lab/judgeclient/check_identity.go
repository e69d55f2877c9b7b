package judgeclient

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

var keyed = []Profile{Keyed, Deploy}

// identityChecks are about ids, keys and times: made once, never changed.
func identityChecks() []Check {
	return []Check{
		{
			ID: "id-canonical-uuid", Title: "Every event_id is a canonical UUID, neither nil nor max", Profiles: []Profile{Events},
			Source: "client checklist: the value of event_id is a canonical UUID",
			How:    "each id must be 36 characters, hyphenated, hexadecimal; an item without one fails",
			judge:  canonicalIDs,
		},
		{
			ID: "id-at-the-fact", Title: "The event_id is made at the fact and stored beside it", Profiles: []Profile{Events},
			Source: "client checklist: event_id is made at the moment of the fact, kept beside it, and does not change between attempts",
			How:    "passes if the same id came again after the client was killed and started anew; fails if it changed; the time within a UUIDv7 must be the event's",
			judge:  madeAtFact,
		},
		{
			ID: "id-stable-across-attempts", Title: "The event_id is the same on every attempt", Profiles: []Profile{Events},
			Source: "client checklist: event_id does not change between attempts",
			How:    "events are recognised by their content; whenever one that had failed came again, the ids are compared",
			judge:  func(f *findings) { stable(f, true, "id") },
		},
		{
			ID: "id-stable-after-restart", Title: "The event_id is the same after a restart", Profiles: []Profile{Events},
			Source: "client checklist: event_id is kept beside the fact",
			How:    "as above, across a restart of the client",
			judge:  func(f *findings) { stable(f, false, "id") },
		},
		{
			ID: "key-well-formed", Title: "There is exactly one Idempotency-Key, and it is well formed", Profiles: keyed,
			Source: "key rules: one header; keyed work 1–190 characters, a deploy marker 8–128 visible ASCII characters without a comma",
			How:    "every request that asks for the work is looked at",
			judge:  wellFormedKeys,
		},
		{
			ID: "key-stable-across-attempts", Title: "The Idempotency-Key is the same on every attempt", Profiles: keyed,
			Source: "choice of a key: a key made for each attempt protects that attempt only; every repeat of the work carries its key",
			How:    "units of work are recognised by path and body; whenever one that had failed came again, the keys are compared",
			judge:  func(f *findings) { stable(f, true, "key") },
		},
		{
			ID: "key-stable-after-restart", Title: "The Idempotency-Key is the same after a restart or a second run", Profiles: keyed,
			Source: "choice of a key: compose it from the unit of work; in CI/CD a value that is stable for one deploy",
			How:    "the same work is asked for again by a new process; the keys are compared",
			judge:  sameKeyAgain,
		},
		{
			ID: "key-differs-per-unit", Title: "Another unit of work has another Idempotency-Key", Profiles: keyed,
			Source: "choice of a key: the next unit of work gets a new one; with a constant, the second deploy makes no marker",
			How:    "no key may come with another unit of work after it has succeeded",
			judge:  otherKeys,
		},
		{
			ID: "chunk-stable", Title: "A chunk keeps its number on every attempt and after a restart", Profiles: []Profile{Replay},
			Source: "session recordings: the identity is project, session and chunk number",
			How:    "chunks are recognised by their events; whenever one that had failed came again, the numbers are compared",
			judge:  func(f *findings) { stable(f, true, "chunk"); stable(f, false, "chunk") },
		},
		{
			ID: "chunk-numbered-once", Title: "No chunk number names two different chunks", Profiles: []Profile{Replay},
			Source: "session recordings: the first chunk with a number wins",
			How:    "no number may come with other events, whether the first was answered or not",
			judge:  numberedOnce,
		},
		{
			ID: "ts-stable", Title: "The time is the same on every attempt and after a restart", Profiles: []Profile{Events, Deploy},
			Source: "client checklist: ts is not computed anew for another attempt; in CI/CD it is the same or there is none",
			How:    "wherever a fact came again, the times are compared as instants",
			judge:  stableTimes,
		},
		{
			ID: "body-stable", Title: "The body of keyed work is the same on every attempt", Profiles: keyed,
			Source: "key rules: another body under a taken key is a conflict; executions are compared byte for byte",
			How:    "wherever a key that had failed came again, the bodies are compared: bytes, for a deploy marker members",
			judge:  stableBodies,
		},
		{
			ID: "key-kind-stable", Title: "An event leaves only with the kind of key it was first sent with", Profiles: []Profile{Events},
			Source: "client checklist: the repeat goes out with the same kind of key as the first attempt",
			How:    "the client is started with a key of another kind while it has unsent events, and then with the first again",
			judge:  sameKind,
		},
	}
}

func canonicalIDs(f *findings) {
	n := 0
	for _, r := range f.records {
		for _, request := range r.Requests {
			for i := range request.Items {
				item := &request.Items[i]
				if problem := faultOfID(item.ID); problem != "" {
					f.broken(r, "request %d, %s: %s", request.N, item.Name, problem)
				}
				n++
			}
		}
	}
	if n > 0 {
		f.kept("%d ids looked at", n)
	}
}

// faultOfID says what is wrong with an event_id, or "".
func faultOfID(s string) string {
	if s == "" {
		return "no event_id: the server makes one for each attempt"
	}
	id, err := uuid.Parse(s)
	switch {
	case err != nil || len(s) != 36:
		return fmt.Sprintf("event_id %q is not a hyphenated UUID", short(s))
	case id == uuid.Nil, id == uuid.Max:
		return "event_id " + s + " is the nil or the max UUID"
	default:
		return ""
	}
}

// stable compares the ids of facts that came again in the same run, or in a
// later one.
func stable(f *findings, sameRun bool, what string) {
	for _, r := range f.records {
		n := 0
		for _, p := range r.pairs() {
			if p.sameRun() != sameRun || p.before.item.ID == "" {
				continue
			}
			if p.before.item.ID == p.after.item.ID {
				n++
				continue
			}
			f.broken(r, "%s had the %s %s in %v and %s in %v", p.before.item.Name, what, short(p.before.item.ID), p.before.request, short(p.after.item.ID), p.after.request)
		}
		if n > 0 {
			f.kept("scenario %s: %d repeats with the %s of before", r.Scenario.Name, n, what)
		}
	}
	f.none("nothing that had failed came again")
}

// atTheFact is how far the time within a UUIDv7 may be from the event's.
const atTheFact = 2 * time.Second

func madeAtFact(f *findings) {
	for _, r := range f.records {
		for _, p := range r.pairs() {
			switch {
			case p.before.item.ID == "":
			case p.before.item.ID != p.after.item.ID:
				f.broken(r, "%s got another id for %v", p.after.item.Name, p.after.request)
			case !p.sameRun() && r.exit(p.before.request.Run).Killed:
				f.kept("scenario %s: the id of %s was stored before the client was killed", r.Scenario.Name, p.before.item.Name)
			default:
				f.unclear("ids did not change, but nothing shows that they were stored before the first attempt")
			}
		}
		for _, request := range r.Requests {
			if r.Scenario.stages[request.Run-1].later > 0 {
				continue // its clock is not that of its ids
			}
			for i := range request.Items {
				lateID(f, r, request, &request.Items[i])
			}
		}
	}
	f.none("nothing that had failed came again")
}

// lateID compares the time within a UUIDv7 with the event's own, if that lies
// within the scenario: events of the past say nothing.
func lateID(f *findings, r *Record, request *Request, item *Item) {
	id, err := uuid.Parse(item.ID)
	at, ok := instant(item.TS)
	if err != nil || !ok || id.Version() != 7 || at.Before(r.Began.Truncate(time.Second)) {
		return
	}
	made := time.Unix(id.Time().UnixTime())
	if made.Sub(at) > atTheFact {
		f.broken(r, "request %d: %s happened at %s, and its id was made %s later", request.N, item.Name, item.TS, seconds(made.Sub(at)))
	}
}

// instant reads a time as it is sent: a string of RFC 3339, or milliseconds.
func instant(raw string) (time.Time, bool) {
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil {
		t, err := time.Parse(time.RFC3339Nano, s)
		return t, err == nil
	}
	var ms int64
	err := json.Unmarshal([]byte(raw), &ms)
	return time.UnixMilli(ms), err == nil
}

func wellFormedKeys(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			if len(request.Items) == 0 {
				continue
			}
			if problem := f.params.faultOfKeys(request.Keys); problem != "" {
				f.broken(r, "request %d, %s %s: %s", request.N, request.Method, short(request.Path), problem)
				continue
			}
			f.kept("every request had one key that is well formed")
		}
	}
}

// faultOfKeys says what is wrong with the key headers of a request, or "".
func (p *Params) faultOfKeys(keys []string) string {
	switch {
	case len(keys) == 0 || keys[0] == "":
		return "no " + p.API.KeyHeader
	case len(keys) > 1:
		return fmt.Sprintf("%d headers %s", len(keys), p.API.KeyHeader)
	}
	key, least, most := keys[0], 1, 190
	bad := unicode.IsControl
	if p.Profile == Deploy {
		least, most = 8, 128
		bad = func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }
	}
	n := utf8.RuneCountInString(key)
	switch {
	case n < least || n > most:
		return fmt.Sprintf("the key %q has %d characters; %d to %d are allowed", short(key), n, least, most)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, bad):
		return fmt.Sprintf("the key %q has characters that are not allowed", short(key))
	default:
		return ""
	}
}
