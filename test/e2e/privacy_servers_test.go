package e2e_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// killed leaves a job as a server does that dies while it has it: its lease ends
// by itself. The server has stopped.
func killed(t *testing.T, database, job string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	done, err := db.ExecContext(t.Context(), `
		UPDATE privacy_jobs SET status = 'running', owner = $1, lease_until = 1, next_attempt_at = NULL
		WHERE id = $2 AND status = 'queued' AND phase = 'customers'`, make([]byte, 16), filepath.Base(job))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); n != 1 || err != nil || db.Close() != nil {
		t.Fatalf("%d jobs, %v", n, err)
	}
}

// trackAda sends an event of ada to one server.
func trackAda(t *testing.T, r *apptest.Running) (eventID string) {
	t.Helper()
	eventID = uuid.NewString()
	caller{r, r.Setup.ServerKey}.must(t, 202, "POST", "/v1/track", `{"events":[{"event":"seen","user_id":"ada","event_id":"`+eventID+`"}]}`)
	return eventID
}

// ended counts how often the audit log says that a job has ended.
func ended(t *testing.T, r *apptest.Running, job string) (n int) {
	t.Helper()
	for _, e := range auditLog(t, owner(r), own(r)) {
		if e["action"] == "privacy_job.finished" && part(t, e, "object")["id"] == filepath.Base(job) {
			n++
		}
	}
	return n
}

// TestPrivacyOnTwoServers: each has its own events on one database. A job made at
// one is seen by both and done by that one, once; when it has died the other
// leaves the job alone, and it goes on with the next start.
func TestPrivacyOnTwoServers(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, "--database", pgtest.New(t))
	second := beside(t, site)
	a, b := site.MustServe(), second.MustServe()
	trackAda(t, a)
	ofB := trackAda(t, b)

	deletion, execution := holdPerson(t, a, "ada")
	if s := owner(b).refused(t, "privacy_job_active", "POST", jobs(b), `{"kind":"delete","user_id":"ada"}`); s.detail("job_id") != filepath.Base(deletion) {
		t.Errorf("%s", s.raw)
	}
	later := trackAda(t, a)
	a.MustStop()
	killed(t, site.Flags[1], deletion)
	asProject(b).must(t, 200, "POST", "/v1/executions/"+execution+"/cancel", "")
	export := startJob(t, b, "export", `"user_id":"bob"`)
	awaitJob(t, b, export) // it was made later, and is done first
	if s := owner(b).must(t, 200, "GET", deletion, ""); s.body["status"] != "queued" || s.body["progress"] != 0.55 || ended(t, b, deletion) != 0 {
		t.Errorf("another server has touched it: %s", s.raw)
	}

	a = site.MustServe()
	if s := awaitJob(t, a, deletion); s.body["erased_from_log_at"] == nil || ended(t, a, deletion) != 1 || ended(t, b, export) != 1 {
		t.Errorf("%s", s.raw)
	}
	if got := stored(t, a); !slices.Equal(got, []string{later}) {
		t.Errorf("stored %v, want %s", got, later)
	}
	if s := owner(a).refused(t, "conflict", "GET", export+"/archive", ""); !strings.Contains(s.raw, "on the server that has written it") {
		t.Errorf("%s", s.raw)
	}
	if lines := archiveOf(t, b, export); len(lines["event"]) != 0 {
		t.Errorf("%v", lines)
	}
	if got := stored(t, b); !slices.Equal(got, []string{ofB}) {
		t.Errorf("the other server has %v, want %s", got, ofB)
	}
	awaitJob(t, a, startJob(t, b, "delete", `"user_id":"ada"`)) // asked of both, it is gone from both
	if got := stored(t, b); len(got) != 0 {
		t.Errorf("the other server has %v", got)
	}
}

// TestADeletionWhoseServerIsLost: another server ends it once nothing was heard
// of its own for an hour, as failed, when an admin says so. The person is free at
// once, what the lost server has stays there, and that one does not go on when
// it comes back.
func TestADeletionWhoseServerIsLost(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, "--database", pgtest.New(t))
	second := beside(t, site)
	a, b := site.MustServe(), second.MustServe()
	ofA := trackAda(t, a)
	deletion, execution := holdPerson(t, a, "ada")
	later := trackAda(t, a)
	trackAda(t, b)
	asProject(b).must(t, 200, "POST", "/v1/executions/"+execution+"/cancel", "")

	tooLate := func(r *apptest.Running, want string) {
		t.Helper()
		if s := owner(r).refused(t, "conflict", "POST", deletion+"/cancel", ""); s.detail("retryable") != false || !strings.Contains(s.raw, want) {
			t.Errorf("%s", s.raw)
		}
	}
	tooLate(b, "has begun to erase")
	a.MustStop()
	tooLate(b, "has begun to erase") // it may be back in a moment
	owner(b).refused(t, "privacy_job_active", "POST", jobs(b), `{"kind":"delete","user_id":"ada"}`)
	killed(t, site.Flags[1], deletion)
	lost := owner(b).must(t, 200, "POST", deletion+"/cancel", "")
	if lost.body["status"] != "failed" || lost.body["erased_from_log_at"] != nil || lost.body["finished_at"] == nil || !strings.Contains(lost.raw, "was given up") {
		t.Errorf("%s", lost.raw)
	}
	tooLate(b, "the job is failed")
	awaitJob(t, b, startJob(t, b, "delete", `"user_id":"ada"`))
	if got := stored(t, b); len(got) != 0 {
		t.Errorf("stored %v", got)
	}

	a = site.MustServe()
	awaitJob(t, a, startJob(t, a, "delete", `"user_id":"bob"`)) // its worker has looked for jobs
	if s := owner(a).must(t, 200, "GET", deletion, ""); s.raw != owner(b).must(t, 200, "GET", deletion, "").raw || s.body["status"] != "failed" || s.body["error"] != lost.body["error"] {
		t.Errorf("it has gone on: %s", s.raw)
	}
	tooLate(a, "the job is failed")
	if got := stored(t, a); !slices.Equal(got, []string{later}) {
		t.Errorf("stored %v, want %s and not %s, whose record was written", got, later, ofA)
	}
	awaitJob(t, b, startJob(t, a, "delete", `"user_id":"ada"`))
	if got := stored(t, a); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
	var actions []any
	for _, e := range auditLog(t, owner(b), own(b)) {
		if part(t, e, "object")["id"] == filepath.Base(deletion) {
			actions = append(actions, e["action"], e["details"])
		}
	}
	if got := fmt.Sprint(actions); !strings.HasPrefix(got, "[privacy_job.cancelled map[") || !strings.Contains(got, "status:failed") || ended(t, b, deletion) != 0 {
		t.Errorf("%s", got)
	}
}
