package torture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorded is a session's recording under kill -9.
type recorded struct {
	*testing.T
	program
	creds   credentials
	address string
	server  *process
	// taken are the events of the chunks that are to be there, by number.
	taken map[int]string
	// counted are the bytes of all that were ever taken.
	counted int
}

// ask sends a request. It returns the status 0 if no answer has come.
func (r *recorded) ask(method, path, secret, body string) (status int, content string) {
	request, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.address+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	text, err := io.ReadAll(response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}

// chunk sends a chunk of so many events and returns the answer, "" if none has
// come.
func (r *recorded) chunk(number, size int) string {
	r.Helper()
	events := "[" + strings.Repeat("{}, ", size) + fmt.Sprintf("{\"n\": %d}]", number)
	status, answer := r.ask("POST", "/v1/replay", r.creds.BrowserToken, fmt.Sprintf(`{"session_id":"s","chunk":%d,"events":%s,"user_id":"u"}`, number, events))
	if status != http.StatusAccepted && status != 0 {
		r.Fatalf("chunk %d: %d %s", number, status, answer)
	}
	r.taken[number] = events
	return strings.TrimSpace(answer)
}

func (r *recorded) want(number, size int, answer string) {
	r.Helper()
	if got := r.chunk(number, size); got != answer {
		r.Errorf("chunk %d: %q, want %q", number, got, answer)
	}
}

// start has a server run, which is to die at a point unless that is empty.
func (r *recorded) start(point string) {
	r.Helper()
	extra := []string{}
	if point != "" {
		extra = append(extra, "ACTIONPULSE_CRASH_AT="+point)
	}
	r.server = r.serve(r.T, r.address, []string{"--plans", fmt.Sprintf(`{"all":{"storage":%d}}`, recordedStorage), "--default_plan", "all"}, extra...)
	if !r.server.await(r.T) {
		r.Fatalf("the server did not start: %s", r.server.end(r.T))
	}
}

// recordedStorage is the quota of the test, in bytes.
const recordedStorage = 2000

// used demands that what counts is what was taken, each chunk once, also of
// those that were deleted.
func (r *recorded) used() {
	r.Helper()
	_, list := r.ask("GET", "/api/v1/organizations", r.creds.AccessToken, "")
	var organizations struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(list), &organizations); err != nil {
		r.Fatal(err)
	}
	_, text := r.ask("GET", "/api/v1/organizations/"+organizations.Items[0].ID+"/usage", r.creds.AccessToken, "")
	var usage struct{ Storage struct{ Used int } }
	if err := json.Unmarshal([]byte(text), &usage); err != nil || usage.Storage.Used != r.counted {
		r.Errorf("%d bytes were taken, what counts is %s", r.counted, text)
	}
}

// spend sends chunks until the quota is used up, which is to be exactly then,
// and leaves so that it stays used up after a kill; repeats cost nothing.
func (r *recorded) spend() {
	r.Helper()
	const size = 20
	refused := func(number int) {
		r.Helper()
		status, answer := r.ask("POST", "/v1/replay", r.creds.BrowserToken, fmt.Sprintf(`{"session_id":"s","chunk":%d,"events":[]}`, number))
		if status != http.StatusTooManyRequests || !strings.Contains(answer, "quota_exceeded") {
			r.Errorf("chunk %d with %d of %d bytes used: %d %s", number, r.counted, recordedStorage, status, answer)
		}
	}
	next := 1000
	for ; r.counted < recordedStorage; next++ {
		r.want(next, size, `{"duplicate":false}`)
		r.counted += len(r.taken[next])
	}
	refused(next)
	r.server.kill(r.T)
	r.start("")
	refused(next)
	r.want(next-1, size, `{"duplicate":true}`)
	r.used()
}

func (r *recorded) mustDie(point string) {
	r.Helper()
	if end := r.server.end(r.T); !end.killed {
		r.Fatalf("the server did not die at %s: %s", point, end)
	}
}

// whole checks that every chunk is there with its bytes, and no other.
func (r *recorded) whole() {
	r.Helper()
	path := "/api/v1/projects/" + r.creds.ProjectID + "/replays/s"
	_, text := r.ask("GET", path, r.creds.AccessToken, "")
	var one struct {
		Chunks []struct{ Chunk, Bytes int }
	}
	if err := json.Unmarshal([]byte(text), &one); err != nil || len(one.Chunks) != len(r.taken) {
		r.Errorf("%d chunks were taken, shown is %s", len(r.taken), text)
	}
	for _, c := range one.Chunks {
		status, events := r.ask("GET", fmt.Sprint(path, "/chunks/", c.Chunk), r.creds.AccessToken, "")
		if status != http.StatusOK || events != r.taken[c.Chunk] || c.Bytes != len(events) {
			r.Errorf("chunk %d: %d, %d bytes of %d", c.Chunk, status, len(events), c.Bytes)
		}
	}
}

// clean checks that in a while there is a file for each chunk, and no other.
func (r *recorded) clean() {
	r.Helper()
	for end := time.After(patience); ; {
		files := 0
		err := filepath.WalkDir(filepath.Join(r.data, "replays"), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && entry.Name() != "place" {
				files++
			}
			return err
		})
		if err == nil && files == len(r.taken) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-end:
			r.Errorf("%d files for %d chunks, %v", files, len(r.taken), err)
			return
		}
	}
}

// TestReplayUnderKill kills the server at every step of taking in a chunk and
// of deleting one, and then repeats everything: what was acknowledged is there
// once with its bytes and counts once for the quota, a repeat is told from a
// first, nothing that was deleted comes back, and no blob is left over.
func TestReplayUnderKill(t *testing.T) {
	t.Parallel()
	dir := workFolder(t)
	r := &recorded{
		T: t, program: program{path: buildBinary(t), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log")}, taken: map[int]string{},
	}
	r.creds = r.init(t.Context(), t)
	r.address, _ = freeAddresses(t)
	const first, duplicate = `{"duplicate":false}`, `{"duplicate":true}`
	for i, point := range []string{"replay.claimed", "replay.stored", "replay.written", "replay.committed"} {
		r.start(point + ":2")
		r.want(2*i, 10, first)
		r.want(2*i+1, 20, "")
		r.mustDie(point)
		r.start("")
		r.want(2*i, 10, duplicate)
		verdict := first
		if point == "replay.committed" { // the answer was lost, not the chunk
			verdict = duplicate
		}
		r.want(2*i+1, 20, verdict)
		r.want(2*i+1, 20, duplicate)
		r.whole()
		r.counted += len(r.taken[2*i]) + len(r.taken[2*i+1])
		r.used()
		r.clean()
		r.server.drain(t)
		r.verify(t.Context(), t)
	}
	for i, point := range []string{"replay.deleted", "replay.swept"} {
		r.start(point + ":1")
		status, answer := r.ask("DELETE", "/api/v1/projects/"+r.creds.ProjectID+"/replays/s", r.creds.AccessToken, "")
		// A sweep that is under way anyhow may be what dies, after the answer.
		if status != 0 && (status != http.StatusNoContent || point == "replay.deleted") {
			t.Errorf("the deletion was answered: %d %s", status, answer)
		}
		r.mustDie(point)
		r.start("")
		clear(r.taken)
		r.clean()
		for n := range 8 {
			r.want(n, 10+n%2*10, duplicate)
		}
		clear(r.taken)
		r.want(100+i, 1, first)
		r.counted += len(r.taken[100+i])
		r.used()
		r.whole()
		r.clean()
		if point == "replay.swept" {
			r.spend()
		}
		r.server.drain(t)
		r.verify(t.Context(), t)
	}
}
