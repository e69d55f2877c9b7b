// Package judgeclient owns the judgement of HTTP clients: a server that
// misbehaves on a script ([Scenario]), what it saw of the client ([Record]),
// and the rules by which that is judged ([Checks]).
//
// The rules are pure: records in, verdicts out. They look at requests, never
// at the client's inside, and read a request only through the [API] that says
// where its items, ids and times are. What must hold:
//
//   - No verdict is better than what was seen. A rule without an occasion to
//     break it is not tested; a failure always names the requests that show it.
//   - The client is free to send what it likes in its first attempt; only what
//     it does after an answer, or for want of one, is judged.
//   - A fact is recognised by its content, not by its id: so an id or key that
//     is made anew for each attempt is found out.
//   - The package sends nothing: it answers on addresses that it is given.
package judgeclient

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// Profile is a way of using a server that has rules of its own.
type Profile string

// The profiles.
const (
	// Events: items with ids, sent in batches and kept until they are
	// accepted.
	Events Profile = "events"
	// Keyed: units of work, each sent with an Idempotency-Key.
	Keyed Profile = "keyed"
	// Mutation: a change without a key.
	Mutation Profile = "mutation"
	// Deploy: a deploy marker from CI/CD; the step is run again.
	Deploy Profile = "deploy"
	// Session: calls with an access token that expires.
	Session Profile = "session"
	// Replay: chunks of session recordings, known by their number.
	Replay Profile = "replay"
)

// Profiles are all of them.
var Profiles = []Profile{Events, Keyed, Mutation, Deploy, Session, Replay}

// The defaults of [Params].
const (
	DefaultScale       = 1.0
	DefaultMaxAttempts = 20
	DefaultParallel    = 4
)

// Params are the settings of a run.
type Params struct {
	Profile Profile
	API     API
	// Scenarios are the names of those to be run; none means all of the
	// profile.
	Scenarios []string
	// Subject is the client under test; Name is how the report calls it.
	Subject Subject
	Name    string
	// Scale is the client's unit of delay in seconds: 0.05 if its first delay
	// is 50 ms instead of 1 s. 0 means DefaultScale.
	Scale float64
	// MaxAttempts is how many attempts for one fact in one run still count as
	// bounded; 0 means DefaultMaxAttempts.
	MaxAttempts int
	// Timeout bounds one run of the client; 0 means 15 s and 240 delays.
	Timeout time.Duration
	// Parallel is how many scenarios run at once; 0 means DefaultParallel.
	Parallel int
	// Seed orders the scenarios.
	Seed uint64
	// Attached says that the client is started by somebody else and outlives
	// a scenario: there are no restarts, and no exit codes.
	Attached bool
	// Clock says that the client takes LAB_NOW for the present time.
	Clock bool
	// CI is the CI system whose variables a deploy step finds.
	CI string
	// Folder is where each scenario gets its LAB_OUTBOX.
	Folder string
	// Listen opens the address of one scenario; nil means a free port of the
	// loopback interface.
	Listen func() (net.Listener, error)
	// OnScenario, if set, is called when a scenario begins, with its address,
	// from several goroutines at once.
	OnScenario func(s *Scenario, url string)
}

func (p *Params) withDefaults() {
	if p.Scale <= 0 {
		p.Scale = DefaultScale
	}
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	if p.Timeout <= 0 {
		p.Timeout = 15*time.Second + p.scaled(240*time.Second)
	}
	if p.Parallel <= 0 {
		p.Parallel = DefaultParallel
	}
	if p.Attached {
		p.Parallel = 1
	}
	if p.Listen == nil {
		p.Listen = loopback
	}
}

// scaled is a time of the contract in the client's own unit.
func (p *Params) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.Scale)
}

// Run plays the scenarios to the client and judges what it did. It returns an
// error if a scenario could not be played or ctx is done; what the client does
// is never an error.
func Run(ctx context.Context, p Params) (*report.Report, error) {
	p.withDefaults()
	scenarios, err := choose(&p)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	records, err := play(ctx, &p, scenarios)
	if err != nil {
		return nil, fmt.Errorf("lab client: %w", err)
	}
	return &report.Report{
		Tool: "lab client", Subject: p.Name, Seed: p.Seed,
		Settings: []report.Setting{
			{Name: "profile", Value: string(p.Profile)},
			{Name: "api", Value: p.API.Name},
			{Name: "scale", Value: fmt.Sprint(p.Scale)},
			{Name: "scenarios", Value: fmt.Sprint(len(records))},
		},
		Started: started, Took: time.Since(started),
		Checks: Judge(&p, records),
	}, nil
}

func loopback() (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(context.Background(), "tcp", "127.0.0.1:0")
}
