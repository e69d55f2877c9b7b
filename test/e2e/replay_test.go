package e2e_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/intake"
)

// chunk is a chunk of a recording as it is sent.
func chunk(session string, number int, events string, more ...string) string {
	return fmt.Sprintf(`{"session_id":%q,"chunk":%d,"events":%s%s}`, session, number, events, strings.Join(append([]string{""}, more...), ","))
}

// page is a chunk's events that show a page.
func page(href string) string {
	return fmt.Sprintf("[ {\"type\":4, \"timestamp\":1780221600000,\"data\":{\"href\":%q}} ]", href)
}

// snapshot is a chunk's events that show a page whose elements nest so many
// levels deep, as rrweb writes them.
func snapshot(levels int) string {
	node := `{"type":3,"textContent":"x","id":1}`
	for range levels {
		node = `{"type":2,"tagName":"div","attributes":{},"childNodes":[` + node + `],"id":2}`
	}
	return `[{"type":2,"data":{"node":{"type":0,"childNodes":[` + node + `],"id":1},"initialOffset":{"left":0,"top":0}},"timestamp":1780221600000}]`
}

func replays(r *apptest.Running) string { return project(r) + "/replays" }

func replayOf(r *apptest.Running, session string) string {
	return replays(r) + "/" + url.PathEscape(session)
}

// record sends a chunk that must be taken, and checks the verdict: "first",
// "duplicate" or "conflict".
func record(t *testing.T, c caller, body, verdict string) {
	t.Helper()
	got := c.must(t, 202, "POST", "/v1/replay", body).body
	want := map[string]map[string]any{
		"first": {"duplicate": false}, "duplicate": {"duplicate": true}, "conflict": {"duplicate": true, "conflict": true},
	}[verdict]
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.100s: %v, want %v", body, got, want)
	}
}

// events reads a chunk.
func events(t *testing.T, r *apptest.Running, session string, number int) string {
	t.Helper()
	response := do(t, "GET", r.URL+fmt.Sprint(replayOf(r, session), "/chunks/", number), r.Setup.AccessToken, nil)
	content, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("chunk %d: %d %v", number, response.StatusCode, err)
	}
	return string(content)
}

// TestReplayChunks is the case from the field: 0, 2, 1, 1 again, 0 with other
// bytes, never 3; then 4.
func TestReplayChunks(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		browser, server := caller{r, r.Setup.BrowserToken}, caller{r, r.Setup.ServerKey}
		record(t, browser, chunk("s/1", 0, page("/0"), `"anon_id":"a"`, `"future":[1]`), "first")
		record(t, browser, chunk("s/1", 2, page("/2"), `"anon_id":"a"`, `"user_id":"u"`), "first")
		record(t, server, chunk("s/1", 1, page("/1")), "first")
		record(t, caller{r, r.Setup.LegacyKey}, chunk("s/1", 1, page("/1")), "duplicate")
		record(t, browser, chunk("s/1", 1, `[{"data":{"href":"\/1"},"type":4.0,"timestamp":1780221600e3}]`), "duplicate")
		record(t, browser, chunk("s/1", 0, page("/other")), "conflict")
		record(t, browser, chunk("s/1", 4, page("/4")), "first")

		one := owner(r).must(t, 200, "GET", replayOf(r, "s/1"), "").body
		if one["session_id"] != "s/1" || one["person"] != "u" || one["pages"] != 4.0 || one["chunk_count"] != 4.0 || !reflect.DeepEqual(one["gaps"], []any{3.0}) {
			t.Errorf("%v", one)
		}
		for i, c := range one["chunks"].([]any) { //nolint:forcetypeassert // a panic says as much
			number := []int{0, 1, 2, 4}[i]
			c := c.(map[string]any) //nolint:forcetypeassert // as above
			if want := page(fmt.Sprint("/", number)); c["chunk"] != float64(number) || c["bytes"] != float64(len(want)) || events(t, r, "s/1", number) != want {
				t.Errorf("%v", c)
			}
		}
		list := owner(r).must(t, 200, "GET", replays(r)+"?person=a&has_errors=false&min_duration=0", "").items(t)
		if len(list) != 1 || list[0]["session_id"] != "s/1" {
			t.Errorf("%v", list)
		}
		for _, none := range []string{"?person=x", "?has_errors=true", "?min_duration=0.001", "?from=2090-01-01T00:00:00Z", "?to=2020-01-01T00:00:00Z"} {
			if list := owner(r).must(t, 200, "GET", replays(r)+none, "").items(t); len(list) != 0 {
				t.Errorf("%s: %v", none, list)
			}
		}
		owner(r).refused(t, "not_found", "GET", replayOf(r, "s/1")+"/chunks/3", "")
		deleteReplay(t, r)
	})
}

