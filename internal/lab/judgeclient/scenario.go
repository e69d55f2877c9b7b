package judgeclient

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Scenario is a script: what the server does about each request, and when the
// client is ended and started again.
type Scenario struct {
	Name string
	// About says in a sentence what happens.
	About string
	// Profiles are those that it is played to.
	Profiles []Profile

	stages []stage
	// timed says that the gaps between attempts are the client's own delays,
	// undisturbed by other batches.
	timed bool
	// events and batch ask an events client for so many events, and for
	// batches of at most so many; 0 leaves it to the client.
	events, batch int
	needs         need
}

// need is what a scenario cannot do without.
type need uint8

const (
	// needEnvelope: answers that only exist in our envelope.
	needEnvelope need = 1 << iota
	// needRejects: a success can reject single items.
	needRejects
	// needClock: the client takes LAB_NOW for the present time.
	needClock
	// needRestarts: the lab starts the client itself.
	needRestarts
)

// stage is one start of the client.
type stage struct {
	// steps are answered in order, to each unit of work on its own in the
	// profile Keyed; then is answered after them.
	steps []Answer
	then  Answer
	// outage, in the client's unit, is how long the first step is answered;
	// the script goes on after it.
	outage time.Duration
	// kill ends the client with kill -9 when a request is stuck.
	kill bool
	// enough ends the client after so many requests; 0 never does.
	enough int
	// otherKey gives the client a key of another kind.
	otherKey bool
	// nextDeploy gives the client the environment of the next deploy.
	nextDeploy bool
	// later moves LAB_NOW.
	later time.Duration
	// refresh is answered to who spends a refresh token.
	refresh Answer
}

const (
	// enoughRefused is when a client has shown that it repeats a refusal.
	enoughRefused = 24
	// enoughAttempts is when a client has shown that it never gives up.
	enoughAttempts = 100
	// outage is how long the server fails where requests could overlap, in the
	// client's unit: three attempts of a client that waits 1 s and 2 s.
	outage = 5 * time.Second
	// tooOld is past the 47 h after which nothing leaves a buffer.
	tooOld = 47*time.Hour + 10*time.Minute
)

var (
	repeating = []Profile{Events, Keyed, Deploy, Replay}
	buffered  = []Profile{Events, Replay}
	every     = []Profile{Events, Keyed, Mutation, Deploy, Session, Replay}
)

// script is a stage that answers steps and then succeeds.
func script(steps ...Answer) stage { return stage{steps: steps} }

// Scenarios are all of them, in a fixed order.
func Scenarios() []*Scenario {
	return slices.Concat(failureScenarios(), restartScenarios(), otherScenarios(), sessionScenarios(), refusalScenarios())
}

func failureScenarios() []*Scenario {
	return []*Scenario{
		{
			Name: "accepted", About: "Everything succeeds at once.", Profiles: every,
			stages: []stage{script()},
		},
		{
			Name: "internal", About: "500 four times, then success.", Profiles: repeating, timed: true,
			stages: []stage{script(internal, internal, internal, internal)},
		},
		{
			Name: "internal-again", About: "500 four times, then success: the same delays a second time, to tell jitter.", Profiles: repeating, timed: true,
			stages: []stage{script(internal, internal, internal, internal)},
		},
		{
			Name: "unavailable", About: "503 twice, the change perhaps applied; then success, for keyed work a replay.", Profiles: repeating,
			stages: []stage{{steps: []Answer{unavailable, unavailable}, then: replayed}},
		},
		{
			Name: "no-answer", About: "The connection is cut after the work was done, a proxy answers 502, an answer is cut short; then success, for keyed work a replay.", Profiles: repeating,
			stages: []stage{{steps: []Answer{lost, badGateway, cut}, then: replayed}},
		},
		{
			Name: "retry-after", About: "429 with Retry-After in seconds, then with an HTTP date: longer than the client's own delays.", Profiles: slices.Concat(repeating, []Profile{Mutation}),
			stages: []stage{script(limited(false), limited(true))},
		},
		{
			Name: "retryable-conflict", About: "409 privacy_job_active with details.retryable true, then success.", Profiles: repeating, needs: needEnvelope,
			stages: []stage{script(privacyJob)},
		},
		{
			Name: "mutation-500", About: "500 for ever.", Profiles: []Profile{Mutation},
			stages: []stage{{then: internal, enough: enoughRefused}},
		},
		{
			Name: "mutation-503", About: "503 for ever, the change perhaps applied.", Profiles: []Profile{Mutation},
			stages: []stage{{then: unavailable, enough: enoughRefused}},
		},
		{
			Name: "mutation-lost", About: "The connection is cut after the work was done.", Profiles: []Profile{Mutation},
			stages: []stage{{then: lost, enough: enoughRefused}},
		},
		{
			Name: "mutation-proxy", About: "A proxy answers 502 for ever.", Profiles: []Profile{Mutation},
			stages: []stage{{then: badGateway, enough: enoughRefused}},
		},
	}
}

