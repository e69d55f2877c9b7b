package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// privacyRound is a job and the steps at which the process is killed, one after
// the other.
type privacyRound struct {
	kind   string
	points []string
	// lost says that the folder of intake is lost at last, and repaired.
	lost bool
	// backlog says that nothing is stored before the process is killed, and that
	// the folder is repaired then, with the person's events and the erase record
	// waiting.
	backlog bool
}

var privacyRounds = []privacyRound{
	{kind: "delete", points: []string{
		"privacy.begun", "privacy.recorded", "privacy.stored", "privacy.replays", "privacy.customers", "privacy.rewritten", "privacy.purged",
	}},
	{kind: "delete", points: []string{"privacy.recorded"}, backlog: true},
	{kind: "delete", points: []string{"privacy.recorded"}, lost: true},
	{kind: "export", points: []string{"privacy.archived"}},
}

// privacyRun is a data folder whose server is killed amid privacy jobs.
type privacyRun struct {
	*testing.T

	program program
	address string
	creds   credentials
	server  *process
	// others are the ids of the events that must stay whatever happens.
	others []string
}

// TestPrivacyJobsEnd kills the server at each step of a deletion and of an
// export, which are raced by what the person goes on to send, by a backlog and by
// repairs: after the next start the job ends by itself. What was acknowledged
// before the deletion is gone, from the files, too, and does not come back,
// however often it is sent; what the person does later is there; and nobody
// else's is touched.
func TestPrivacyJobsEnd(t *testing.T) {
	t.Parallel()
	dir := workFolder(t)
	x := &privacyRun{T: t, program: program{path: buildBinary(t), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "server.log")}}
	_, x.address = freeAddresses(t)
	x.creds = x.program.init(t.Context(), t)
	for i := range privacyRounds {
		x.round(&privacyRounds[i], fmt.Sprint("person-", i))
	}
	x.program.verify(t.Context(), t)
}

// round is one job about a person, from its events to the repeats.
func (x *privacyRun) round(r *privacyRound, person string) {
	x.Helper()
	var job string
	var hers, requests []string
	race := func() []string { return nil }
	for n, point := range r.points {
		var flags []string
		if r.backlog {
			flags = []string{"--materializer.max_delay=10s"}
		}
		x.start(flags, "ACTIONPULSE_CRASH_AT="+point+":1")
		if n == 0 {
			hers, requests = x.live(person)
			if r.lost {
				x.awaitStored(len(hers) + len(x.others))
			} else {
				race = x.race(person)
			}
			job = x.job(r.kind, person)
		}
		if r := x.server.end(x.T); !r.killed {
			x.Fatalf("the server did not die at %s: %s", point, r)
		}
	}
	x.repair(r)
	x.start(nil)
	x.awaitEnd(job)
	x.check(r.kind, &done{person: person, hers: hers, requests: requests, raced: race()})
	x.server.drain(x.T)
}

// repair repairs the folder if the round is one with a repair.
func (x *privacyRun) repair(r *privacyRound) {
	x.Helper()
	switch {
	case r.lost:
		x.loseIntake()
	case r.backlog:
		if waiting := x.program.verify(x.Context(), x.T).Backlog; waiting == 0 {
			x.Error("there is no backlog")
		}
		if r := x.program.repair(x.Context(), x.T); r.Lost != 0 {
			x.Fatalf("the repair has lost something: %+v", r)
		}
	}
}

// race has the person go on to send events, one after the other, each until it is
// acknowledged, until stop is called, which returns their ids in that order.
func (x *privacyRun) race(person string) (stop func() []string) {
	ctx, cancel := context.WithCancel(x.Context())
	var acknowledged []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			ids, body := x.batch(fmt.Sprintf(`"user_id":%q`, person))
			for !x.sent(body) {
				select {
				case <-ticker.C:
				case <-x.Context().Done():
					return
				}
			}
			acknowledged = append(acknowledged, ids...)
			<-ticker.C
		}
	}()
	return func() []string {
		cancel()
		<-done
		return acknowledged
	}
}

// sent sends events to a server that may die, and says whether they were
// acknowledged.
func (x *privacyRun) sent(body string) bool {
	request, err := http.NewRequestWithContext(x.Context(), http.MethodPost, "http://"+x.address+"/v1/track", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+x.creds.ServerKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close()) == nil && response.StatusCode == http.StatusAccepted
}

// loseIntake takes the folder of intake away and repairs.
func (x *privacyRun) loseIntake() {
	x.Helper()
	if err := os.RemoveAll(filepath.Join(x.program.data, "intake")); err != nil {
		x.Fatal(err)
	}
	x.program.repair(x.Context(), x.T)
}

// start starts the server with further flags and environment.
func (x *privacyRun) start(flags []string, environment ...string) {
	x.Helper()
	x.server = x.program.serve(x.T, x.address, flags, environment...)
	if !x.server.await(x.T) {
		x.Fatalf("the server did not start: %s", x.server.end(x.T))
	}
}

