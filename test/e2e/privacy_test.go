package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// jobs is the path of the project's privacy jobs.
func jobs(r *apptest.Running) string { return project(r) + "/privacy-jobs" }

// startJob makes a privacy job of the person that the rest of the body names.
func startJob(t *testing.T, r *apptest.Running, kind, person string) (path string) {
	t.Helper()
	s := owner(r).must(t, 202, "POST", jobs(r), `{"kind":"`+kind+`",`+person+`}`)
	if s.body["status"] != "queued" || s.body["progress"] != 0.0 || s.body["erased_from_log_at"] != nil || s.body["kind"] != kind {
		t.Errorf("%v", s.body)
	}
	return jobs(r) + "/" + s.text(t, "id")
}

// awaitJob waits until a job has succeeded; its progress never falls.
func awaitJob(t *testing.T, r *apptest.Running, path string) (job said) {
	t.Helper()
	last := 0.0
	eventually(t, func() bool {
		job = owner(r).must(t, 200, "GET", path, "")
		progress, ok := job.body["progress"].(float64)
		if !ok || progress < last || progress > 1 {
			t.Fatalf("progress %v after %v", job.body["progress"], last)
		}
		last = progress
		return job.body["status"] == "succeeded"
	})
	if last != 1 || job.body["error"] != nil || job.body["finished_at"] == nil {
		t.Errorf("%v", job.body)
	}
	return job
}

// archiveOf downloads an archive and returns its lines by type.
func archiveOf(t *testing.T, r *apptest.Running, path string) map[string][]map[string]any {
	t.Helper()
	response := do(t, "GET", r.URL+path+"/archive", r.Setup.AccessToken, http.NoBody)
	lines := map[string][]map[string]any{}
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 16<<20)
	last, total := "", 0.0
	for scanner.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", scanner.Bytes(), err)
		}
		last = fmt.Sprint(line["type"])
		lines[last] = append(lines[last], line)
		total++
	}
	if err := scanner.Err(); err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/jsonl" || last != "end" {
		t.Fatalf("%d %v, ends with %q", response.StatusCode, response.Header, last)
	}
	counted := 0.0
	for kind, n := range lines["end"][0]["counts"].(map[string]any) { //nolint:forcetypeassert // a panic says as much
		if n != float64(len(lines[kind])) {
			t.Errorf("%v of %s, there are %d", n, kind, len(lines[kind]))
		}
		counted += n.(float64) //nolint:forcetypeassert // a panic says as much
	}
	if counted+2 != total {
		t.Errorf("%v lines, %v are counted", total, counted)
	}
	return lines
}

// world is a project with a person, ada, a shared computer that was hers before
// it was bob's, and what else is kept of both. The secret is in all that is
// ada's but her ids and the ledger.
type world struct {
	r      *apptest.Running
	secret string
	// hers are the ids of ada's events, theirs of all others.
	hers, theirs []string
	batches      []string
}

// event makes an event and notes whose it is.
func (w *world) event(of *[]string, more string) string {
	id := uuid.NewString()
	*of = append(*of, id)
	return fmt.Sprintf(`{"event_id":%q,"event":"seen","properties":{"p":%q},%s}`, id, w.secretOf(of), more)
}

func (w *world) secretOf(of *[]string) string {
	if of == &w.hers {
		return w.secret
	}
	return "nothing"
}

func (w *world) send(t *testing.T, events ...string) {
	t.Helper()
	body := `{"historical":true,"events":[` + strings.Join(events, ",") + `]}`
	w.batches = append(w.batches, body)
	caller{w.r, w.r.Setup.ServerKey}.must(t, 202, "POST", "/v1/track", body)
}

