package judgeclient_test

import (
	"context"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/internal/lab/report"
	"github.com/actionpulse/actionpulse/test/lab/pipenet"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		client eventClient
		failed []string
	}{
		{"right", eventClient{}, nil},
		{"new id for each attempt", eventClient{newID: true}, []string{"id-at-the-fact", "id-stable-across-attempts", "id-stable-after-restart", "503-perhaps-applied"}},
		{"ids made late", eventClient{lateID: 5 * time.Second}, []string{"id-at-the-fact"}},
		{"new time for each attempt", eventClient{newTS: true}, []string{"ts-stable"}},
		{"id without hyphens", eventClient{badID: true}, []string{"id-canonical-uuid"}},
		{"all batches at once", eventClient{parallel: true}, []string{"one-request-after-failure"}},
		{"constant delays", eventClient{constant: true}, []string{"delays-grow"}},
		{"no jitter", eventClient{noJitter: true}, []string{"delays-jittered"}},
		{"no end", eventClient{unbounded: 8 * time.Second}, []string{"attempts-bounded"}},
		{"ignores Retry-After", eventClient{deaf: true}, []string{"retry-after-obeyed"}},
		{"repeats 400", eventClient{repeats: []int{400}}, []string{"not-repeated-400"}},
		{"repeats 413", eventClient{repeats: []int{413}}, []string{"not-repeated-413"}},
		{"repeats 429", eventClient{repeats: []int{429}}, []string{"not-repeated-quota", "retry-after-obeyed"}},
		{"sends rejected items again", eventClient{resends: true}, []string{"rejected-not-resent"}},
		{"half the batch after 500", eventClient{partOnly: true}, []string{"whole-batch-after-500", "no-answer-repeated", "repeated-409-retryable"}},
		{"loses its buffer", eventClient{forgets: true}, []string{"buffer-kept-after-giving-up", "buffer-kept-after-kill"}},
		{"drops what it gives up on", eventClient{notBuffered: true}, []string{"buffer-kept-after-giving-up"}},
		{"keeps for ever", eventClient{hoards: true}, []string{"buffer-within-age"}},
		{"any key will do", eventClient{anyKind: true}, []string{"key-kind-stable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.client.network = &pipenet.Network{}
			judge(t, &judgeclient.Params{Profile: judgeclient.Events, Subject: c.client.subject, Listen: c.client.network.Listen, Clock: true}, c.failed)
		})
	}
}

// TestDoubt: what was not seen to its end is no pass, and neither is what gave
// no occasion.
func TestDoubt(t *testing.T) {
	t.Parallel()
	c := eventClient{unbounded: 30 * time.Second, network: &pipenet.Network{}}
	result := judge(t, &judgeclient.Params{Profile: judgeclient.Events, Subject: c.subject, Listen: c.network.Listen}, []string{})
	for id, want := range map[string]report.Verdict{"attempts-bounded": report.Inconclusive, "buffer-within-age": report.NotTested} {
		if got := result.Find(id); got.Verdict != want || len(got.Evidence) == 0 {
			t.Errorf("%s: %+v, want %s", id, got, want)
		}
	}
}

// TestSilent: a client that sends nothing passes nothing.
func TestSilent(t *testing.T) {
	t.Parallel()
	for _, profile := range judgeclient.Profiles {
		n := &pipenet.Network{}
		quiet := func(context.Context, []string) judgeclient.Exit { return judgeclient.Exit{Known: true} }
		result := judge(t, &judgeclient.Params{Profile: profile, Subject: quiet, Listen: n.Listen}, []string{})
		if c := result.Counts(); c.NotTested != len(result.Checks) || c.NotTested == 0 {
			t.Errorf("%s: %+v", profile, c)
		}
	}
}
