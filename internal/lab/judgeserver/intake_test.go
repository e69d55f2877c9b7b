package judgeserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeserver"
	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// The flaws that an intake may have.
const (
	keepsAll   = "stores every event that comes"
	amnesiac   = "forgets the ids when it is restarted"
	dropsLast  = "acknowledges an event that it does not store"
	miscounts  = "does not count duplicates"
	allOrNone  = "rejects a batch with one bad item"
	neverDone  = "never has all stored"
	answers500 = "answers 500 to a repeat"
)

// intake is a server that takes events and counts them by name.
type intake struct {
	flaw   string
	mu     sync.Mutex
	ids    map[string]bool
	stored map[string]int
}

func (i *intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/query") {
		i.query(w)
		return
	}
	var batch struct {
		Events []struct {
			ID    string `json:"event_id"`
			Event string `json:"event"`
		} `json:"events"`
	}
	if json.NewDecoder(r.Body).Decode(&batch) != nil {
		panic(http.ErrAbortHandler)
	}
	accepted, duplicates := 0, 0
	for n, e := range batch.Events {
		switch {
		case len(e.ID) != 36 && i.flaw == allOrNone:
			refuse(w, http.StatusUnprocessableEntity, "a bad item")
			return
		case len(e.ID) != 36:
			continue
		case i.ids[e.ID] && i.flaw == answers500:
			refuse(w, http.StatusInternalServerError, "UNIQUE constraint failed")
			return
		case i.ids[e.ID] && i.flaw != keepsAll:
			duplicates++
		case n != 4 || i.flaw != dropsLast:
			i.stored[e.Event]++
		}
		accepted++
		i.ids[e.ID] = true
	}
	if i.flaw == miscounts {
		duplicates = 0
	}
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(map[string]any{"accepted": accepted, "duplicates": duplicates, "rejected": []any{}}) //nolint:errcheck // the client sees it
}

func (i *intake) query(w http.ResponseWriter) {
	through := time.Now().Add(time.Minute)
	if i.flaw == neverDone {
		through = time.Time{}
	}
	series := []any{}
	for name, n := range i.stored {
		series = append(series, map[string]any{"event": name, "points": []any{map[string]any{"value": n}}})
	}
	json.NewEncoder(w).Encode(map[string]any{"stored_through": through, "series": series}) //nolint:errcheck // the client sees it
}

func (i *intake) restart(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.flaw == amnesiac {
		i.ids = map[string]bool{}
	}
	return nil
}

// judgeIntake tries an intake; time passes when the lab waits.
func judgeIntake(t *testing.T, flaw string) (*report.Report, error) {
	t.Helper()
	i := &intake{flaw: flaw, ids: map[string]bool{}, stored: map[string]int{}}
	server := httptest.NewServer(i)
	defer server.Close()
	var waited time.Duration
	var mu sync.Mutex
	return judgeserver.Judge(t.Context(), judgeserver.Options{
		Intake: judgeserver.ActionPulse{URL: server.URL, ProjectID: "p"}.Intake(), Restart: i.restart, AtOnce: 8, Seed: 3, Name: "t",
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(waited)
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			waited += d
			return nil
		},
	})
}

// TestJudgeIntake: an intake that keeps its promise passes all, and each flaw is
// found by the trials that it concerns and by no other.
func TestJudgeIntake(t *testing.T) {
	t.Parallel()
	all := []string{"intake-repeat", "intake-overlap", "intake-race", "intake-rejected", "intake-faults", "intake-restart"}
	for flaw, want := range map[string][]string{
		"":         nil,
		keepsAll:   all,
		amnesiac:   {"intake-restart"},
		dropsLast:  all,
		miscounts:  {"intake-repeat", "intake-overlap", "intake-race", "intake-rejected", "intake-restart"},
		allOrNone:  {"intake-rejected"},
		answers500: all,
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			r, err := judgeIntake(t, flaw)
			if err != nil {
				t.Fatal(err)
			}
			if failed := verdicts(r, report.Fail); !slices.Equal(failed, want) || len(r.Checks) != 6 || len(verdicts(r, report.Pass)) != 6-len(want) {
				t.Errorf("found %q, want %q", failed, want)
			}
			for _, c := range r.Checks {
				if t.Failed() {
					t.Logf("%s: %s\n%s", c.ID, c.Verdict, strings.Join(c.Evidence, "\n"))
				}
			}
		})
	}
	if r, err := judgeIntake(t, neverDone); err == nil || !strings.Contains(err.Error(), "is not stored after") {
		t.Errorf("got %v, %v", r, err)
	}
}
