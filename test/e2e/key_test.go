package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/credential"
)

// track sends one event with a fixed id and returns the answer.
func (c caller) track(t *testing.T, eventID string) said {
	t.Helper()
	return c.call(t, "POST", "/v1/track", fmt.Sprintf(`{"events":[{"event_id":%q,"event":"e","user_id":"u"}]}`, eventID))
}

const (
	event1 = "8b0d3f2e-0000-4000-8000-000000000001"
	event2 = "8b0d3f2e-0000-4000-8000-000000000002"
)

// mustTrack demands that the event counts as a repeat or as a new one.
func (c caller) mustTrack(t *testing.T, eventID string, repeat bool) {
	t.Helper()
	want := 0.0
	if repeat {
		want = 1
	}
	if s := c.track(t, eventID); s.status != 202 || s.body["accepted"] != 1.0 || s.body["duplicates"] != want {
		t.Fatalf("%d %v, want %v duplicates", s.status, s.body, want)
	}
}

// TestKeysFromBeginningToEnd: an organization's day with its keys.
func TestKeysFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		access, _ := login(t, r, r.Setup.Email, r.Setup.Password)
		path := "/api/v1/projects/" + access.must(t, 201, "POST", "/api/v1/projects", `{"name":"Shop"}`).text(t, "id")
		if keys := access.must(t, 200, "GET", path+"/ingest-keys", "").items(t); len(keys) != 0 {
			t.Fatalf("a new project has keys: %v", keys)
		}
		made := access.must(t, 201, "POST", path+"/ingest-keys", `{"name":"Backend","kind":"server"}`)
		old := caller{r, made.text(t, "token")}
		if kind, ok := credential.Recognize(old.secret); !ok || kind != credential.Server || made.body["kind"] != "server" || made.body["name"] != "Backend" {
			t.Fatalf("%v", made.body)
		}
		old.mustTrack(t, event1, false)

		// Rotated with overlap: both work, and events keep their identity.
		rotated := access.must(t, 201, "POST", path+"/ingest-keys/"+made.text(t, "id")+"/rotate", `{}`)
		second := caller{r, rotated.text(t, "token")}
		if rotated.body["id"] == made.body["id"] || second.secret == old.secret || rotated.body["name"] != "Backend" || rotated.body["expires_at"] != nil {
			t.Fatalf("%v", rotated.body)
		}
		second.mustTrack(t, event1, true)
		old.mustTrack(t, event2, false)
		second.mustTrack(t, event2, true)
		keys := access.must(t, 200, "GET", path+"/ingest-keys", "").items(t)
		if len(keys) != 2 || keys[0]["expires_at"] == nil || keys[1]["expires_at"] != nil {
			t.Errorf("%v", keys)
		}
		if keys[1]["prefix"] != "aps_" || keys[1]["last_four"] != second.secret[len(second.secret)-4:] || keys[1]["token"] != nil {
			t.Errorf("%v", keys[1])
		}

		// Without: the old one ends at once.
		access.must(t, 201, "POST", path+"/ingest-keys/"+made.text(t, "id")+"/rotate", `{"overlap_seconds":0}`)
		if s := old.track(t, event1); s.code() != "unauthenticated" {
			t.Errorf("%d %v", s.status, s.body)
		}
		access.refused(t, "conflict", "POST", path+"/ingest-keys/"+made.text(t, "id")+"/rotate", `{}`)
		second.mustTrack(t, event1, true)

		access.must(t, 204, "DELETE", path+"/ingest-keys/"+rotated.text(t, "id"), "")
		if s := second.track(t, event1); s.status != 401 || s.code() != "unauthenticated" {
			t.Errorf("%d %v", s.status, s.body)
		}
		access.must(t, 204, "DELETE", path+"/ingest-keys/"+rotated.text(t, "id"), "")
		last := access.must(t, 200, "GET", path+"/ingest-keys?limit=2", "")
		if items := last.items(t); len(items) != 2 || items[1]["revoked_at"] == nil || last.body["next_cursor"] == nil {
			t.Errorf("%v", last.body)
		}
		rest := access.must(t, 200, "GET", path+"/ingest-keys?limit=2&cursor="+last.text(t, "next_cursor"), "")
		if items := rest.items(t); len(items) != 1 || items[0]["revoked_at"] != nil || rest.body["next_cursor"] != nil {
			t.Errorf("%v", rest.body)
		}
		if n := len(owner(r).must(t, 200, "GET", project(r)+"/ingest-keys", "").items(t)); n != 3 {
			t.Errorf("the first project has %d ingest keys, init made 3", n)
		}
	})
}