// TestReplayAtOnce: of eight bodies for one chunk, and of eight alike, one is
// first; the least and the greatest number are chunks like others.
func TestReplayAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := caller{r, r.Setup.BrowserToken}
		for number, bodies := range map[int]int{0: 8, 1_000_000: 1} {
			var answers [8]said
			together(8, func(i int) {
				answers[i] = c.call(t, "POST", "/v1/replay", chunk("s", number, page(fmt.Sprint("/", i%bodies))))
			})
			first := 0
			stored := events(t, r, "s", number)
			for i, s := range answers {
				mine := stored == page(fmt.Sprint("/", i%bodies))
				switch {
				case s.status == http.StatusAccepted && s.body["duplicate"] == false && mine:
					first++
				case s.status != http.StatusAccepted || s.body["duplicate"] != true || (s.body["conflict"] == true) == mine:
					t.Errorf("chunk %d, %d: %d %v", number, i, s.status, s.body)
				}
			}
			if first != 1 {
				t.Errorf("chunk %d was first %d times", number, first)
			}
		}
		c.refused(t, "validation_failed", "POST", "/v1/replay", chunk("s", 1_000_001, "[]"))
		one := owner(r).must(t, 200, "GET", replayOf(r, "s"), "").body
		if one["chunk_count"] != 2.0 || one["gap_count"] != 999_999.0 || len(one["gaps"].([]any)) != 10_000 { //nolint:forcetypeassert // a panic says as much
			t.Errorf("%v chunks, %v gaps", one["chunk_count"], one["gap_count"])
		}
	})
}

// leaping is a clock that a test sets ahead.
type leaping struct{ ahead atomic.Int64 }

func (c *leaping) Wall() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (*leaping) Elapsed() time.Duration { return intake.SystemClock{}.Elapsed() }

// TestReplayWhileTheClockHasJumped: recordings are refused as events are, from
// the start of the process on, and are taken when the clock is right again.
func TestReplayWhileTheClockHasJumped(t *testing.T) {
	t.Parallel()
	site, clock := apptest.New(t), &leaping{}
	site.Clock = clock
	r := site.MustServe()
	c := caller{r, r.Setup.ServerKey}
	refused := func(n int) {
		t.Helper()
		clock.ahead.Store(int64(45 * 24 * time.Hour))
		for path, body := range map[string]string{"/v1/replay": chunk("s", n, page("/")), "/v1/track": goodBatch} {
			if s := c.refused(t, "unavailable", "POST", path, body); s.detail("applied") != false || s.header.Get("Retry-After") == "" {
				t.Errorf("%s: %v %s", path, s.header, s.raw)
			}
		}
		clock.ahead.Store(0)
	}
	refused(0) // before the process has taken anything
	record(t, c, chunk("s", 0, page("/")), "first")
	refused(1) // before its first event
	r.TrackNew(1)
	refused(1)
	clock.ahead.Store(int64(45 * 24 * time.Hour))
	record(t, c, chunk("s", 0, page("/")), "duplicate")
	clock.ahead.Store(0)
	record(t, c, chunk("s", 1, page("/")), "first")
}

