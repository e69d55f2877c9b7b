package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

const (
	// watchPeriod is the length of the periods of the test.
	watchPeriod = 5 * time.Minute
	// watchPeriods of each of watchAlerts alerts are due: no more than what is
	// caught up with.
	watchPeriods = 20
	watchAlerts  = 6
	// watchDeath is the judgement of its own at which one of the servers dies.
	watchDeath = 10
	// watchTries is how often the servers get as much to do again until the second
	// has died, each time after watchWait.
	watchTries, watchWait = 10, 5 * time.Second
)

// watchers are two servers on one PostgreSQL, which judge alerts and tell one
// endpoint of them.
type watchers struct {
	*testing.T

	creds     credentials
	database  *pgx.Conn
	url       string
	addresses []string
	servers   []*process
	// first begins the first period that is due.
	first    time.Time
	endpoint *endpoint
}

// endpoint collects messages: the ids of those about a period of an alert.
type endpoint struct {
	*httptest.Server

	mu  sync.Mutex
	ids map[judged]map[string]bool
}

// judged is a period of an alert, and what the message about it says.
type judged struct {
	alert, start, kind string
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{ids: map[judged]map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			Type string
			Data struct {
				Alert  struct{ ID string }
				Period struct{ Start string }
			}
		}
		content, err := io.ReadAll(r.Body)
		if err := errors.Join(err, json.Unmarshal(content, &message)); err != nil {
			t.Errorf("%q: %v", content, err)
		}
		w.WriteHeader(http.StatusNoContent)
		e.mu.Lock()
		defer e.mu.Unlock()
		about := judged{message.Data.Alert.ID, message.Data.Period.Start, message.Type}
		if e.ids[about] == nil {
			e.ids[about] = map[string]bool{}
		}
		e.ids[about][r.Header.Get("webhook-id")] = true
	}))
	t.Cleanup(e.Close)
	return e
}

// newWatchers starts both servers on folders of one making; the second is to die
// within a judgement.
func newWatchers(t *testing.T) *watchers {
	t.Helper()
	dir := workFolder(t)
	w := &watchers{T: t, url: pgtest.New(t), endpoint: newEndpoint(t)}
	one := program{path: buildBinary(t), data: filepath.Join(dir, "one"), log: filepath.Join(dir, "log")}
	setting := "ACTIONPULSE_DATABASE=" + w.url
	made := one.run(t.Context(), t, []string{setting}, "init", "--json")
	if err := json.Unmarshal([]byte(made.stdout), &w.creds); err != nil || made.code != exitOK {
		t.Fatalf("init: %v, %s", err, made)
	}
	two := one.on(filepath.Join(dir, "two"))
	if err := os.CopyFS(two.data, os.DirFS(one.data)); err != nil {
		t.Fatal(err)
	}
	first, second := freeAddresses(t)
	w.addresses = []string{first, second}
	flags := []string{"--alerts.settle", "0s", "--webhooks.allow_private", "--materializer.max_delay", "5ms"}
	w.servers = []*process{
		one.serve(t, first, flags, setting),
		two.serve(t, second, flags, setting, fmt.Sprint("ACTIONPULSE_CRASH_AT=alert.written:", watchDeath)),
	}
	for _, s := range w.servers {
		if !s.await(t) {
			t.Fatalf("a server did not start: %s", s.end(t))
		}
	}
	var err error
	if w.database, err = pgx.Connect(t.Context(), w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.database.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

// post posts to a server and returns the status and the body of the answer.
func (w *watchers) post(server int, path, secret, body string) (status int, content []byte, err error) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), "POST", "http://"+w.addresses[server]+path, bytes.NewBufferString(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, errors.Join(err, response.Body.Close())
}

// must posts to a server, which must answer with a status, and returns the id of
// what was made.
func (w *watchers) must(server, status int, path, secret, body string) string {
	w.Helper()
	got, content, err := w.post(server, path, secret, body)
	var made struct{ ID string }
	if err := errors.Join(err, json.Unmarshal(content, &made)); err != nil || got != status {
		w.Fatalf("%s: %d %s %v", path, got, content, err)
	}
	return made.ID
}

// track sends each server the events by which its alerts are judged: one in
// every other of the periods that are due, the first included.
func (w *watchers) track() {
	w.Helper()
	var events bytes.Buffer
	for i := 0; i < watchPeriods; i += 2 {
		at := w.first.Add(time.Duration(i)*watchPeriod + time.Minute)
		fmt.Fprintf(&events, `,{"event":"purchase","user_id":"u","ts":%q}`, at.Format(time.RFC3339))
	}
	body := `{"historical":true,"events":[` + events.String()[1:] + `]}`
	for i := range w.servers {
		w.must(i, http.StatusAccepted, "/v1/track", w.creds.ServerKey, body)
	}
}

// project is the path of the project.
func (w *watchers) project() string { return "/api/v1/projects/" + w.creds.ProjectID }

// firesOn is an alert that fires when there are such events in a period.
func firesOn(event string) string {
	return fmt.Sprintf(
		`{"name":"a","source":{"type":"trend","event":%q},"period":"5m","condition":{"type":"threshold","direction":"above","value":0}}`, event)
}

// create makes an alert that fires when there are such events in a period.
func (w *watchers) create(server int, event string) string {
	w.Helper()
	return w.must(server, http.StatusCreated, w.project()+"/alerts", w.creds.AccessToken, firesOn(event))
}

// fallBehind makes alerts like another one, as if nobody had judged them for
// watchPeriods periods. It returns their ids.
func (w *watchers) fallBehind(like string) []string {
	w.Helper()
	const columns = `project_id, name, source, metric, period, timezone, condition, for_periods, resolve_after, revision, attempts, created_at, updated_at`
	ids := make([]string, watchAlerts)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7()).String()
	}
	_, err := w.database.Exec(w.Context(), `INSERT INTO alerts (id, next_start, next_end, state, good_run, bad_run, told, `+columns+`)
SELECT unnest($1::text[]), $2, $3, 'ok', 0, 0, 0, `+columns+` FROM alerts WHERE id = $4`,
		ids, w.first.UnixMicro(), w.first.Add(watchPeriod).UnixMicro(), like)
	if err != nil {
		w.Fatal(err)
	}
	return ids
}