// TestEveryFamilyOfKeys: what is made as one kind works as that kind, and is
// found only where it belongs.
func TestEveryFamilyOfKeys(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		o := owner(r)
		for _, f := range []struct {
			path, body, kind string
			allowed, denied  [3]string // method, path, body
		}{
			{
				"ingest-keys", `{"name":"k","kind":"browser","origins":["https://Shop.example"],"rate":0,"burst":5}`, "browser",
				[3]string{"POST", "/v1/track", goodBatch},
				[3]string{"POST", "/v1/alias", `{"anon_id":"a","user_id":"u"}`},
			},
			{
				"project-keys", `{"name":"k"}`, "project",
				[3]string{"GET", "/v1/idempotency-keys?key=none", ""},
				[3]string{"POST", "/v1/track", goodBatch},
			},
			{
				"ci-tokens", `{"name":"k"}`, "ci",
				[3]string{"POST", markers(r) + "/deploy", release1},
				[3]string{"POST", "/v1/track", goodBatch},
			},
		} {
			path := project(r) + "/" + f.path
			made := o.must(t, 201, "POST", path, f.body)
			key := caller{r, made.text(t, "token")}
			if made.body["kind"] != f.kind || made.body["created_at"] == nil {
				t.Errorf("%v", made.body)
			}
			if s := key.call(t, f.allowed[0], f.allowed[1], f.allowed[2]); s.status == 401 || s.status == 403 {
				t.Errorf("%s: %d %v", f.kind, s.status, s.body)
			}
			key.refused(t, "forbidden", f.denied[0], f.denied[1], f.denied[2])
			for _, other := range []string{"ingest-keys", "project-keys", "ci-tokens"} {
				listed := o.must(t, 200, "GET", project(r)+"/"+other+"?limit=200", "").items(t)
				found := slices.ContainsFunc(listed, func(k map[string]any) bool { return k["id"] == made.body["id"] })
				if found != (other == f.path) {
					t.Errorf("%s in %s: %v", f.kind, other, found)
				}
				if other != f.path {
					o.refused(t, "not_found", "POST", project(r)+"/"+other+"/"+made.text(t, "id")+"/rotate", `{}`)
					o.refused(t, "not_found", "DELETE", project(r)+"/"+other+"/"+made.text(t, "id"), "")
				}
			}
			next := caller{r, o.must(t, 201, "POST", path+"/"+made.text(t, "id")+"/rotate", `{"overlap_seconds":0}`).text(t, "token")}
			key.refused(t, "unauthenticated", f.allowed[0], f.allowed[1], f.allowed[2])
			if s := next.call(t, f.allowed[0], f.allowed[1], f.allowed[2]); s.status == 401 || s.status == 403 {
				t.Errorf("%s, rotated: %d %v", f.kind, s.status, s.body)
			}
		}
		browser := o.must(t, 200, "GET", project(r)+"/ingest-keys?limit=200", "").items(t)
		if last := browser[len(browser)-1]; fmt.Sprint(last["origins"]) != "[https://shop.example]" || last["rate"] != 0.0 || last["burst"] != 5.0 {
			t.Errorf("a rotated key has lost its settings: %v", last)
		}
	})
}

