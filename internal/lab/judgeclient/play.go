package judgeclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Subject is the client under test: it runs once, with the variables of env
// added to or taken from ("NAME" alone) its own environment, and returns when
// it has ended. When ctx is done it is ended at once, as by kill -9.
type Subject func(ctx context.Context, env []string) Exit

// play runs the scenarios, some at a time, and returns their records in the
// order of the scenarios.
func play(ctx context.Context, p *Params, scenarios []*Scenario) ([]*Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records := make([]*Record, len(scenarios))
	errs := make([]error, len(scenarios))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(p.Parallel, len(scenarios)) {
		workers.Go(func() {
			for i := range next {
				if records[i], errs[i] = playOne(ctx, p, scenarios[i]); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	for i := range scenarios {
		next <- i
	}
	close(next)
	workers.Wait()
	return records, errors.Join(errs...)
}

// playOne plays one scenario from its first start of the client to its last.
func playOne(ctx context.Context, p *Params, s *Scenario) (*Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	listener, err := p.Listen()
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	server := newStand(p, s, listener)
	url := "http://" + listener.Addr().String()
	if p.OnScenario != nil {
		p.OnScenario(s, url)
	}
	outbox := filepath.Join(p.Folder, s.Name)
	err = os.MkdirAll(outbox, 0o700)
	var exits []Exit
	var ended []time.Duration
	for err == nil && len(exits) < len(s.stages) && ctx.Err() == nil {
		run := server.begin()
		exits = append(exits, server.watch(ctx, environment(p, s, run, url, outbox)))
		ended = append(ended, time.Since(server.started))
	}
	record := server.record()
	record.Exits, record.Ended = exits, ended
	if err = errors.Join(err, server.close(), context.Cause(ctx)); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return record, nil
}

// watch runs the client once and ends it when the script or its time says so.
func (s *stand) watch(ctx context.Context, env []string) Exit {
	// A deadline in the context would tell a client when it is going to die.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan Exit, 1)
	go func() { done <- s.params.Subject(ctx, env) }()
	stuck := s.stuck
	if !s.stage(s.run).kill {
		stuck = nil
	}
	timeout := time.NewTimer(s.params.Timeout)
	defer timeout.Stop()
	timedOut := false
	select {
	case exit := <-done:
		return exit
	case <-timeout.C:
		timedOut = true
	case <-stuck:
	case <-s.enough:
	}
	cancel()
	exit := <-done
	exit.TimedOut, exit.Killed, exit.Known = timedOut, !timedOut, false
	return exit
}

// defaultEvents is how many events a client is asked for.
const defaultEvents = 5

// environment is what one run of the client is told.
func environment(p *Params, s *Scenario, run int, url, outbox string) []string {
	stage := &s.stages[run-1]
	ingest := ServerKey
	if stage.otherKey {
		ingest = BrowserToken
	}
	events := defaultEvents
	if s.events > 0 {
		events = s.events
	}
	if run > 1 {
		events = 0
	}
	env := []string{
		"ACTIONPULSE_URL=" + url,
		"ACTIONPULSE_KEY=" + Secrets[ingest],
		"ACTIONPULSE_BROWSER_TOKEN=" + Secrets[BrowserToken],
		"ACTIONPULSE_PROJECT_KEY=" + Secrets[ProjectKey],
		"ACTIONPULSE_CI_TOKEN=" + Secrets[CIToken],
		"ACTIONPULSE_PROJECT_ID=" + madeID,
		"ACTIONPULSE_ACCESS_TOKEN=" + Secrets[AccessToken],
		"ACTIONPULSE_REFRESH_TOKEN=" + firstRefresh,
		"LAB_PROFILE=" + string(p.Profile),
		"LAB_SCENARIO=" + s.Name,
		"LAB_RUN=" + strconv.Itoa(run),
		"LAB_OUTBOX=" + outbox,
		"LAB_EVENTS=" + strconv.Itoa(events),
		"LAB_BATCH=" + strconv.Itoa(s.batch),
		"LAB_SCALE=" + strconv.FormatFloat(p.Scale, 'g', -1, 64),
		"LAB_NOW",
	}
	if p.Clock && stage.later > 0 {
		env = append(env, "LAB_NOW="+time.Now().Add(stage.later).UTC().Format(time.RFC3339Nano))
	}
	if p.Profile == Deploy {
		env = append(env, ciEnvironment(p.CI, run, stage.nextDeploy)...)
	}
	return env
}
