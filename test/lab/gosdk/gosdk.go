// Package gosdk is a client of the lab: it does with the Go SDK what
// `actionpulse lab client` asks of the command under test, profile by profile.
// It shows how little that is, and has no retry of its own.
package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// longest is the longest delay in units. It is 30 by default; the lab sees as
// much with shorter ones.
const longest = 8

// lab is what the lab tells its client.
type lab struct {
	getenv func(string) string
	log    *slog.Logger
	http   *http.Client
	policy retry.Policy
}

// World is what the client has from outside.
type World struct {
	Getenv func(string) string
	// Log is where it logs.
	Log io.Writer
	// Rand is the randomness of delays; nil is the SDK's own.
	Rand func() float64
	// HTTP makes the requests; nil is the SDK's own.
	HTTP *http.Client
}

// Run does what the environment asks for and returns the exit code: 0 if all
// of it has succeeded, 1 if not, 2 if it does not know what is asked for.
func Run(ctx context.Context, w World) int {
	getenv := w.Getenv
	scale, err := strconv.ParseFloat(getenv("LAB_SCALE"), 64)
	if err != nil {
		scale = 1
	}
	unit := time.Duration(scale * float64(time.Second))
	l := lab{
		getenv: getenv, log: slog.New(slog.NewTextHandler(w.Log, nil)), http: w.HTTP,
		policy: retry.Policy{MaxAttempts: 6, Delays: retry.Delays{First: unit, Max: longest * unit, Rand: w.Rand}},
	}
	does := map[string]func(context.Context) error{
		"events": l.events, "keyed": l.keyed, "mutation": l.mutation, "deploy": l.deploy, "session": l.session,
	}[getenv("LAB_PROFILE")]
	if does == nil {
		l.log.Error("the profile is not known", slog.String("profile", getenv("LAB_PROFILE")))
		return 2
	}
	if err := does(ctx); err != nil {
		l.log.Error("failed", slog.Any("error", err))
		return 1
	}
	return 0
}

// number reads a variable that holds one; 0 if it does not.
func (l *lab) number(name string) int {
	n, err := strconv.Atoi(l.getenv(name))
	if err != nil {
		return 0
	}
	return n
}

// events tracks what is asked for and sends it, and what is left from before.
func (l *lab) events(ctx context.Context) error {
	tracker, err := actionpulse.NewTracker(l.getenv("ACTIONPULSE_URL"), l.getenv("ACTIONPULSE_KEY"), actionpulse.TrackerOptions{
		Dir: l.getenv("LAB_OUTBOX"), Project: "lab", Sync: actionpulse.SyncNever,
		MaxBatch: l.number("LAB_BATCH"), Policy: l.policy, Logger: l.log, Now: l.clock(), HTTPClient: l.http,
	})
	if err != nil {
		return err
	}
	for i := range l.number("LAB_EVENTS") {
		if _, err = tracker.Track(actionpulse.Event{Name: fmt.Sprintf("lab event %d", i), UserID: "ada"}); err != nil {
			break
		}
	}
	return errors.Join(err, tracker.Close(ctx))
}

// clock is the one that the lab sets, if it does; it goes on from there.
func (l *lab) clock() func() time.Time {
	at, err := time.Parse(time.RFC3339Nano, l.getenv("LAB_NOW"))
	if err != nil {
		return time.Now
	}
	ahead := time.Until(at)
	return func() time.Time { return time.Now().Add(ahead) }
}

// keyed charges for two orders; the keys are the orders'.
func (l *lab) keyed(ctx context.Context) error {
	client, err := actionpulse.New(l.getenv("ACTIONPULSE_URL"), l.getenv("ACTIONPULSE_PROJECT_KEY"), l.options()...)
	if err != nil {
		return err
	}
	for _, order := range []struct{ name, amount string }{{"order-1", "1"}, {"order-2", "2"}} {
		_, e := client.Customers.Charge(ctx, "lab", actionpulse.Move{Amount: order.amount}, actionpulse.WithKey(order.name+":charge"))
		err = errors.Join(err, e)
	}
	return err
}

// options are those of every client.
func (l *lab) options() []actionpulse.Option {
	out := []actionpulse.Option{actionpulse.WithRetry(l.policy), actionpulse.WithLogger(l.log)}
	if l.http != nil {
		out = append(out, actionpulse.WithHTTPClient(l.http))
	}
	return out
}

func (l *lab) app() (*actionpulse.App, error) {
	tokens := api.Tokens{AccessToken: l.getenv("ACTIONPULSE_ACCESS_TOKEN"), RefreshToken: l.getenv("ACTIONPULSE_REFRESH_TOKEN")}
	return actionpulse.NewApp(l.getenv("ACTIONPULSE_URL"), append(l.options(), actionpulse.WithTokens(tokens))...)
}

// mutation makes a marker by hand, which has no key.
func (l *lab) mutation(ctx context.Context) error {
	app, err := l.app()
	if err != nil {
		return err
	}
	_, err = app.Markers.Create(ctx, l.getenv("ACTIONPULSE_PROJECT_ID"), api.MarkerContent{Version: "1.4.2"})
	return err
}

// deploy makes the marker of a run of GitHub Actions.
func (l *lab) deploy(ctx context.Context) error {
	markers, err := actionpulse.NewDeployMarkers(
		l.getenv("ACTIONPULSE_URL"), l.getenv("ACTIONPULSE_CI_TOKEN"), l.getenv("ACTIONPULSE_PROJECT_ID"), l.options()...,
	)
	if err != nil {
		return err
	}
	commit := l.getenv("GITHUB_SHA")
	_, err = markers.Create(ctx, api.MarkerContent{Version: "1.4.2", Commit: &commit}, actionpulse.WithKey("deploy-"+l.getenv("GITHUB_RUN_ID")))
	return err
}

// session lists projects.
func (l *lab) session(ctx context.Context) error {
	app, err := l.app()
	if err != nil {
		return err
	}
	_, err = app.Projects.List(ctx, actionpulse.Page{})
	return err
}