func newWorld(t *testing.T, r *apptest.Running) *world {
	t.Helper()
	w := &world{r: r, secret: "marker-" + uuid.NewString()}
	key, project := caller{r, r.Setup.ServerKey}, asProject(r)
	const may, june, july = `"ts":"2024-05-01T00:00:00Z"`, `"ts":"2024-06-01T00:00:00Z"`, `"ts":"2024-07-01T00:00:00Z"`
	key.must(t, 202, "POST", "/v1/identify", `{"anon_id":"kiosk","user_id":"ada","ts":"2024-05-01T00:00:00Z","traits":{"name":"`+w.secret+`"}}`)
	key.must(t, 202, "POST", "/v1/identify", `{"anon_id":"kiosk","user_id":"bob","traits":{"name":"Bob"}}`)
	w.send(t,
		w.event(&w.hers, `"user_id":"ada","anon_id":"phone",`+may), w.event(&w.theirs, `"user_id":"bob","anon_id":"kiosk",`+may),
		w.event(&w.theirs, `"anon_id":"stranger",`+june), w.event(&w.hers, `"user_id":"ada","anon_id":"kiosk",`+july))
	caller{r, r.Setup.ServerKey}.must(t, 202, "POST", "/v1/alias", `{"anon_id":"tablet","user_id":"ada"}`)
	w.send(t, w.event(&w.hers, `"anon_id":"tablet",`+may), w.event(&w.hers, `"anon_id":"tablet",`+july))

	project.must(t, 201, "PUT", "/v1/customers/ada", `{"metadata":{"note":"`+w.secret+`"}}`)
	project.must(t, 201, "PUT", "/v1/customers/bob", `{"metadata":{"note":"Bob"}}`)
	of("topup", "ada", "t1", "10").must(t, r)
	of("topup", "bob", "t2", "10").must(t, r)
	project.must(t, 201, "PUT", "/v1/flows/hello", chat("echo", "echo-1", paid))
	for _, customer := range []string{"ada", "bob"} {
		text := w.secret
		if customer == "bob" {
			text = "Bob"
		}
		project.must(t, 201, "PUT", "/v1/customers/"+customer+"/holds/h", `{"credit_type":"main","amount":"1","reason":"`+text+`"}`)
		mustExecute(t, r, 200, "run-"+customer, w.run(customer))
	}
	w.record(t)
	return w
}

// run is the body of a request to run the flow for a customer.
func (w *world) run(customer string) string {
	text := w.secret
	if customer == "bob" {
		text = "Bob"
	}
	return fmt.Sprintf(`{"flow":"hello","customer":%q,"input":{"text":%q},"context":{"c":%q}}`, customer, text, text)
}

// stored are the ids of the events that queries find.
func stored(t *testing.T, r *apptest.Running) (ids []string) {
	t.Helper()
	for _, row := range rows(t, r) {
		if row["event"] == "seen" {
			ids = append(ids, fmt.Sprint(row["event_id"]))
		}
	}
	slices.Sort(ids)
	return ids
}

func sorted(lists ...[]string) []string { return slices.Sorted(slices.Values(slices.Concat(lists...))) }

func TestPrivacyExport(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		w := newWorld(t, r)
		path := startJob(t, r, "export", `"user_id":"ada"`)
		job := awaitJob(t, r, path)
		lines := archiveOf(t, r, path)
		var ids []string
		for _, e := range lines["event"] {
			if e["event"] == "seen" {
				ids = append(ids, fmt.Sprint(e["event_id"]))
				if part(t, e, "properties")["p"] != w.secret {
					t.Errorf("%v", e)
				}
			}
		}
		if !slices.Equal(sorted(ids), sorted(w.hers)) {
			t.Errorf("events %v, want %v", sorted(ids), sorted(w.hers))
		}
		head := lines["export"][0]
		if head["user_id"] != "ada" || head["job_id"] != job.body["id"] || fmt.Sprint(head["as_of"]) < fmt.Sprint(job.body["created_at"]) {
			t.Errorf("%v", head)
		}
		if len(lines["link"]) != 2 || len(lines["trait"]) != 1 || lines["trait"][0]["value"] != w.secret || len(lines["customer"]) != 1 {
			t.Errorf("%v %v %v", lines["link"], lines["trait"], lines["customer"])
		}
		if part(t, lines["customer"][0], "metadata")["note"] != w.secret || part(t, lines["customer"][0], "balances", "main")["available"] != "7" {
			t.Errorf("%v", lines["customer"])
		}
		if m := lines["movement"]; len(m) != 2 || m[0]["kind"] != "topup" || m[1]["kind"] != "capture" {
			t.Errorf("%v", m)
		}
		if len(lines["hold"]) != 2 || len(lines["execution"]) != 1 {
			t.Fatalf("%v %v", lines["hold"], lines["execution"])
		}
		x := lines["execution"][0]
		if part(t, x, "input")["text"] != w.secret || !strings.Contains(fmt.Sprint(x["output"]), w.secret) || !strings.Contains(fmt.Sprint(x["calls"]), w.secret) {
			t.Errorf("%v", x)
		}
		w.exported(t, lines)
		if all := fmt.Sprint(lines); strings.Contains(all, "Bob") || strings.Contains(all, "bob") || strings.Contains(all, "stranger") {
			t.Errorf("somebody else's: %s", all)
		}
		owner(r).refused(t, "conflict", "POST", path+"/cancel", "")
		list := owner(r).must(t, 200, "GET", jobs(r)+"?limit=1", "").items(t)
		if len(list) != 1 || list[0]["id"] != job.body["id"] || list[0]["archive_bytes"] == nil || list[0]["archive_until"] == nil {
			t.Errorf("%v", list)
		}
		exportNobody(t, r)
		w.exportLost(t)
	})
}

