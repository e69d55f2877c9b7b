package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// recorded is a chunk of the world: whose it is by its ids, or by the link of its
// anonymous id when it was received.
type recorded struct {
	session string
	number  int
	ids     string
	hers    bool
}

// recordings are of ada by her id, by a tablet that is linked to her, and beside
// a pad that no event knows; and of the computer that was hers before it was
// bob's: what it sends now is his.
var recordings = []recorded{
	{"hers", 0, `"user_id":"ada"`, true},
	{"hers", 1, `"anon_id":"tablet"`, true},
	{"hers", 2, `"user_id":"ada","anon_id":"pad"`, true},
	{"tablet", 0, `"anon_id":"tablet"`, true},
	{"kiosk", 0, `"user_id":"ada","anon_id":"kiosk"`, true},
	{"kiosk", 1, `"anon_id":"kiosk"`, false},
	{"kiosk", 3, `"user_id":"bob","anon_id":"kiosk"`, false},
}

// events are those of a chunk: no two are alike.
func (c *recorded) events(w *world) string {
	if c.hers {
		return page(fmt.Sprint("/", w.secret, "/", c.session, "/", c.number))
	}
	return page(fmt.Sprint("/Bob/", c.number))
}

func (c *recorded) body(w *world) string { return chunk(c.session, c.number, c.events(w), c.ids) }

// record sends the recordings.
func (w *world) record(t *testing.T) {
	t.Helper()
	for i := range recordings {
		record(t, caller{w.r, w.r.Setup.BrowserToken}, recordings[i].body(w), "first")
	}
}

// exported: the archive has her chunks, each once, as they were sent, and nobody
// else's.
func (w *world) exported(t *testing.T, lines map[string][]map[string]any) {
	t.Helper()
	var want, got []string
	for i := range recordings {
		if c := &recordings[i]; c.hers {
			want = append(want, fmt.Sprint(c.session, c.number, w.secret))
		}
	}
	for _, line := range lines["replay_chunk"] {
		at := fmt.Sprint(line["session_id"], line["chunk"])
		if strings.Contains(fmt.Sprint(line["events"]), fmt.Sprint("/", w.secret, "/", line["session_id"], "/", line["chunk"])) {
			at += w.secret
		}
		got = append(got, at)
	}
	if !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("chunks %v, want %v", sorted(got), sorted(want))
	}
	var sessions []string
	for _, line := range lines["replay_session"] {
		sessions = append(sessions, fmt.Sprint(line["session_id"]))
	}
	if want := []string{"hers", "kiosk", "tablet"}; !slices.Equal(sorted(sessions), want) {
		t.Errorf("sessions %v, want each of %v once", sessions, want)
	}
}

// exportLost: when the blobs of her recordings are lost, the archive says so of
// each chunk, and has all the rest.
func (w *world) exportLost(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.r.Dir, "replays", "*", "*", "*"))
	if err != nil || len(files) != len(recordings) {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	path := startJob(t, w.r, "export", `"user_id":"ada"`)
	awaitJob(t, w.r, path)
	lines := archiveOf(t, w.r, path)
	if len(lines["replay_chunk"]) != 5 || lines["end"][0]["unreadable"] != 5.0 || len(lines["execution"]) != 1 {
		t.Errorf("%v", lines)
	}
	for _, line := range lines["replay_chunk"] {
		if events, there := line["events"]; !there || events != nil || line["unreadable"] != true {
			t.Errorf("%v", line)
		}
	}
}

// blobs are the contents of the files of recordings.
func (w *world) blobs(t *testing.T) (contents []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.r.Dir, "replays", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(content))
	}
	return contents
}

// onlyHisRecordings: hers are gone, with their blobs; marks of them stay, so that
// nothing brings them back; his are as they were.
func (w *world) onlyHisRecordings(t *testing.T, before []string) {
	t.Helper()
	after := w.blobs(t)
	if len(before) != len(recordings) || len(after) != 2 {
		t.Errorf("%d blobs before, %d after", len(before), len(after))
	}
	for _, blob := range before {
		if files := holding(t, w.r.Dir, blob); len(files) > 0 != slices.Contains(after, blob) {
			t.Errorf("%v hold a chunk that was deleted", files)
		}
	}
	browser := caller{w.r, w.r.Setup.BrowserToken}
	for i := range recordings {
		c := &recordings[i]
		record(t, browser, c.body(w), "duplicate")
		record(t, browser, chunk(c.session, c.number, page("/other"), c.ids), "conflict")
		if !c.hers {
			if got := events(t, w.r, c.session, c.number); got != c.events(w) {
				t.Errorf("his chunk is %q", got)
			}
			continue
		}
		owner(w.r).refused(t, "not_found", "GET", fmt.Sprint(replayOf(w.r, c.session), "/chunks/", c.number), "")
	}
	list := owner(w.r).must(t, 200, "GET", replays(w.r), "").items(t)
	if len(list) != 1 || list[0]["session_id"] != "kiosk" || list[0]["person"] != "bob" || list[0]["chunk_count"] != 2.0 {
		t.Errorf("%v", list)
	}
	one := owner(w.r).must(t, 200, "GET", replayOf(w.r, "kiosk"), "").body
	if !reflect.DeepEqual(one["gaps"], []any{0.0, 2.0}) {
		t.Errorf("%v", one)
	}
	for _, of := range []string{"ada", "tablet", "pad"} {
		if list := owner(w.r).must(t, 200, "GET", replays(w.r)+"?person="+of, "").items(t); len(list) != 0 {
			t.Errorf("%s is in %v", of, list)
		}
	}
}