// ask sends a request and demands a status.
func (x *privacyRun) ask(status int, secret, method, path, body string) (answer map[string]any) {
	x.Helper()
	request, err := http.NewRequestWithContext(x.Context(), method, "http://"+x.address+path, strings.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		x.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read to its end
	if err != nil || response.StatusCode != status {
		x.Fatalf("%s %s: %d %s %v, want %d", method, path, response.StatusCode, content, err, status)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		x.Fatal(err)
	}
	return answer
}

// batch is a request with an event of each user.
func (x *privacyRun) batch(users ...string) (ids []string, body string) {
	var items []string
	for _, user := range users {
		ids = append(ids, uuid.NewString())
		items = append(items, fmt.Sprintf(`{"event_id":%q,"event":"seen",%s}`, ids[len(ids)-1], user))
	}
	return ids, `{"events":[` + strings.Join(items, ",") + `]}`
}

// secretOf stands in what a person has sent before the job.
func secretOf(person string) string { return "the secret of " + person }

// live sends events of a person, by id and by a linked one, and of others.
func (x *privacyRun) live(person string) (hers, requests []string) {
	x.Helper()
	x.ask(202, x.creds.ServerKey, "POST", "/v1/alias", fmt.Sprintf(`{"anon_id":"device of %s","user_id":%q}`, person, person))
	for range 3 {
		secret := fmt.Sprintf(`,"properties":{"p":%q}`, secretOf(person))
		ids, body := x.batch(fmt.Sprintf(`"user_id":%q`, person)+secret, fmt.Sprintf(`"anon_id":"device of %s"`, person)+secret, `"user_id":"other"`)
		x.ask(202, x.creds.ServerKey, "POST", "/v1/track", body)
		hers, requests, x.others = append(hers, ids[:2]...), append(requests, body), append(x.others, ids[2])
	}
	return hers, requests
}

// job makes a privacy job and returns its path.
func (x *privacyRun) job(kind, person string) string {
	x.Helper()
	path := "/api/v1/projects/" + x.creds.ProjectID + "/privacy-jobs"
	job := x.ask(202, x.creds.AccessToken, "POST", path, fmt.Sprintf(`{"kind":%q,"user_id":%q}`, kind, person))
	return path + "/" + fmt.Sprint(job["id"])
}

// until waits for something.
func (x *privacyRun) until(what string, so func() bool) {
	x.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(patience); !so(); {
		select {
		case <-ticker.C:
		case <-end:
			x.Fatal(what)
		}
	}
}

// awaitEnd waits until a job has succeeded.
func (x *privacyRun) awaitEnd(path string) {
	x.Helper()
	x.until(path+" does not end", func() bool {
		return x.ask(200, x.creds.AccessToken, "GET", path, "")["status"] == "succeeded"
	})
}

// stored are the ids of the stored events.
func (x *privacyRun) stored() (ids []string) {
	x.Helper()
	rows, err := reader{"http://" + x.address, x.creds}.all(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	for _, r := range rows {
		ids = append(ids, r.EventID.String())
	}
	slices.Sort(ids)
	return ids
}

func (x *privacyRun) awaitStored(n int) {
	x.Helper()
	x.until("the events are not stored", func() bool { return len(x.stored()) >= n })
}

// done is what was sent of a person: before a job, in whole requests, and while
// it was done, in that order.
type done struct {
	person                string
	hers, requests, raced []string
}

// repeats are requests with the events of the race.
func (x *privacyRun) repeats(d *done) (requests []string) {
	for some := range slices.Chunk(d.raced, 500) {
		var items []string
		for _, eventID := range some {
			items = append(items, fmt.Sprintf(`{"event_id":%q,"event":"seen","user_id":%q}`, eventID, d.person))
		}
		requests = append(requests, `{"events":[`+strings.Join(items, ",")+`]}`)
	}
	return requests
}

// check looks at what is there after a job that was killed.
func (x *privacyRun) check(kind string, d *done) {
	x.Helper()
	if files := holding(x.T, x.program.data, secretOf(d.person)); len(files) > 0 != (kind == "export") {
		x.Errorf("%s: %v hold the secret", d.person, files)
	}
	later, body := x.batch(fmt.Sprintf(`"user_id":%q`, d.person))
	x.ask(202, x.creds.ServerKey, "POST", "/v1/track", body)
	for _, request := range append(d.requests, x.repeats(d)...) {
		if a := x.ask(202, x.creds.ServerKey, "POST", "/v1/track", request); a["duplicates"] != a["accepted"] {
			x.Errorf("%s: a repeat is new: %v", d.person, a)
		}
	}
	x.until("the last event is not stored", func() bool { return slices.Contains(x.stored(), later[0]) })
	got := x.stored()
	want := slices.Concat(x.others, later, x.suffix(kind, got, d))
	if kind == "export" {
		want = append(want, d.hers...)
	}
	x.others = want // all of it must stay from now on
	if slices.Sort(want); !slices.Equal(got, want) {
		x.Errorf("%s: %d events are stored, want %d:\n%v\n%v", d.person, len(got), len(want), got, want)
	}
}

// suffix are the events of the race that must be there: an export takes none, and
// of a deletion all that were acknowledged after the first that is there.
func (x *privacyRun) suffix(kind string, stored []string, d *done) []string {
	x.Helper()
	first := slices.IndexFunc(d.raced, func(eventID string) bool { return slices.Contains(stored, eventID) })
	switch {
	case kind == "export":
		return d.raced
	case len(d.raced) == 0:
		return nil
	case first < 0:
		x.Errorf("%s: nothing that was sent after the deletion is there", d.person)
		return nil
	}
	x.Logf("%s: of %d events of the race the first %d were erased", d.person, len(d.raced), first)
	return d.raced[first:]
}

// holding are the files of a folder that hold a text. One that is removed while
// they are looked at, as the stores of a running server do, holds nothing.
func holding(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(content, []byte(text)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