func restartScenarios() []*Scenario {
	return []*Scenario{
		{
			Name: "give-up", About: "500 until the client gives up; it is started again and all is well.", Profiles: repeating, timed: true, needs: needRestarts,
			stages: []stage{{then: internal, enough: enoughAttempts}, script()},
		},
		{
			Name: "kill", About: "The client is killed while its second attempt is under way, and started again.", Profiles: repeating, needs: needRestarts,
			stages: []stage{{steps: []Answer{internal}, then: stuck, kill: true}, {then: replayed}},
		},
		{
			Name: "other-key", About: "The client is killed with unsent events, started with a key of another kind, and then with the first one.", Profiles: []Profile{Events}, needs: needRestarts,
			stages: []stage{{then: stuck, kill: true}, {then: success, otherKey: true}, script()},
		},
		{
			Name: "aged", About: "The client is killed with unsent events and started again 47 hours later.", Profiles: []Profile{Events}, needs: needRestarts | needClock,
			stages: []stage{{then: stuck, kill: true}, {then: success, later: tooOld}},
		},
		{
			Name: "deploy-rerun", About: "The same CI step is run again, with the next attempt's number.", Profiles: []Profile{Deploy}, needs: needRestarts,
			stages: []stage{script(), {then: replayed}},
		},
		{
			Name: "deploy-next", About: "The step is run for one deploy and then for the next.", Profiles: []Profile{Deploy}, needs: needRestarts,
			stages: []stage{script(), {nextDeploy: true}},
		},
	}
}

func otherScenarios() []*Scenario {
	return []*Scenario{
		{
			Name: "rejected", About: "The first item is rejected, the others are accepted; then the client is started again.", Profiles: []Profile{Events}, needs: needRejects,
			stages: []stage{{steps: []Answer{{Rejected: 1}}, enough: enoughRefused}, script()},
		},
		{
			Name: "lanes", About: "Several batches wait while the server fails slowly.", Profiles: []Profile{Events}, events: 20, batch: 4,
			stages: []stage{{outage: outage, steps: []Answer{slowInternal}}},
		},
	}
}

func sessionScenarios() []*Scenario {
	only := []Profile{Session}
	return []*Scenario{
		{
			Name: "expired", About: "The access token has expired; a refreshed one works.", Profiles: only, needs: needEnvelope,
			stages: []stage{script(expired)},
		},
		{
			Name: "expired-for-ever", About: "Every access token has expired.", Profiles: only, needs: needEnvelope,
			stages: []stage{{then: expired, enough: enoughRefused}},
		},
		{
			Name: "refresh-refused", About: "The access token has expired, and so has the refresh token.", Profiles: only, needs: needEnvelope,
			stages: []stage{{then: expired, enough: enoughRefused, refresh: Answer{Status: 401, Code: "unauthenticated"}}},
		},
	}
}

func refusalScenarios() []*Scenario {
	out := make([]*Scenario, 0, len(refusals))
	for _, r := range refusals {
		s := &Scenario{
			Name: "refused-" + r.name, About: "Every request is answered with " + r.answer.String() + ".", Profiles: r.profiles,
			stages: []stage{{then: r.answer, enough: enoughRefused}},
		}
		if s.Profiles == nil {
			s.Profiles = every
		}
		if r.envelope {
			s.needs = needEnvelope
		}
		out = append(out, s)
	}
	return out
}

// missing says what a scenario lacks to be played, or "".
func (s *Scenario) missing(p *Params) string {
	switch {
	case s.needs&needEnvelope != 0 && !p.API.Envelope:
		return "the API " + p.API.Name + " has no such answer"
	case s.needs&needRejects != 0 && p.API.Rejected == nil:
		return "the API " + p.API.Name + " rejects no single items"
	case s.needs&needClock != 0 && !p.Clock:
		return "a client cannot be forced to move its clock; if it takes LAB_NOW for the present time, say so with --clock"
	case s.needs&needRestarts != 0 && p.Attached:
		return "an attached client is not restarted"
	default:
		return ""
	}
}

// choose returns the scenarios of a run in the order of its seed, or an error
// about a name that the profile does not know.
func choose(p *Params) ([]*Scenario, error) {
	var out []*Scenario
	var names []string
	for _, s := range Scenarios() {
		if !slices.Contains(s.Profiles, p.Profile) {
			continue
		}
		names = append(names, s.Name)
		if len(p.Scenarios) > 0 && !slices.Contains(p.Scenarios, s.Name) {
			continue
		}
		if s.missing(p) == "" {
			out = append(out, s)
		}
	}
	for _, name := range p.Scenarios {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the profile %s has no scenario %q; it has %s", p.Profile, name, strings.Join(names, ", "))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no profile %q", string(p.Profile))
	}
	random := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // the order is to be repeatable
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}
