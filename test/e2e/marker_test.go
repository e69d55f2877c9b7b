package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// countMarkers is how many markers there are.
func countMarkers(t *testing.T, r *apptest.Running) int {
	t.Helper()
	items, _ := get(t, r, markers(r)+"?limit=200").body["items"].([]any)
	return len(items)
}

const release1 = `{"version":"1.0","ts":"2026-05-01T10:00:00Z","metadata":{"run":7.50,"n":12345678901234567890}}`

func TestDeployMarker(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		first := deploy{[]string{"build-1001"}, release1, "", ""}.send(t, r)
		if first.status != http.StatusCreated || first.replayed || first.body["environment"] != "production" ||
			first.body["ts"] != "2026-05-01T10:00:00.000Z" || first.body["source"] != "deploy" || first.body["commit"] != nil {
			t.Fatalf("first: %+v", first)
		}
		for name, same := range map[string]string{
			"the same":       release1,
			"spelling":       "{ \"ts\":\"2026-05-01T12:00:00.000+02:00\", \"metadata\" : {\"n\":1.2345678901234567890e19,\"run\":75e-1},\n\"version\":\"\\u0031.0\" }",
			"default":        `{"version":"1.0","ts":"2026-05-01T10:00:00Z","environment":"production","metadata":{"run":7.5,"n":12345678901234567890}}`,
			"null is absent": `{"version":"1.0","ts":"2026-05-01T10:00:00Z","environment":null,"commit":null,"metadata":{"run":7.5,"n":12345678901234567890}}`,
		} {
			again := deploy{[]string{"build-1001"}, same, "", ""}.send(t, r)
			if again.status != http.StatusOK || !again.replayed || !reflect.DeepEqual(again.body, first.body) {
				t.Errorf("%s: %+v", name, again)
			}
		}
		for name, other := range map[string]struct {
			body    string
			differs []any
		}{
			"version":   {strings.Replace(release1, "1.0", "1.1", 1), []any{"version"}},
			"ts":        {strings.Replace(release1, "10:00:00Z", "10:00:01Z", 1), []any{"ts"}},
			"a digit":   {strings.Replace(release1, "67890", "67891", 1), []any{"metadata"}},
			"both":      {`{"version":"2","ts":"2026-05-01T10:00:00Z"}`, []any{"metadata", "version"}},
			"invalid":   {`{"version":"1.0","ts":"2026-05-01T10:00:00Z","metadata":{"run":7.5,"n":12345678901234567890},"typo":1}`, []any{"typo"}},
			"empty":     {`{}`, []any{"metadata", "ts", "version"}},
			"malformed": {`{"version":`, []any{"metadata", "ts", "version", "environment", "body"}},
			"no body":   {``, []any{"metadata", "ts", "version", "environment", "body"}},
			"doubled":   {`{"version":"1.0","version":"1.0"}`, []any{"metadata", "ts", "version", "environment", "body"}},
			"a list":    {`[]`, []any{"metadata", "ts", "version", "environment", "body"}},
		} {
			conflict := deploy{[]string{"build-1001"}, other.body, "", ""}.send(t, r)
			if conflict.status != http.StatusConflict || conflict.code() != "validation_failed" ||
				conflict.detail("header") != "Idempotency-Key" || conflict.detail("key") != "taken" ||
				conflict.detail("retryable") != false || conflict.header.Get("X-Should-Retry") != "false" || conflict.replayed {
				t.Errorf("%s: %+v", name, conflict)
			}
			if got := conflict.detail("differs"); !sameSet(got, other.differs) {
				t.Errorf("%s: differs %v, want %v", name, got, other.differs)
			}
		}
		if n := countMarkers(t, r); n != 1 {
			t.Errorf("%d markers, want 1", n)
		}
	})
}

func sameSet(got any, want []any) bool {
	list, _ := got.([]any)
	set := func(l []any) map[any]bool {
		m := map[any]bool{}
		for _, v := range l {
			m[v] = true
		}
		return m
	}
	return len(list) == len(want) && maps.Equal(set(list), set(want))
}

