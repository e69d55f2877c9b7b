package actionpulse_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// The environment of a child process that tracks.
const (
	childServer = "TRACKER_CHILD_SERVER"
	childKey    = "TRACKER_CHILD_KEY"
	childDir    = "TRACKER_CHILD_DIR"
	childNumber = "TRACKER_CHILD_NUMBER"
)

// Of childLives processes each is killed after some facts; the last one only
// sends what they have left.
const (
	childLives    = 5
	childRoutines = 4
	lastLife      = -1
)

// TestTrackerKilled: a process that tracks through a network that breaks is
// killed at any moment, again and again. Every fact whose Track had returned is
// stored, and no fact is stored twice; nor is an identify.
func TestTrackerKilled(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	running := site.MustServe()
	server, err := url.Parse(running.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Start(faultproxy.Options{Seed: 1, Upstream: server.Host, Faults: faultproxy.Faults{
		DropRequest: 0.1, DropAnswer: 0.2, Truncate: 0.1, TooMany: 0.05, ServerError: 0.1, Unavailable: 0.1,
		Delay: 0.2, MaxDelay: 10 * time.Millisecond,
	}})
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{
		random:   rand.New(rand.NewPCG(1, 1)),
		env:      []string{childServer + "=" + proxy.URL(), childKey + "=" + site.Setup.ServerKey, childDir + "=" + filepath.Join(t.TempDir(), "outbox")},
		returned: map[string]bool{},
	}
	for life := range childLives {
		k.live(t, life, 10+k.random.IntN(60))
	}
	k.live(t, lastLife, 0)
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	running.MustStop() // which stores what was acknowledged
	k.judge(t, site.MustServe())
	t.Logf("%d facts, %+v", len(k.returned), proxy.Counts())
}

// killer starts child processes, kills them, and notes what they say.
type killer struct {
	random *rand.Rand
	env    []string
	// returned holds the facts whose Track had returned.
	returned map[string]bool
}

// live runs a child until it has said n facts, or to its end if it is the last.
func (k *killer) live(t *testing.T, life, n int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestTrackerChild$", "-test.v=false")
	child.Env = append(append(os.Environ(), k.env...), childNumber+"="+strconv.Itoa(life))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for said := 0; lines.Scan(); {
		fact, ok := strings.CutPrefix(lines.Text(), "tracked ")
		if !ok {
			continue
		}
		k.returned[fact] = true
		if said++; said == n {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); (err == nil) != (life == lastLife) {
		t.Fatalf("life %d ended with %v", life, err)
	}
}

// judge counts what is stored.
func (k *killer) judge(t *testing.T, r *apptest.Running) {
	t.Helper()
	app, err := actionpulse.NewApp(r.URL, actionpulse.WithTokens(api.Tokens{AccessToken: r.Setup.AccessToken}))
	if err != nil {
		t.Fatal(err)
	}
	facts, identified := map[string]int{}, map[string]int{}
	for event, err := range app.Queries.AllEvents(t.Context(), r.Setup.Project.ID, api.EventsQuery{Type: "events", Limit: 200}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case event.Event == "identify":
			identified[*event.UserID]++
		default:
			facts[event.Event]++
		}
	}
	for fact := range k.returned {
		if facts[fact] == 0 {
			t.Errorf("%s is lost: its Track had returned", fact)
		}
	}
	for _, stored := range []map[string]int{facts, identified} {
		for what, n := range maps.All(stored) {
			if n != 1 {
				t.Errorf("%s is stored %d times", what, n)
			}
		}
	}
	if len(k.returned) < 10*childLives || len(identified) == 0 {
		t.Errorf("only %d facts and %d persons: the test shows nothing", len(k.returned), len(identified))
	}
}

// TestTrackerChild is the process that is killed. It does nothing in a run of
// the tests themselves.
func TestTrackerChild(t *testing.T) {
	if os.Getenv(childServer) == "" {
		return
	}
	life, err := strconv.Atoi(os.Getenv(childNumber))
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := actionpulse.NewTracker(os.Getenv(childServer), os.Getenv(childKey), actionpulse.TrackerOptions{
		Dir: os.Getenv(childDir), MaxBatch: 20, MaxAge: 5 * time.Millisecond, Pause: 50 * time.Millisecond,
		Policy: retry.Policy{MaxAttempts: 100, Delays: retry.Delays{First: 2 * time.Millisecond, Max: 20 * time.Millisecond}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if life != lastLife {
		trackForEver(t, tracker, life)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := tracker.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// trackForEver tracks numbered facts from several goroutines, and says each
// whose Track has returned.
func trackForEver(t *testing.T, tracker *actionpulse.Tracker, life int) {
	t.Helper()
	var group sync.WaitGroup
	for routine := range childRoutines {
		group.Go(func() {
			for n := 0; ; n++ {
				fact := fmt.Sprintf("fact-%d-%d-%d", life, routine, n)
				if _, err := tracker.Track(actionpulse.Event{Name: fact, UserID: "u"}); err != nil {
					t.Error(err)
					return
				}
				fmt.Println("tracked " + fact)
				if n%12 == 0 {
					if err := tracker.Identify(actionpulse.Identity{AnonID: "a-" + fact, UserID: "u-" + fact}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