// exportNobody: of nobody there is nothing, and an archive whose file is gone is
// not found.
func exportNobody(t *testing.T, r *apptest.Running) {
	t.Helper()
	none := startJob(t, r, "export", `"anon_id":"nobody"`)
	awaitJob(t, r, none)
	if lines := archiveOf(t, r, none); len(lines) != 2 {
		t.Errorf("nobody has %v", lines)
	}
	if err := os.Remove(filepath.Join(r.Dir, "exports", filepath.Base(none)+".jsonl")); err != nil {
		t.Fatal(err)
	}
	owner(r).refused(t, "not_found", "GET", none+"/archive", "")
}

func TestPrivacyDelete(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		w := newWorld(t, r)
		var exports []string
		// What pad is only a recording says; kiosk was bob's, too, until a link came late.
		for _, of := range []string{`"user_id":"ada"`, `"anon_id":"pad"`, `"user_id":"bob"`} {
			exports = append(exports, startJob(t, r, "export", of))
			awaitJob(t, r, exports[len(exports)-1])
		}
		blobs := w.blobs(t)
		if got := stored(t, r); !slices.Equal(got, sorted(w.hers, w.theirs)) {
			t.Fatalf("stored %v", got)
		}
		balances := asProject(r).must(t, 200, "GET", "/v1/customers/ada", "").body["balances"]
		if files := holding(t, r.Dir, w.secret); len(files) < 2 {
			t.Fatalf("before, only %v hold it", files)
		}
		path := startJob(t, r, "delete", `"user_id":"ada"`)
		if s := awaitJob(t, r, path); s.body["erased_from_log_at"] == nil || s.body["archive_bytes"] != nil {
			t.Errorf("%v", s.body)
		}
		for _, export := range exports {
			owner(r).refused(t, "not_found", "GET", export+"/archive", "")
		}
		owner(r).refused(t, "conflict", "GET", path+"/archive", "")
		w.onlyTheirs(t)
		w.repeats(t)
		w.onlyHisRecordings(t, blobs)
		w.customers(t, fmt.Sprint(balances))
		if debug := owner(r).must(t, 200, "GET", project(r)+"/ingest/debug", ""); strings.Contains(debug.raw, `"anon_id":"tablet"`) {
			t.Errorf("the debugger remembers: %s", debug.raw)
		}
		// What the person does now is new.
		again := len(w.hers)
		w.send(t, w.event(&w.hers, `"user_id":"ada"`))
		if got := stored(t, r); !slices.Equal(got, sorted(w.theirs, w.hers[again:])) {
			t.Errorf("stored %v", got)
		}
		w.audited(t)
		r.MustStop()
		if report := r.Verify(); !report.OK || report.ReplayChunks != 2 {
			t.Errorf("%+v", report)
		}
	})
}

