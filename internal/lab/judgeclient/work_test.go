package judgeclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/test/lab/pipenet"
)

// workClient asks for units of work rightly, but for the faults that are set.
type workClient struct {
	network *pipenet.Network
	profile judgeclient.Profile

	keyPerAttempt, keyPerCall, constantKey, noKey, newBody, newTS, attemptTS bool
	repeatsAll, replayFails, deaf                                            bool
	refreshes                                                                int
	oldToken, renumbers                                                      bool
	repeats                                                                  []int
}

// unit is one request, until it has succeeded.
type unit struct {
	method, path string
	body         map[string]any
	key          string
	credential   string
}

// working is one start of a workClient.
type working struct {
	*workClient

	ctx    context.Context //nolint:containedctx // a run is what the context is about
	env    map[string]string
	http   *http.Client
	token  string
	code   int
	output string
}

func (c *workClient) subject(ctx context.Context, env []string) judgeclient.Exit {
	transport := c.network.Transport()
	defer transport.CloseIdleConnections()
	w := &working{
		workClient: c, ctx: ctx, env: variables(env), http: &http.Client{Transport: transport},
	}
	w.token = w.env["ACTIONPULSE_ACCESS_TOKEN"]
	for i, u := range w.units() {
		w.do(i, u)
	}
	return judgeclient.Exit{Known: ctx.Err() == nil, Code: w.code, Output: w.output}
}

// units are what the profile asks for.
func (w *working) units() []unit {
	project := "/api/v1/projects/" + w.env["ACTIONPULSE_PROJECT_ID"]
	switch w.profile {
	case judgeclient.Keyed:
		return []unit{
			{"POST", "/v1/customers/lab/charge", map[string]any{"amount": "1"}, "order-1:charge", w.env["ACTIONPULSE_PROJECT_KEY"]},
			{"POST", "/v1/customers/lab/charge", map[string]any{"amount": "2"}, "order-2:charge", w.env["ACTIONPULSE_PROJECT_KEY"]},
		}
	case judgeclient.Mutation:
		return []unit{{"POST", project + "/release-markers", map[string]any{"version": "1"}, "", w.token}}
	case judgeclient.Deploy:
		body := map[string]any{"version": "1.4.2", "ts": "2026-05-01T10:00:00Z"}
		if w.attemptTS {
			body["ts"] = time.Now().Add(time.Duration(len(w.env["GITHUB_RUN_ATTEMPT"])) * time.Second)
		}
		return []unit{{"POST", project + "/release-markers/deploy", body, "deploy-" + w.env["GITHUB_RUN_ID"], w.env["ACTIONPULSE_CI_TOKEN"]}}
	case judgeclient.Session:
		return []unit{{"GET", "/api/v1/projects", nil, "", w.token}}
	default:
		return w.chunks()
	}
}

// chunks are those of a recording that are not sent yet.
func (w *working) chunks() []unit {
	var out []unit
	for n := range 3 {
		if _, err := os.Stat(w.sent(n)); err == nil {
			continue
		}
		body := map[string]any{"session_id": "s-1", "chunk": n, "events": []int{n, n + 1}}
		out = append(out, unit{"POST", "/v1/replay", body, "", w.env["ACTIONPULSE_KEY"]})
	}
	return out
}

func (w *working) sent(n int) string { return filepath.Join(w.env["LAB_OUTBOX"], fmt.Sprint(n)) }

// do asks for one unit until that is done with.
func (w *working) do(place int, u unit) {
	policy := retry.Policy{MaxAttempts: 7, Delays: retry.Delays{Rand: randomOf(w.env)}}
	attempt := 0
	_, err := retry.Do(w.ctx, policy, func(ctx context.Context) (int, retry.Outcome) {
		attempt++
		w.spoil(&u, place, attempt)
		o := w.once(ctx, u)
		for n := 0; o.Code == "token_expired" && n < w.refreshes && w.refresh(ctx); n++ {
			if u.credential = w.token; w.oldToken {
				u.credential = w.env["ACTIONPULSE_ACCESS_TOKEN"]
			}
			o = w.once(ctx, u)
		}
		return 0, o
	})
	if err != nil {
		w.code, w.output = 1, err.Error()
		return
	}
	if w.profile == judgeclient.Replay {
		if err := os.WriteFile(w.sent(place), nil, 0o600); err != nil {
			panic(err)
		}
	}
}

// spoil does what a naive client does before an attempt.
func (w *working) spoil(u *unit, place, attempt int) {
	switch {
	case w.keyPerAttempt, w.keyPerCall && attempt == 1:
		u.key = fmt.Sprintf("random-%d", rand.Uint64())
	case w.constantKey:
		u.key = "constant-key"
	case w.noKey:
		u.key = ""
	}
	if attempt > 1 && w.newBody {
		u.body["metadata"] = map[string]any{"attempt": attempt}
	}
	if attempt > 1 && w.newTS {
		u.body["ts"] = time.Now().Format(time.RFC3339)
	}
	if attempt > 1 && w.renumbers {
		u.body["chunk"] = 100*(place+1) + attempt
	}
}