// TestDeployMarkerKeys is the case "header" from the field.
func TestDeployMarkerKeys(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		for name, keys := range map[string][]string{
			"none": nil, "empty": {""}, "blank": {"   "}, "two": {"build-1001", "build-1002"}, "two equal": {"build-1001", "build-1001"},
			"folded": {"build-1001, build-1002"}, "7": {strings.Repeat("k", 7)}, "129": {strings.Repeat("k", 129)},
			"inner space": {"build 1001"}, "comma": {"build,1001"}, "not ASCII": {"build-ü-1001"}, "tab": {"build\t1001"},
		} {
			refused := deploy{keys, release1, "", ""}.send(t, r)
			if refused.status != http.StatusUnprocessableEntity || refused.code() != "validation_failed" ||
				refused.detail("header") != "Idempotency-Key" {
				t.Errorf("%s: %+v", name, refused)
			}
		}
		if n := countMarkers(t, r); n != 0 {
			t.Errorf("%d markers were made", n)
		}
		for _, key := range []string{strings.Repeat("k", 8), strings.Repeat("k", 128), ` build-1001 `, `"quoted-1"`, "quoted-1", "BUILD-1001", "build-1001'--"} {
			made := deploy{[]string{key}, release1, "", ""}.send(t, r)
			want := http.StatusCreated
			if made.status != want {
				t.Errorf("%q: %+v", key, made)
			}
		}
	})
}

// TestRefusedDeployLeavesTheKeyFree: whatever was wrong, the key can be used
// for another body afterwards.
func TestRefusedDeployLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		for name, c := range map[string]struct {
			body, code string
			status     int
			field      any
		}{
			"no JSON":      {`{"version"`, "invalid_json", 400, nil},
			"nothing":      {``, "invalid_json", 400, nil},
			"doubled":      {`{"version":"1","version":"1"}`, "invalid_json", 400, nil},
			"too deep":     {`{"version":"1","metadata":{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}}`, "invalid_json", 400, nil},
			"no version":   {`{}`, "validation_failed", 422, "version"},
			"null":         {`{"version":null}`, "validation_failed", 422, "version"},
			"blank":        {`{"version":"  "}`, "validation_failed", 422, "version"},
			"unknown":      {`{"version":"1","surroundings":"x"}`, "validation_failed", 422, "surroundings"},
			"bad ts":       {`{"version":"1","ts":"yesterday"}`, "validation_failed", 422, "ts"},
			"no year":      {`{"version":"1","ts":"0001-01-01T00:00:00Z"}`, "validation_failed", 422, "ts"},
			"long ago":     {`{"version":"1","ts":"1969-12-31T23:59:59Z"}`, "validation_failed", 422, "ts"},
			"year 10000":   {`{"version":"1","ts":"9999-12-31T23:59:59-01:00"}`, "validation_failed", 422, "ts"},
			"comma ts":     {`{"version":"1","ts":"2024-01-01T00:00:00,5Z"}`, "validation_failed", 422, "ts"},
			"number ts":    {`{"version":"1","ts":1777629600000}`, "validation_failed", 422, "ts"},
			"bad url":      {`{"version":"1","url":"javascript:alert(1)"}`, "validation_failed", 422, "url"},
			"bad metadata": {`{"version":"1","metadata":[1]}`, "validation_failed", 422, "metadata"},
			"much":         {`{"version":"1","metadata":{"a":"` + strings.Repeat("x", 17<<10) + `"}}`, "validation_failed", 422, "metadata"},
		} {
			key := "refused-" + strings.ReplaceAll(name, " ", "-")
			for range 2 {
				refused := deploy{[]string{key}, c.body, "", ""}.send(t, r)
				if refused.status != c.status || refused.code() != c.code || refused.detail("field") != c.field || refused.detail("key") != "free" {
					t.Errorf("%s: %+v", name, refused)
				}
			}
			if made := (deploy{[]string{key}, release1, "", ""}).send(t, r); made.status != http.StatusCreated {
				t.Errorf("%s: the key is not free: %+v", name, made)
			}
		}
		// 16 KiB are counted as they were sent, not as some encoder writes them.
		large := `{"version":"1","metadata":{"a":"` + strings.Repeat("<", 16_000) + `"}}`
		for _, status := range []int{http.StatusCreated, http.StatusOK} {
			if made := (deploy{[]string{"much-of-it"}, large, "", ""}).send(t, r); made.status != status {
				t.Errorf("metadata of 16,000 characters: %d %v", made.status, made.code())
			}
		}
	})
}

// TestMatrixBuild is the case of six legs of one build that post one marker at
// once.
func TestMatrixBuild(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		const body = `{"version":"abc123","ts":"2026-05-01T10:00:00Z","commit":"abc123"}`
		if got := atOnce(t, r, 6, deploy{[]string{"pipeline-77"}, body, "", ""}); got[http.StatusCreated] != 1 || got[http.StatusOK] != 5 {
			t.Errorf("answers: %v", got)
		}
		late := deploy{[]string{"pipeline-77"}, strings.Replace(body, "10:00:00Z", "10:00:01Z", 1), "", ""}.send(t, r)
		if late.status != http.StatusConflict || !sameSet(late.detail("differs"), []any{"ts"}) {
			t.Errorf("leg 7: %+v", late)
		}
		other := deploy{[]string{"pipeline-77"}, `{"commit":"abc123","ts":"2026-05-01T10:00:00+00:00","version":"abc123"}`, "", ""}.send(t, r)
		if other.status != http.StatusOK || !other.replayed {
			t.Errorf("leg 8: %+v", other)
		}
	})
}

