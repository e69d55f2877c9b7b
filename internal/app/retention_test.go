package app_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/intake"
)

// ahead is a clock that goes ahead of the machine's.
type ahead struct {
	intake.SystemClock

	by time.Duration
}

func (c ahead) Wall() time.Time { return c.SystemClock.Wall().Add(c.by) }

// call sends JSON and demands a status.
func call(t *testing.T, r *apptest.Running, want int, method, path, body string) map[string]any {
	t.Helper()
	status, answer := r.Call(method, path, r.Setup.AccessToken, body)
	if status != want {
		t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// stored returns how many events of a project can be queried.
func stored(t *testing.T, r *apptest.Running, project string) float64 {
	t.Helper()
	answer := call(t, r, http.StatusOK, "POST", "/api/v1/projects/"+project+"/query",
		`{"type":"breakdown","by":"event","measure":"count","from":"2020-01-01T00:00:00Z","to":"2100-01-01T00:00:00Z"}`)
	sum, _ := answer["other"].(float64)
	items, _ := answer["items"].([]any)
	for _, item := range items {
		sum += item.(map[string]any)["value"].(float64)
	}
	return sum
}

// awaitSweep returns once all projects have been looked at.
func awaitSweep(t *testing.T, r *apptest.Running) {
	t.Helper()
	for t.Context().Err() == nil {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		_, swept, found := strings.Cut(string(content), "\nactionpulse_retention_swept_timestamp_seconds ")
		if !found {
			t.Fatal("no sweep is measured")
		}
		if !strings.HasPrefix(swept, "0\n") {
			return
		}
	}
}

// Events are deleted of the project that asked for it, while others come in,
// and of no other; none of those that come in is lost or doubled.
func TestRetentionBesideIntake(t *testing.T) {
	t.Parallel()
	s := apptest.New(t, "--retention.interval", "1s")
	r := s.MustServe()
	own := r.Setup.Project.ID
	r.TrackNew(40)
	other := call(t, r, http.StatusCreated, "POST", "/api/v1/projects", `{"name":"other"}`)["id"].(string)
	key := call(t, r, http.StatusCreated, "POST", "/api/v1/projects/"+other+"/ingest-keys", `{"kind":"server","name":"k"}`)["token"]
	send := func(r *apptest.Running, n int) {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`{"event_id":%q,"event":"e","user_id":"u"}`, uuid.NewString())
		}
		if status, answer := r.Post("/v1/track", fmt.Sprint(key), `{"events":[`+strings.Join(items, ",")+`]}`); status != http.StatusAccepted {
			t.Errorf("%d %v", status, answer)
		}
	}
	send(r, 30)
	changed := call(t, r, http.StatusOK, "PATCH", "/api/v1/projects/"+own, `{"retention":{"events_days":3}}`)
	kept, _ := changed["retention"].(map[string]any)
	inForce, _ := kept["in_force"].(map[string]any)
	if kept["events_days"] != 3.0 || kept["replays_days"] != nil || inForce["events_days"] != 3.0 || inForce["replays_days"] != nil {
		t.Errorf("got %v", changed)
	}
	// What a change leaves out stays; null leaves it to the server.
	for _, c := range []struct{ body, want string }{
		{`{"retention":{"replays_days":50}}`, "3 50"},
		{`{"retention":{}}`, "3 50"},
		{`{"retention":null,"name":"p"}`, "3 50"},
		{`{"retention":{"events_days":null}}`, "<nil> 50"},
		{`{"retention":{"replays_days":null,"events_days":3}}`, "3 <nil>"},
	} {
		changed := call(t, r, http.StatusOK, "PATCH", "/api/v1/projects/"+own, c.body)
		kept, _ := changed["retention"].(map[string]any)
		if got := fmt.Sprint(kept["events_days"], " ", kept["replays_days"]); got != c.want {
			t.Errorf("%s: got %s, want %s", c.body, got, c.want)
		}
	}
	refused := call(t, r, http.StatusUnprocessableEntity, "PATCH", "/api/v1/projects/"+own, `{"retention":{"events_days":1}}`)
	if !strings.Contains(fmt.Sprint(refused), "retention.events_days") {
		t.Errorf("got %v", refused)
	}
	r.MustStop()

	s.Clock = ahead{by: 2*24*time.Hour + 23*time.Hour} // not yet
	r = s.MustServe()
	late := r.TrackNew(5)
	r.MustStop()
	if report := s.Verify(); !report.OK || report.Rows != 75 {
		t.Fatalf("too early: %+v", report)
	}

	// A machine that boots years ahead deletes nothing: no event vouches for it.
	s.Clock = ahead{by: 3000 * 24 * time.Hour}
	r = s.MustServe()
	awaitSweep(t, r)
	r.MustStop()
	if report := s.Verify(); !report.OK || report.Rows != 75 {
		t.Fatalf("by a clock that is wrong: %+v", report)
	}

	s.Clock = ahead{by: 3*24*time.Hour + time.Hour}
	r = s.MustServe()
	sent := make(chan int)
	go func() {
		for range 20 {
			send(r, 3)
		}
		sent <- 60
	}()
	for stored(t, r, own) != 5 {
		if t.Context().Err() != nil {
			t.Fatal("what was kept long enough stays")
		}
	}
	if a := r.Track(late...); a["duplicates"] != 5.0 {
		t.Errorf("got %v", a)
	}
	want := float64(30 + <-sent)
	r.MustStop()
	if report := s.Verify(); !report.OK || report.Rows != int64(want)+5 {
		t.Errorf("got %+v, want %v rows", report, want+5)
	}
	if n := stored(t, s.MustServe(), other); n != want {
		t.Errorf("the other project has %v events, want %v", n, want)
	}
}