// onlyTheirs: hers are gone, nobody else's are.
func (w *world) onlyTheirs(t *testing.T) {
	t.Helper()
	if got := stored(t, w.r); !slices.Equal(got, sorted(w.theirs)) {
		t.Errorf("stored %v, want %v", got, sorted(w.theirs))
	}
	path := startJob(t, w.r, "export", `"user_id":"ada"`)
	awaitJob(t, w.r, path)
	lines := archiveOf(t, w.r, path)
	for _, kind := range []string{"event", "link", "trait", "replay_session", "replay_chunk"} {
		if len(lines[kind]) != 0 {
			t.Errorf("%s: %v", kind, lines[kind])
		}
	}
	if strings.Contains(fmt.Sprint(lines), w.secret) {
		t.Errorf("the secret is in %v", lines)
	}
	if files := holding(t, w.r.Dir, w.secret); len(files) != 0 {
		t.Errorf("%v hold it", files)
	}
	bob := startJob(t, w.r, "export", `"user_id":"bob"`)
	awaitJob(t, w.r, bob)
	if lines := archiveOf(t, w.r, bob); len(lines["link"]) != 1 || len(lines["trait"]) != 1 || len(lines["event"]) != 2 || len(lines["execution"]) != 1 ||
		len(lines["replay_chunk"]) != 2 {
		t.Errorf("bob has %v", lines)
	}
}

// repeats: all earlier requests are duplicates, and bring nothing back.
func (w *world) repeats(t *testing.T) {
	t.Helper()
	for _, batch := range w.batches {
		s := caller{w.r, w.r.Setup.ServerKey}.must(t, 202, "POST", "/v1/track", batch)
		if s.body["duplicates"] != s.body["accepted"] {
			t.Errorf("%v", s.body)
		}
	}
	if got := stored(t, w.r); !slices.Equal(got, sorted(w.theirs)) {
		t.Errorf("stored %v after the repeats", got)
	}
}

// customers: the books are as they were, what was said is gone, bob's is not.
func (w *world) customers(t *testing.T, balances string) {
	t.Helper()
	project := asProject(w.r)
	ada := project.must(t, 200, "GET", "/v1/customers/ada", "")
	if fmt.Sprint(ada.body["balances"]) != balances || len(part(t, ada.body, "metadata")) != 0 {
		t.Errorf("%s", ada.raw)
	}
	hold := project.must(t, 200, "GET", "/v1/customers/ada/holds/h", "")
	if strings.Contains(hold.raw, w.secret) || !strings.Contains(hold.raw, `"open"`) {
		t.Errorf("%s", hold.raw)
	}
	for customer, output := range map[string]any{"ada": nil, "bob": "Bob"} {
		x := mustExecute(t, w.r, 200, "run-"+customer, w.run(customer))
		if x["status"] != "succeeded" || x["charged"] != "2" || (output == nil) != (x["output"] == nil) {
			t.Errorf("%v", x)
		}
		trace := project.must(t, 200, "GET", "/v1/executions/"+fmt.Sprint(x["id"])+"/trace", "")
		if strings.Contains(trace.raw, w.secret) || strings.Contains(trace.raw, "Bob") != (customer == "bob") {
			t.Errorf("%s", trace.raw)
		}
	}
}