// TestImport: clients in the field go on with the key they have.
func TestImport(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		o, path := owner(r), project(r)+"/ingest-keys/import"
		for _, secret := range []string{"phc_AbCdEf0123456789", "apc_looks_like_a_CI_token", "s"} {
			legacy := caller{r, secret}
			legacy.refused(t, "unauthenticated", "POST", "/v1/track", goodBatch) // and that is not remembered
			made := o.must(t, 201, "POST", path, fmt.Sprintf(`{"name":"Old","token":%q}`, secret))
			if made.body["kind"] != "legacy" || strings.Contains(fmt.Sprint(made.body), secret) && len(secret) > 1 {
				t.Errorf("%v", made.body)
			}
			if s := legacy.call(t, "POST", "/v1/track", goodBatch); s.status != 202 {
				t.Errorf("%d %v", s.status, s.body)
			}
			taken := o.refused(t, "validation_failed", "POST", path, fmt.Sprintf(`{"name":"Old","token":%q}`, secret))
			if taken.detail("field") != "token" {
				t.Errorf("%v", taken.body)
			}
			o.must(t, 204, "DELETE", project(r)+"/ingest-keys/"+made.text(t, "id"), "")
			legacy.refused(t, "unauthenticated", "POST", "/v1/track", goodBatch)
		}
		for _, bad := range []string{`""`, `" x"`, `"a\nb"`, `"` + strings.Repeat("k", 513) + `"`} {
			if s := o.refused(t, "validation_failed", "POST", path, `{"name":"Old","token":`+bad+`}`); s.detail("field") != "token" {
				t.Errorf("%s: %v", bad, s.body)
			}
		}
	})
}

func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	before := len(owner(r).must(t, 200, "GET", project(r)+"/ingest-keys", "").items(t))
	for body, field := range map[string]string{
		`{}`: "name", `{"name":"k"}`: "kind", `{"name":"k","kind":"legacy"}`: "kind", `{"name":"k","kind":"ci"}`: "kind", `{"name":"k","kind":"access"}`: "kind",
		`{"name":" ","kind":"server"}`: "name", `{"name":"` + strings.Repeat("n", 201) + `","kind":"server"}`: "name", `{"kind":"server"}`: "name",
		`{"name":"k","kind":"server","origins":["https://a.example"]}`: "origins", `{"name":"k","kind":"browser","origins":["a.example"]}`: "origins",
		`{"name":"k","kind":"browser","origins":["https://a.example/path"]}`: "origins",
		`{"name":"k","kind":"server","rate":-1}`:                             "rate", `{"name":"k","kind":"server","burst":0}`: "burst",
		`{"name":"k","kind":"server","project_id":"x"}`: "project_id",
	} {
		if s := owner(r).refused(t, "validation_failed", "POST", project(r)+"/ingest-keys", body); s.detail("field") != field {
			t.Errorf("%s: %v", body, s.body)
		}
	}
	key := owner(r).must(t, 200, "GET", project(r)+"/ingest-keys", "").items(t)[0]["id"]
	for _, overlap := range []string{"-1", "2592001", "1.5", `"1"`} {
		s := owner(r).refused(t, "validation_failed", "POST", fmt.Sprintf("%s/ingest-keys/%s/rotate", project(r), key), `{"overlap_seconds":`+overlap+`}`)
		if s.detail("field") != "overlap_seconds" {
			t.Errorf("%s: %v", overlap, s.body)
		}
	}
	if after := len(owner(r).must(t, 200, "GET", project(r)+"/ingest-keys", "").items(t)); after != before {
		t.Errorf("%d keys, there were %d", after, before)
	}
}

// TestSecretsAreNotKept: no secret is in the database.
func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	access, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
	join(t, r, "second@localhost", "member")
	invited := access.must(t, 201, "POST", own(r)+"/invitations", `{"email":"third@localhost","role":"viewer"}`).text(t, "token")
	key := access.must(t, 201, "POST", project(r)+"/ci-tokens", `{"name":"k"}`).text(t, "token")
	access.must(t, 201, "POST", project(r)+"/ingest-keys/import", `{"name":"Old","token":"phc_AbCdEf0123456789"}`)
	r.MustStop()
	secrets := []string{
		r.Setup.Password, r.Setup.AccessToken, r.Setup.BrowserToken, r.Setup.ServerKey, r.Setup.LegacyKey, r.Setup.ProjectKey,
		r.Setup.CIToken, access.secret, refresh, invited, key, newPassword, "phc_AbCdEf0123456789",
	}
	files, err := filepath.Glob(filepath.Join(site.Dir, "actionpulse.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "third@localhost") {
			t.Errorf("%s holds nothing of this test", file)
		}
		for _, secret := range secrets {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s holds the secret %s", file, secret)
			}
		}
	}
}
