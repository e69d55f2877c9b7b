package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
)

const testKey = "aps_secret"

// fakeIntake accepts items that have a user_id and remembers their ids.
type fakeIntake struct {
	mu sync.Mutex
	// onRequest, if set, is called at each request.
	onRequest func()
	items     map[string]map[string]any
	bodies    []string
}

func startFakeIntake(t *testing.T) (*fakeIntake, string) {
	t.Helper()
	f := &fakeIntake{items: map[string]map[string]any{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return f, s.URL
}

func (f *fakeIntake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onRequest != nil {
		f.onRequest()
	}
	w.Header().Set("Content-Type", "application/json")
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer "+testKey {
		w.WriteHeader(http.StatusUnauthorized)
		write(w, `{"error":{"code":"unauthenticated","message":"who are you?","request_id":"r-1"}}`)
		return
	}
	f.bodies = append(f.bodies, string(body))
	var batch struct {
		Events []map[string]any `json:"events"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		write(w, `{"error":{"code":"invalid_json","message":"no","request_id":"r-1"}}`)
		return
	}
	accepted, duplicates := 0, 0
	rejected := []string{}
	for i, item := range batch.Events {
		id := fmt.Sprint(item["event_id"])
		if item["user_id"] == nil {
			rejected = append(rejected, fmt.Sprintf(`{"index":%d,"event_id":%q,"code":"missing_identity","message":"no anon_id or user_id"}`, i, id))
			continue
		}
		accepted++
		if f.items[id] != nil {
			duplicates++
		}
		f.items[id] = item
	}
	w.WriteHeader(http.StatusAccepted)
	write(w, fmt.Sprintf(`{"accepted":%d,"duplicates":%d,"rejected":[%s]}`, accepted, duplicates, strings.Join(rejected, ",")))
}

func write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// sent is what a run of send showed.
type sent struct {
	code           int
	stdout, stderr string
	// message is what main would print of the error.
	message string
}

// send runs "actionpulse send" with the given arguments.
func send(ctx context.Context, t *testing.T, stdin string, args ...string) sent {
	t.Helper()
	var cli struct {
		Send sendCommand `cmd:""`
	}
	parser, err := kong.New(&cli, kong.DefaultEnvars("ACTIONPULSE"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"send"}, args...)); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	err = cli.Send.run(ctx, sendIO{streams: streams{strings.NewReader(stdin), &stdout, &stderr}})
	s := sent{code: exitCode(err), stdout: stdout.String(), stderr: stderr.String()}
	if err != nil {
		s.message = err.Error()
	}
	if strings.Contains(s.stdout+s.stderr+s.message, testKey) {
		t.Errorf("the key was printed: %+v", s)
	}
	return s
}

// writeSendFile writes a file of the test and returns its path.
func writeSendFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// permitCSV has the traits of a real log: two offsets, a space for the T,
// empty columns and repeated rows that are different events.
const permitCSV = `case:concept:name,concept:name,time:timestamp,org:group,case:deadline
case-1,Confirmation of receipt,2011-10-11 13:45:40.276000+02:00,Group 1,
case-1,Check,2011-12-06 13:41:31.788000+01:00,,2012-01-06
case-1,Check,2011-12-06 13:41:31.788000+01:00,,2012-01-06
case-2,Confirmation of receipt,2011-10-12 08:26:25+02:00,,
`

var permitFlags = []string{"--event", "concept:name", "--user", "case:concept:name", "--ts", "time:timestamp", "--historical", "--key", testKey}

func TestSendMapsColumns(t *testing.T) {
	t.Parallel()
	f, url := startFakeIntake(t)
	path := writeSendFile(t, "permit.csv", permitCSV)
	got := send(t.Context(), t, "", slices.Concat(permitFlags, []string{"--url", url, path})...)
	if got.code != 0 || !strings.HasPrefix(got.stdout, "sent 4, accepted 4, duplicates 0, rejected 0\n1 requests, 0 retries, ") {
		t.Fatalf("%+v", got)
	}
	if len(f.items) != 4 || !strings.HasPrefix(f.bodies[0], `{"historical":true,"events":[`) {
		t.Errorf("%d items, %s", len(f.items), f.bodies)
	}
	want := `"event":"Check","user_id":"case-1","ts":"2011-12-06T12:41:31.788Z","properties":{"case:deadline":"2012-01-06"}}`
	if strings.Count(f.bodies[0], want) != 2 {
		t.Errorf("no %s twice in %s", want, f.bodies[0])
	}
}

func TestSendAgain(t *testing.T) {
	t.Parallel()
	f, url := startFakeIntake(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	write(w, permitCSV)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(permitFlags, []string{"--json", "--url", url + "/"})
	for i, c := range []struct{ stdin, file string }{
		{"", writeSendFile(t, "a.csv", permitCSV)},
		{"", writeSendFile(t, "no-suffix", packed.String())},
		{permitCSV, "-"},
		{packed.String(), "-"},
	} {
		got := send(t.Context(), t, c.stdin, slices.Concat(args, []string{c.file})...)
		var s struct {
			Accepted, Duplicates int
			Complete             bool
		}
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
			t.Fatal(err)
		}
		if got.code != 0 || s.Accepted != 4 || s.Duplicates != min(i, 1)*4 || !s.Complete {
			t.Errorf("run %d: %+v", i, got)
		}
	}
	if got := send(t.Context(), t, permitCSV, slices.Concat(args, []string{"--id-seed", "another", "-"})...); got.code != 0 || len(f.items) != 8 {
		t.Errorf("with a seed: %d items, %+v", len(f.items), got)
	}
}

func TestSendReportsRejected(t *testing.T) {
	t.Parallel()
	_, url := startFakeIntake(t)
	const id = "0188b1f0-0000-7000-8000-000000000001"
	input := fmt.Sprintf("{\"event\":\"a\",\"user_id\":\"u\"}\n{\"event\":\"b\",\"event_id\":%q}\nnonsense\n", id)
	got := send(t.Context(), t, input, "--key", testKey, "--url", url, "--quiet", "-")
	if got.code != exitRejected || got.message != "2 items were rejected" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{
		"rejected standard input:2: missing_identity: no anon_id or user_id (event_id " + id + ")\n",
		"rejected standard input:3: invalid_event: the line is not JSON in UTF-8: ",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %s", want, got.stderr)
		}
	}
}

func TestSendInterrupted(t *testing.T) {
	t.Parallel()
	f, url := startFakeIntake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.onRequest = cancel
	args := slices.Concat(permitFlags, []string{"--url", url, "--batch-size", "1", writeSendFile(t, "a.csv", permitCSV)})
	got := send(ctx, t, "", args...)
	if got.code != exitInterrupted || !strings.Contains(got.message, "run the same command again") || !strings.HasPrefix(got.stdout, "sent 1, accepted 1,") {
		t.Errorf("%+v", got)
	}
	f.onRequest = nil
	if got := send(t.Context(), t, "", args...); got.code != 0 || len(f.items) != 4 || !strings.HasPrefix(got.stdout, "sent 4, accepted 4, duplicates 1,") {
		t.Errorf("%+v", got)
	}
}

func TestSendFails(t *testing.T) {
	t.Parallel()
	_, url := startFakeIntake(t)
	good := writeSendFile(t, "good.csv", permitCSV)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no key":         {[]string{"--key", ""}, exitUsage, "ACTIONPULSE_KEY"},
		"key with break": {[]string{"--key", "aps\nx"}, exitUsage, "copied whole"},
		"wrong key":      {[]string{"--key", "aps_other"}, exitFailure, "401 unauthenticated: who are you? (request r-1)"},
		"no file":        {[]string{"absent.csv"}, exitUsage, "absent.csv: no such file"},
		"no column":      {[]string{"--session", "s"}, exitUsage, "no column named s (--session); the columns are case:concept:name"},
		"two stdins":     {[]string{"-", "-"}, exitUsage, "only once"},
		"directory":      {[]string{t.TempDir()}, exitUsage, "is a directory"},
		"both events":    {[]string{"--event-name", "x"}, exitUsage, "exclude"},
		"batch size":     {[]string{"--batch-size", "1001"}, exitUsage, "--batch-size is 1 to 1000"},
		"attempts":       {[]string{"--max-attempts", "0"}, exitUsage, "--max-attempts"},
		"zone":           {[]string{"--timezone", "Mars"}, exitUsage, "--timezone"},
		"query in URL":   {[]string{"--url", url + "?key=aps_x"}, exitUsage, "the server's address only"},
		"no scheme":      {[]string{"--url", "localhost:8080"}, exitUsage, "not an address"},
		"nobody there":   {[]string{"--url", "http://127.0.0.1:1", "--max-attempts", "1"}, exitGaveUp, "connection refused; run the same command again"},
		"bad CSV":        {[]string{writeSendFile(t, "bad.csv", permitCSV+"a,\"b")}, exitFailure, "bad.csv:6: the CSV is broken"},
	} {
		args := slices.Concat(permitFlags, []string{"--url", url}, c.args, []string{good})
		if got := send(t.Context(), t, "", args...); got.code != c.code || !strings.Contains(got.message, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestSendEnvironment: the address and the key come from the environment, and
// no other flag does.
func TestSendEnvironment(t *testing.T) {
	f, url := startFakeIntake(t)
	t.Setenv("ACTIONPULSE_URL", url)
	t.Setenv("ACTIONPULSE_KEY", testKey)
	t.Setenv("ACTIONPULSE_USER", "nobody")
	if got := send(t.Context(), t, "event,user_id\na,u\n", "-"); got.code != 0 || len(f.items) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestSendProgress: on a terminal there is a bar, and it is gone at the end.
func TestSendProgress(t *testing.T) {
	t.Parallel()
	_, url := startFakeIntake(t)
	var stdout, stderr bytes.Buffer
	c := sendCommand{
		Files: []string{writeSendFile(t, "a.csv", "event,user_id\n"+strings.Repeat("a,u\n", 9)+"a,\n")},
		URL:   url, Key: testKey, Timezone: "UTC", BatchSize: 1, MaxAttempts: 1,
	}
	err := c.run(t.Context(), sendIO{streams{strings.NewReader(""), &stdout, &stderr}, true})
	if exitCode(err) != exitRejected || !strings.Contains(stderr.String(), "sent 1") || !strings.Contains(stderr.String(), "rejected ") {
		t.Errorf("%v\n%q\n%s", err, stderr.String(), stdout.String())
	}
}