// audited: who has begun and downloaded, and the end, without the person.
func (w *world) audited(t *testing.T) {
	t.Helper()
	list := owner(w.r).must(t, 200, "GET", own(w.r)+"/audit-log?limit=200", "")
	for _, action := range []string{"privacy_job.created", "privacy_job.downloaded", "privacy_job.finished"} {
		if !strings.Contains(list.raw, action) {
			t.Errorf("no %s", action)
		}
	}
	// As a word: the hexadecimal digits of an id can spell her name.
	if regexp.MustCompile(`\bada\b`).MatchString(list.raw) || strings.Contains(list.raw, w.secret) {
		t.Errorf("the audit log names the person: %s", list.raw)
	}
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

// holdPerson makes a deletion wait, for an execution of the person that has not
// ended.
func holdPerson(t *testing.T, r *apptest.Running, person string) (path, execution string) {
	t.Helper()
	asProject(r).call(t, "PUT", "/v1/flows/slow", `{"steps":[{"id":"a","type":"wait","for":"1h"}]}`)
	of("topup", person, "topup-"+person, "1").must(t, r)
	x := mustExecute(t, r, 202, "wait-"+person, `{"flow":"slow","customer":"`+person+`","input":{},"execution_mode":"async"}`)
	path = startJob(t, r, "delete", `"user_id":"`+person+`"`)
	eventually(t, func() bool { return owner(r).must(t, 200, "GET", path, "").body["progress"] == 0.55 })
	return path, fmt.Sprint(x["id"])
}

// privacyJobActive asks for a second job.
func privacyJobActive(t *testing.T, r *apptest.Running) refusal {
	holdPerson(t, r, "held")
	return send(t, "POST", r.URL+jobs(r), r.Setup.AccessToken, strings.NewReader(`{"kind":"export","user_id":"held"}`))
}

// TestPrivacyConflicts: what a job stands in the way of, and what it does not.
func TestPrivacyConflicts(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		path, execution := holdPerson(t, r, "ada")
		owner, project := owner(r), asProject(r)
		browser := caller{r, r.Setup.BrowserToken}
		record(t, browser, chunk("hers", 0, page("/"), `"anon_id":"phone"`), "first")
		record(t, browser, chunk("hers", 1, page("/"), `"user_id":"ada"`), "first")
		record(t, browser, chunk("bob's", 0, page("/"), `"user_id":"bob"`), "first")
		for _, s := range []said{
			owner.refused(t, "privacy_job_active", "DELETE", replayOf(r, "hers"), ""),
			owner.refused(t, "privacy_job_active", "POST", jobs(r), `{"kind":"delete","user_id":"ada"}`),
			owner.refused(t, "privacy_job_active", "POST", jobs(r), `{"kind":"export","user_id":"ada"}`),
			project.refused(t, "privacy_job_active", "PATCH", "/v1/customers/ada", `{"metadata":{"a":1}}`),
			project.refused(t, "privacy_job_active", "PUT", "/v1/customers/ada", `{"metadata":{}}`),
			owner.refused(t, "privacy_job_active", "PATCH", "/api/v1/projects/"+r.Setup.Project.ID, `{"retention":{"events_days":30}}`),
		} {
			if s.status != 409 || s.detail("retryable") != true || !strings.HasSuffix(path, fmt.Sprint(s.detail("job_id"))) ||
				s.header.Get("Retry-After") == "" || s.header.Get("X-Should-Retry") != "true" {
				t.Errorf("%d %v %s", s.status, s.header, s.raw)
			}
		}
		// Nothing else is refused.
		owner.must(t, 204, "DELETE", replayOf(r, "bob's"), "")
		if got := events(t, r, "hers", 1); got != page("/") {
			t.Errorf("the recording that was not deleted is %q", got)
		}
		project.must(t, 200, "PUT", "/v1/customers/ada", "")
		project.must(t, 201, "PUT", "/v1/customers/bob", `{"metadata":{"a":1}}`)
		of("topup", "ada", "during", "1").must(t, r)
		caller{r, r.Setup.ServerKey}.must(t, 202, "POST", "/v1/track", `{"events":[{"event":"e","user_id":"ada"}]}`)
		if s := execute(t, r, "more", `{"flow":"slow","customer":"ada","input":{},"execution_mode":"async"}`); s.status != 202 {
			t.Errorf("%d %s", s.status, s.raw)
		}
		owner.refused(t, "conflict", "POST", path+"/cancel", "")
		project.must(t, 200, "POST", "/v1/executions/"+execution+"/cancel", "")
		awaitJob(t, r, path) // the execution that began later is new
		owner.must(t, 204, "DELETE", replayOf(r, "hers"), "")
		if s := project.must(t, 200, "PATCH", "/v1/customers/ada", `{"metadata":{"a":1}}`); part(t, s.body, "metadata")["a"] != 1.0 {
			t.Errorf("%s", s.raw)
		}
	})
}
