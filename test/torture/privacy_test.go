package torture_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// privacyRounds are jobs and the steps of each at which the process is killed,
// one after the other; lost says that the folder of intake is lost then, and
// repaired.
var privacyRounds = []struct {
	kind   string
	points []string
	lost   bool
}{
	{"delete", []string{
		"privacy.begun", "privacy.recorded", "privacy.stored", "privacy.replays", "privacy.customers", "privacy.rewritten", "privacy.purged",
	}, false},
	{"delete", []string{"privacy.recorded"}, true},
	{"export", []string{"privacy.archived"}, false},
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
// export: after the next start the job ends by itself. Events that were erased
// do not come back, however often they are sent; what the person does later is
// there; and nobody else's is touched.
func TestPrivacyJobsEnd(t *testing.T) {
	t.Parallel()
	dir := workFolder(t)
	x := &privacyRun{T: t, program: program{path: buildBinary(t), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "server.log")}}
	_, x.address = freeAddresses(t)
	x.creds = x.program.init(t.Context(), t)
	for i, round := range privacyRounds {
		person, job := fmt.Sprint("person-", i), ""
		var hers, requests []string
		for n, point := range round.points {
			x.start("ACTIONPULSE_CRASH_AT=" + point + ":1")
			if n == 0 {
				hers, requests = x.live(person)
				if round.lost {
					x.awaitStored(len(hers) + len(x.others))
				}
				job = x.job(round.kind, person)
			}
			if r := x.server.end(t); !r.killed {
				t.Fatalf("the server did not die at %s: %s", point, r)
			}
		}
		if round.lost {
			x.loseIntake()
		}
		x.start()
		x.awaitEnd(job)
		x.check(round.kind, person, hers, requests)
		x.server.drain(t)
	}
	x.program.verify(t.Context(), t)
}

// loseIntake takes the folder of intake away and repairs.
func (x *privacyRun) loseIntake() {
	x.Helper()
	if err := os.RemoveAll(filepath.Join(x.program.data, "intake")); err != nil {
		x.Fatal(err)
	}
	x.program.repair(x.Context(), x.T)
}

// start starts the server with further environment.
func (x *privacyRun) start(environment ...string) {
	x.Helper()
	x.server = x.program.serve(x.T, x.address, nil, environment...)
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

// live sends events of a person, by id and by a linked one, and of others.
func (x *privacyRun) live(person string) (hers, requests []string) {
	x.Helper()
	x.ask(202, x.creds.ServerKey, "POST", "/v1/alias", fmt.Sprintf(`{"anon_id":"device of %s","user_id":%q}`, person, person))
	for range 3 {
		ids, body := x.batch(fmt.Sprintf(`"user_id":%q`, person), fmt.Sprintf(`"anon_id":"device of %s"`, person), `"user_id":"other"`)
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

// check looks at what is there after a job that was killed.
func (x *privacyRun) check(kind, person string, hers, requests []string) {
	x.Helper()
	later, body := x.batch(fmt.Sprintf(`"user_id":%q`, person))
	x.ask(202, x.creds.ServerKey, "POST", "/v1/track", body)
	for _, request := range requests {
		if a := x.ask(202, x.creds.ServerKey, "POST", "/v1/track", request); a["duplicates"] != a["accepted"] {
			x.Errorf("%s: a repeat is new: %v", person, a)
		}
	}
	want := slices.Concat(x.others, later)
	if kind == "export" {
		want = append(want, hers...)
	}
	x.others = want // all of it must stay from now on
	x.awaitStored(len(want))
	if got := x.stored(); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		x.Errorf("%s: %d events are stored, want %d:\n%v\n%v", person, len(got), len(want), got, want)
	}
}