// want are the messages that there must be: one for each period, which fires
// or resolves in turn.
func (w *watchers) want(alerts []string) map[judged]bool {
	all := map[judged]bool{}
	for _, id := range alerts {
		for i := range watchPeriods {
			start := w.first.Add(time.Duration(i) * watchPeriod).Format("2006-01-02T15:04:05.000Z")
			all[judged{id, start, []string{"alert.fired", "alert.resolved"}[i%2]}] = true
		}
	}
	return all
}

// mustBeTold waits until all of the messages have come, and demands that each
// has one id and that there is no other about their alerts.
func (w *watchers) mustBeTold(want map[judged]bool, alerts []string) {
	w.Helper()
	missing := func() int {
		w.endpoint.mu.Lock()
		defer w.endpoint.mu.Unlock()
		n := 0
		for about := range want {
			if len(w.endpoint.ids[about]) == 0 {
				n++
			}
		}
		return n
	}
	for end := time.After(patience); missing() > 0; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-end:
			w.Fatalf("%d of %d messages have not come", missing(), len(want))
		}
	}
	ours := map[string]bool{}
	for _, id := range alerts {
		ours[id] = true
	}
	w.endpoint.mu.Lock()
	defer w.endpoint.mu.Unlock()
	for about, ids := range w.endpoint.ids {
		if ours[about.alert] && (!want[about] || len(ids) != 1) {
			w.Errorf("about %+v there are the messages %v", about, ids)
		}
	}
}

// TestAlertsOfTwoServers: two servers on one database judge what both have
// missed, and one dies within a judgement. Each period is judged once, and its
// message, known by its webhook-id, is sent by whoever is left; none is missed.
func TestAlertsOfTwoServers(t *testing.T) {
	t.Parallel()
	w := newWatchers(t)
	w.must(0, http.StatusCreated, w.project()+"/webhooks", w.creds.AccessToken,
		fmt.Sprintf(`{"url":%q,"events":["alert.fired","alert.resolved"]}`, w.endpoint.URL))
	w.first = time.Now().UTC().Truncate(watchPeriod).Add(-watchPeriods * watchPeriod)
	w.track()
	like := w.create(0, "purchase")
	alerts := w.fallBehind(like)
	// What has either server look what is due. The second may do so by itself, and
	// die before it answers.
	status, content, err := w.post(1, w.project()+"/alerts", w.creds.AccessToken, firesOn("nothing"))
	if err == nil && status != http.StatusCreated {
		t.Fatalf("%d %s", status, content)
	}
	w.create(0, "nothing")
	// The first may have done most of it before the second had its turn.
	for tries := 0; tries < watchTries && !w.servers[1].ended(); tries++ {
		select {
		case <-w.servers[1].exited:
		case <-time.After(watchWait):
			alerts = append(alerts, w.fallBehind(like)...)
		}
	}
	if end := w.servers[1].end(t); !end.killed {
		t.Fatalf("the second server did not die: %s", end)
	}
	// What it was sending is its own for a minute; that is over now.
	if _, err := w.database.Exec(t.Context(), `UPDATE webhook_deliveries SET next_attempt_at = 0 WHERE state = 'pending'`); err != nil {
		t.Fatal(err)
	}
	w.mustBeTold(w.want(alerts), alerts)
	var rows, periods int
	err = w.database.QueryRow(t.Context(), `SELECT COUNT(*), COUNT(DISTINCT (alert_id, period_start)) FROM alert_evaluations
WHERE alert_id = ANY($1) AND period_start < $2`, alerts, w.first.Add(watchPeriods*watchPeriod).UnixMicro()).Scan(&rows, &periods)
	if err != nil || rows != len(alerts)*watchPeriods || periods != rows {
		t.Errorf("%d periods are judged in %d rows, %v", periods, rows, err)
	}
	w.servers[0].drain(t)
}