// deleteReplay deletes the session of the test: its chunks stay known.
func deleteReplay(t *testing.T, r *apptest.Running) {
	owner(r).must(t, 204, "DELETE", replayOf(r, "s/1"), "")
	owner(r).refused(t, "not_found", "DELETE", replayOf(r, "s/1"), "")
	owner(r).refused(t, "not_found", "GET", replayOf(r, "s/1"), "")
	owner(r).refused(t, "not_found", "GET", replayOf(r, "s/1")+"/chunks/1", "")
	record(t, caller{r, r.Setup.ServerKey}, chunk("s/1", 1, page("/1")), "duplicate")
	record(t, caller{r, r.Setup.ServerKey}, chunk("s/1", 1, page("/2")), "conflict")
	if list := owner(r).must(t, 200, "GET", replays(r), "").items(t); len(list) != 0 {
		t.Errorf("%v", list)
	}
	entries := auditLog(t, owner(r), own(r))
	if id := fmt.Sprint(part(t, entries[0], "object")["id"]); entries[0]["action"] != "replay.deleted" || id != fmt.Sprintf("%x", sha256.Sum256([]byte("s/1"))) {
		t.Errorf("%v", entries[0])
	}
	r.MustStop()
	if report := r.Verify(); !report.OK || report.ReplayChunks != 0 {
		t.Errorf("%+v", report)
	}
}

// TestReplayIsRead: pages send by beacons, with and without compression, and
// what is wrong is refused in the order of all refusals.
func TestReplayIsRead(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write([]byte(chunk("zipped", 0, page(strings.Repeat("x", 4<<20))))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	request := requestOf(t, nobody(r), "POST", "/v1/replay?key="+r.Setup.BrowserToken, small.String())
	request.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("Origin", "https://shop.example")
	if s := sendRequest(t, request); s.status != 202 || s.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", s.status, s.header)
	}
	if got := events(t, r, "zipped", 0); got != page(strings.Repeat("x", 4<<20)) {
		t.Errorf("%d bytes", len(got))
	}
	c := caller{r, r.Setup.BrowserToken}
	deep := snapshot(100)
	record(t, c, chunk("deep", 0, deep), "first")
	record(t, c, chunk("deep", 0, strings.ReplaceAll(deep, `"tagName":"div","attributes":{}`, `"attributes":{},"tagName":"div"`)), "duplicate")
	record(t, c, chunk("deep", 0, strings.Replace(deep, `"x"`, `"y"`, 1)), "conflict")
	if got := events(t, r, "deep", 0); got != deep {
		t.Errorf("%d bytes", len(got))
	}
	c.refused(t, "invalid_json", "POST", "/v1/replay", chunk("deep", 1, snapshot(254)))
	c.refused(t, "invalid_json", "POST", "/v1/replay", chunk("deep", 1, "[]", `"x":`+snapshot(30)))
	large := c.refused(t, "payload_too_large", "POST", "/v1/replay", chunk("s", 0, page(strings.Repeat("x", 5<<20))))
	if large.detail("limit_bytes") != float64(5<<20) {
		t.Errorf("%v", large.body)
	}
	nobody(r).refused(t, "unauthenticated", "POST", "/v1/replay", "{")
	caller{r, r.Setup.ProjectKey}.refused(t, "forbidden", "POST", "/v1/replay", "{")
	c.refused(t, "invalid_json", "POST", "/v1/replay", `{"session_id":"s","chunk":-1`)
	if s := c.refused(t, "validation_failed", "POST", "/v1/replay", `{"session_id":"s","chunk":-1,"events":[]}`); s.status != 422 || s.detail("field") != "chunk" {
		t.Errorf("%v", s.body)
	}
	for _, bad := range []string{"?limit=0", "?cursor=x", "?from=x", "?min_duration=-1", "?min_duration=1h", "?has_errors=1", "?person=a&person=b"} {
		owner(r).refused(t, "validation_failed", "GET", replays(r)+bad, "")
	}
	for _, name := range []string{"/", "a/b", "%2F", ".", "..", "ü \t"} {
		record(t, c, chunk(name, 1, page(name)), "first")
		path := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
		if got := owner(r).must(t, 200, "GET", replays(r)+"/"+path, "").body; got["session_id"] != name || got["gap_count"] != 1.0 || got["person"] != nil {
			t.Errorf("%q: %v", name, got)
		}
		if response := do(t, "HEAD", r.URL+replays(r)+"/"+path+"/chunks/1", r.Setup.AccessToken, nil); response.StatusCode != http.StatusOK || response.Body.Close() != nil {
			t.Errorf("%q: %d", name, response.StatusCode)
		}
	}
	metrics := do(t, "GET", r.URL+"/metrics", "", nil)
	text, err := io.ReadAll(metrics.Body)
	if err != nil || metrics.Body.Close() != nil || !strings.Contains(string(text), "actionpulse_intake_accepted_total 10\n") {
		t.Errorf("%v %.2000s", err, text)
	}
}