// TestFiftyDeploysAtOnce: one is the first, the others are told so.
func TestFiftyDeploysAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		for round := range 5 {
			got := atOnce(t, r, 50, deploy{[]string{fmt.Sprintf("fifty-%04d", round)}, release1, "", ""})
			if got[http.StatusCreated] != 1 || got[http.StatusOK] != 49 {
				t.Errorf("answers: %v", got)
			}
		}
		if n := countMarkers(t, r); n != 5 {
			t.Errorf("%d markers, want 5", n)
		}
	})
}

// atOnce sends n equal requests at once and counts the statuses. All of one
// marker must tell of the same one, and all but the first say that they are
// replays.
func atOnce(t *testing.T, r *apptest.Running, n int, d deploy) map[int]int {
	t.Helper()
	var mu sync.Mutex
	statuses, ids := map[int]int{}, map[any]bool{}
	var all sync.WaitGroup
	start := make(chan struct{})
	for range n {
		all.Go(func() {
			<-start
			response, err := http.DefaultClient.Do(d.request(t, r, r.URL))
			if err != nil {
				t.Error(err)
				return
			}
			s := read(t, response)
			mu.Lock()
			defer mu.Unlock()
			statuses[s.status]++
			ids[s.body["id"]] = true
			if s.replayed != (s.status == http.StatusOK) {
				t.Errorf("%d with replayed %v", s.status, s.replayed)
			}
		})
	}
	close(start)
	all.Wait()
	if len(ids) != 1 {
		t.Errorf("%d markers were told of: %v", len(ids), ids)
	}
	return statuses
}

// TestAnswerLostAfterCommit: the server commits, and the connection that was
// used before is reset. Go's own client sends again by itself, and must see a
// success.
func TestAnswerLostAfterCommit(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		client, url, lost := losesFirstAnswer(t, r)
		response, err := client.Do(deploy{[]string{"lost-answer"}, release1, "", ""}.request(t, r, url))
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, response)
		if got.status != http.StatusOK || !got.replayed || lost.delivered.Load() != 2 || lost.reset.Load() != 1 {
			t.Errorf("%+v after %d deliveries", got, lost.delivered.Load())
		}
		if n := countMarkers(t, r); n != 1 {
			t.Errorf("%d markers, want 1", n)
		}
	})
}

// TestMarkersByHand: no key is read, a repeat makes a second one.
func TestMarkersByHand(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		var ids []string
		for i, ts := range []string{"2026-05-03T00:00:00Z", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z", "2026-05-02T00:00:00Z"} {
			request, err := http.NewRequestWithContext(t.Context(), "POST", r.URL+markers(r),
				strings.NewReader(fmt.Sprintf(`{"version":"1","ts":%q,"environment":"env-%d"}`, ts, i%2)))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+r.Setup.AccessToken)
			request.Header["Idempotency-Key"] = []string{"x", "by,hand"} // malformed, doubled and without effect
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			made := read(t, response)
			if made.status != http.StatusCreated || made.body["source"] != "manual" {
				t.Fatalf("%+v", made)
			}
			ids = append(ids, made.body["id"].(string))
		}
		list := func(query string) (found []string, next any) {
			s := get(t, r, markers(r)+query)
			if s.status != http.StatusOK {
				t.Fatalf("%s: %+v", query, s)
			}
			for _, item := range s.body["items"].([]any) {
				found = append(found, item.(map[string]any)["id"].(string))
			}
			return found, s.body["next_cursor"]
		}
		expect := func(query string, want ...int) {
			t.Helper()
			var all []string
			for cursor := ""; ; {
				found, next := list(query + "&limit=1" + cursor)
				all = append(all, found...)
				if next == nil {
					break
				}
				cursor = "&cursor=" + next.(string)
			}
			var wanted []string
			for _, i := range want {
				wanted = append(wanted, ids[i])
			}
			if !reflect.DeepEqual(all, wanted) {
				t.Errorf("%s: %v, want %v of %v", query, all, wanted, ids)
			}
		}
		expect("?", 0, 3, 2, 1)
		expect("?environment=env-1", 3, 1)
		expect("?from=2026-05-02T00:00:00Z&to=2026-05-03T00:00:00Z", 3, 2)
		expect("?from=2026-05-02T02:00:00%2B02:00&environment=env-0", 0, 2)
		for _, bad := range []string{"?limit=0", "?limit=201", "?from=now", "?cursor=AAAA", "?cursor=%00"} {
			if s := get(t, r, markers(r)+bad); s.status != http.StatusUnprocessableEntity || s.code() != "validation_failed" {
				t.Errorf("%s: %+v", bad, s)
			}
		}
		for _, nowhere := range []string{"?environment=%00", "?environment=%ff", "?environment=%ed%a0%80", "?environment=" + strings.Repeat("x", 2000)} {
			if found, next := list(nowhere); len(found) > 0 || next != nil {
				t.Errorf("%s: %v", nowhere, found)
			}
		}
		one := markers(r) + "/" + ids[0]
		if s := get(t, r, one); s.status != http.StatusOK || s.body["id"] != ids[0] {
			t.Errorf("%+v", s)
		}
		for want, status := range []int{http.StatusNoContent, http.StatusNotFound} {
			if s := read(t, do(t, "DELETE", r.URL+one, r.Setup.AccessToken, nil)); s.status != status { //nolint:bodyclose // read closes it
				t.Errorf("delete %d: %+v", want, s)
			}
		}
		if s := get(t, r, one); s.status != http.StatusNotFound {
			t.Errorf("%+v", s)
		}
		expect("?", 3, 2, 1)
	})
}

