// Package lab_test runs our own clients through the lab.
package lab_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/internal/lab/report"
	"github.com/actionpulse/actionpulse/test/lab/gosdk"
	"github.com/actionpulse/actionpulse/test/lab/pipenet"
)

// TestMain is the client under test when the lab has started it.
func TestMain(m *testing.M) {
	if os.Getenv("LAB_SCENARIO") != "" {
		os.Exit(gosdk.Run(context.Background(), gosdk.World{Getenv: os.Getenv, Log: os.Stderr}))
	}
	os.Exit(m.Run())
}

// killed are the scenarios in which the client is killed: they are played to a
// process. All others are played in a bubble, where time is exact and costs
// nothing.
var killed = []string{"kill", "other-key", "aged"}

// byProcess are the checks that need those, and timed ones that a busy machine
// can spoil and the bubble has judged.
var (
	byProcess = []string{"id-at-the-fact", "id-stable-after-restart", "key-kind-stable", "buffer-kept-after-kill", "buffer-within-age", "key-stable-after-restart"}
	timed     = []string{"delays-first", "delays-grow", "delays-jittered", "retry-after-obeyed"}
)

var profiles = []judgeclient.Profile{judgeclient.Events, judgeclient.Keyed, judgeclient.Mutation, judgeclient.Deploy, judgeclient.Session}

// TestGoSDK: the SDK keeps every rule that can be judged without a kill, and
// none of them is left untested.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			p := judgeclient.Params{Profile: profile, API: judgeclient.ActionPulse, Name: "the Go SDK", Seed: 1, CI: "github", Folder: t.TempDir()}
			for _, s := range judgeclient.Scenarios() {
				if slices.Contains(s.Profiles, profile) && !slices.Contains(killed, s.Name) {
					p.Scenarios = append(p.Scenarios, s.Name)
				}
			}
			var result *report.Report
			synctest.Test(t, func(t *testing.T) { result = inBubble(t, p) })
			want(t, result, func(id string) bool { return !slices.Contains(byProcess, id) })
		})
	}
}

// inBubble runs the SDK within the process.
func inBubble(t *testing.T, p judgeclient.Params) *report.Report {
	t.Helper()
	network := &pipenet.Network{}
	p.Listen = network.Listen
	p.Subject = func(ctx context.Context, env []string) judgeclient.Exit {
		transport := network.Transport()
		defer transport.CloseIdleConnections()
		var log strings.Builder
		getenv := lookUp(env)
		// Each scenario has randomness of its own, the same in every run of the test.
		var seed [32]byte
		copy(seed[:], getenv("LAB_PROFILE")+getenv("LAB_SCENARIO"))
		random := rand.New(rand.NewChaCha8(seed))
		code := gosdk.Run(ctx, gosdk.World{Getenv: getenv, Log: &log, Rand: random.Float64, HTTP: &http.Client{Transport: transport}})
		return judgeclient.Exit{Known: true, Code: code, Output: log.String()}
	}
	result, err := judgeclient.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func lookUp(env []string) func(string) string {
	return func(name string) string {
		for _, line := range env {
			if value, ok := strings.CutPrefix(line, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// TestGoSDKKilled: a process that is killed while it sends has lost nothing,
// and changed nothing, when it is started again.
func TestGoSDKKilled(t *testing.T) {
	t.Parallel()
	for _, profile := range []judgeclient.Profile{judgeclient.Events, judgeclient.Keyed, judgeclient.Deploy} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			p := judgeclient.Params{
				Profile: profile, API: judgeclient.ActionPulse, Subject: judgeclient.Command([]string{os.Args[0]}, nil), Name: "the Go SDK",
				Scale: 0.02, Seed: 1, Clock: true, CI: "github", Folder: t.TempDir(), Scenarios: []string{"kill"},
			}
			if profile == judgeclient.Events {
				p.Scenarios = killed
			}
			result, err := judgeclient.Run(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			want(t, result, func(id string) bool { return slices.Contains(byProcess, id) })
			for _, c := range result.Checks {
				if c.Verdict == report.Fail && !slices.Contains(timed, c.ID) {
					t.Errorf("%s: %q", c.ID, c.Evidence)
				}
			}
		})
	}
}

// want wants some of the checks to have passed.
func want(t *testing.T, r *report.Report, which func(id string) bool) {
	t.Helper()
	for _, c := range r.Checks {
		if which(c.ID) && c.Verdict != report.Pass {
			t.Errorf("%s: %s: %q", c.ID, c.Verdict, c.Evidence)
		}
	}
}