// TestReplayPages: a list goes on where the page before ended, although new
// sessions come.
func TestReplayPages(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	c := caller{r, r.Setup.ServerKey}
	for i := range 5 {
		record(t, c, chunk(fmt.Sprint(i), 0, "[]"), "first")
	}
	var seen []any
	for cursor, i := "", 0; ; i++ {
		s := owner(r).must(t, 200, "GET", replays(r)+"?limit=2"+cursor, "")
		for _, item := range s.items(t) {
			seen = append(seen, item["session_id"])
		}
		record(t, c, chunk(fmt.Sprint("new", i), 0, "[]"), "first")
		if s.body["next_cursor"] == nil {
			break
		}
		cursor = "&cursor=" + s.text(t, "next_cursor")
	}
	if !reflect.DeepEqual(seen, []any{"4", "3", "2", "1", "0"}) {
		t.Errorf("%v", seen)
	}
}

// TestReplayOnAFullDisk: while there is no room nothing is taken, and
// afterwards the same chunk is new; damage is told.
func TestReplayOnAFullDisk(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	c := caller{r, r.Setup.ServerKey}
	record(t, c, chunk("s", 0, page("/0")), "first")
	r.MustStop()
	site.Flags = []string{"--storage.min_free_bytes", "900TB"}
	r = site.MustServe()
	c.r = r
	s := c.refused(t, "internal", "POST", "/v1/replay", chunk("s", 1, page("/1")))
	if s.status != 500 || s.detail("retryable") != true || s.header.Get("X-Should-Retry") != "true" || s.header.Get("Retry-After") == "" {
		t.Errorf("%v %v", s.header, s.body)
	}
	record(t, c, chunk("s", 0, page("/0")), "duplicate") // which writes nothing
	r.MustStop()
	site.Flags = nil
	r = site.MustServe()
	c.r = r
	record(t, c, chunk("s", 1, page("/1")), "first")
	files, err := filepath.Glob(filepath.Join(site.Dir, "replays", "*", "*", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("not what was written"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damaged := owner(r).refused(t, "internal", "GET", replayOf(r, "s")+"/chunks/1", "")
	if damaged.detail("retryable") != false || damaged.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%v %v", damaged.header, damaged.body)
	}
	record(t, c, chunk("s", 1, page("/1")), "duplicate")
	if report := r.Verify(); report.OK || report.ReplayChunks != 2 || len(report.Differences) != 2 {
		t.Errorf("%+v", report)
	}
	r.MustStop()
	if err := os.RemoveAll(filepath.Join(site.Dir, "replays")); err != nil {
		t.Fatal(err)
	}
	site.MustRefuse("replays is missing")
}