// once makes one attempt.
func (w *working) once(ctx context.Context, u unit) retry.Outcome {
	kind := map[judgeclient.Profile]retry.Kind{
		judgeclient.Keyed: retry.Keyed, judgeclient.Deploy: retry.Keyed, judgeclient.Session: retry.Read, judgeclient.Replay: retry.Event,
	}[w.profile]
	if w.repeatsAll {
		kind = retry.Event
	}
	body, err := json.Marshal(u.body)
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequestWithContext(ctx, u.method, w.env["ACTIONPULSE_URL"]+u.path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+u.credential)
	if u.key != "" {
		request.Header.Set("Idempotency-Key", u.key)
	}
	o := w.send(request)
	o.Kind = kind
	return o
}

// send sends a request and reads the answer as this client understands it.
func (w *working) send(request *http.Request) retry.Outcome {
	response, err := w.http.Do(request)
	if err != nil {
		return retry.Outcome{Err: err}
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return retry.Outcome{Err: err}
	}
	var a struct {
		AccessToken string `json:"access_token"`
		Error       struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &a) == nil && a.AccessToken != "" {
		w.token = a.AccessToken
	}
	o := retry.Outcome{Status: response.StatusCode, Code: a.Error.Code, RetryAfter: response.Header.Get("Retry-After")}
	if w.deaf {
		o.RetryAfter = ""
	}
	if w.replayFails && response.Header.Get("Idempotency-Replayed") != "" {
		return retry.Outcome{Status: http.StatusUnprocessableEntity, Code: "replayed"}
	}
	if slices.Contains(w.repeats, o.Status) {
		return retry.Outcome{Status: 500, Code: "internal"}
	}
	return o
}

// refresh spends the refresh token and reports whether that brought a new
// access token.
func (w *working) refresh(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.env["ACTIONPULSE_URL"]+"/api/v1/auth/refresh", bytes.NewReader([]byte(`{"refresh_token": "x"}`)))
	if err != nil {
		panic(err)
	}
	return w.send(request).Succeeded()
}

func TestWork(t *testing.T) {
	t.Parallel()
	const (
		keyed    = judgeclient.Keyed
		mutation = judgeclient.Mutation
		deploy   = judgeclient.Deploy
		session  = judgeclient.Session
		replay   = judgeclient.Replay
	)
	for _, c := range []struct {
		name   string
		client workClient
		failed []string
	}{
		{"keyed", workClient{profile: keyed}, nil},
		{"key for each attempt", workClient{profile: keyed, keyPerAttempt: true}, []string{"key-stable-across-attempts", "key-stable-after-restart", "503-perhaps-applied"}},
		{"key for each call", workClient{profile: keyed, keyPerCall: true}, []string{"key-stable-after-restart"}},
		{"constant key", workClient{profile: keyed, constantKey: true}, []string{"key-differs-per-unit"}},
		{"no key", workClient{profile: keyed, noKey: true}, []string{"key-well-formed", "503-perhaps-applied"}},
		{"another body", workClient{profile: keyed, newBody: true}, []string{"body-stable"}},
		{"replay as failure", workClient{profile: keyed, replayFails: true}, []string{"replay-is-success"}},
		{"deaf", workClient{profile: keyed, deaf: true}, []string{"retry-after-obeyed"}},
		{"repeats conflicts", workClient{profile: keyed, repeats: []int{409}}, []string{"not-repeated-409"}},
		{"mutation", workClient{profile: mutation}, nil},
		{"mutation repeated", workClient{profile: mutation, repeatsAll: true}, []string{"no-automatic-repeat", "503-read-first"}},
		{"deploy", workClient{profile: deploy}, nil},
		{"deploy with a constant key", workClient{profile: deploy, constantKey: true}, []string{"key-differs-per-unit"}},
		{"deploy with a random key", workClient{profile: deploy, keyPerCall: true}, []string{"key-stable-after-restart"}},
		{"deploy with the time of the attempt", workClient{profile: deploy, newTS: true}, []string{"ts-stable"}},
		{"deploy that fails on replays", workClient{profile: deploy, replayFails: true}, []string{"replay-is-success"}},
		{"session", workClient{profile: session, refreshes: 1}, nil},
		{"session that refreshes on and on", workClient{profile: session, refreshes: 5}, []string{"refresh-once"}},
		{"session with the old token", workClient{profile: session, refreshes: 1, oldToken: true}, []string{"refreshed-token-used"}},
		{"session that repeats 401", workClient{profile: session, repeats: []int{401}}, []string{"not-repeated-401", "refresh-once"}},
		{"replay", workClient{profile: replay}, nil},
		{"replay with other numbers", workClient{profile: replay, renumbers: true}, []string{"chunk-stable", "503-perhaps-applied"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.client.network = &pipenet.Network{}
			judge(t, &judgeclient.Params{Profile: c.client.profile, Subject: c.client.subject, Listen: c.client.network.Listen, CI: "github"}, c.failed)
		})
	}
}