// TestKeyOfMarker: a key can be looked up, and outlives its marker.
func TestKeyOfMarker(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		key := `look"up-%41-1`
		d := deploy{[]string{key}, release1, "", ""}
		path := markers(r) + "?idempotency_key=look%22up-%2541-1"
		if s := get(t, r, path); s.status != http.StatusNotFound {
			t.Errorf("before its use: %+v", s)
		}
		first := d.send(t, r)
		d.send(t, r)
		deploy{[]string{key}, `{}`, "", ""}.send(t, r)
		known := get(t, r, path)
		deadline := time.Now().Add(time.Minute)
		for known.body["repeats"] != 1.0 && time.Now().Before(deadline) { // counters may lag a second
			known = get(t, r, path)
		}
		unit, _ := known.body["unit"].(map[string]any)
		if known.status != http.StatusOK || known.body["key"] != key || unit["kind"] != "release_marker" || unit["id"] != first.body["id"] ||
			unit["status"] != "created" || known.body["repeats"] != 1.0 || known.body["conflicts"] != 1.0 ||
			known.body["first_seen_at"] == nil || known.body["response_expires_at"] != nil {
			t.Errorf("%+v", known)
		}
		if s := read(t, do(t, "DELETE", r.URL+markers(r)+"/"+first.body["id"].(string), r.Setup.AccessToken, nil)); s.status != http.StatusNoContent { //nolint:bodyclose // read closes it
			t.Fatalf("%+v", s)
		}
		again := d.send(t, r)
		if again.status != http.StatusOK || !again.replayed || again.body["id"] != first.body["id"] || again.body["deleted_at"] == nil {
			t.Errorf("after deletion: %+v", again)
		}
		unit, _ = get(t, r, path).body["unit"].(map[string]any)
		if unit["status"] != "deleted" {
			t.Errorf("%+v", unit)
		}
		for _, secret := range []string{r.Setup.ProjectKey} {
			s := read(t, do(t, "GET", r.URL+"/v1/idempotency-keys?key=look%22up-%2541-1", secret, nil)) //nolint:bodyclose // read closes it
			if s.status != http.StatusNotFound {
				t.Errorf("a marker's key was found among those of keyed work: %+v", s)
			}
		}
	})
}

// TestDeployToAnotherProject: a token reaches its own project only, and cannot
// tell others from those that do not exist.
func TestDeployToAnotherProject(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	for _, project := range []string{"01980000-0000-7000-8000-000000000001", "x", r.Setup.OrganizationID} {
		refused := deploy{[]string{"build-1001"}, release1, project, ""}.send(t, r)
		if refused.status != http.StatusNotFound || refused.code() != "not_found" {
			t.Errorf("%s: %+v", project, refused)
		}
	}
	for _, secret := range []string{
		r.Setup.AccessToken, r.Setup.BrowserToken, r.Setup.ServerKey, r.Setup.LegacyKey, r.Setup.ProjectKey,
	} {
		if refused := (deploy{[]string{"build-1001"}, release1, "", secret}).send(t, r); refused.status != http.StatusForbidden {
			t.Errorf("%s: %+v", secret[:4], refused)
		}
	}
	if n := countMarkers(t, r); n != 0 {
		t.Errorf("%d markers were made", n)
	}
}
