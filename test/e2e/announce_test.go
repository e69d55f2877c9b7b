package e2e_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// TestAppliedButNotAnnounced: the change is made, other servers cannot be told
// of it, and the answer says exactly that.
func TestAppliedButNotAnnounced(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	site := apptest.New(t, "--database", address)
	site.Flags = []string{"--database", mute(t, address)}
	r := site.MustServe()
	o := owner(r)
	made := o.must(t, 201, "POST", project(r)+"/ingest-keys", `{"name":"k","kind":"server"}`)
	key := caller{r, made.text(t, "token")}
	key.mustTrack(t, event1, false)

	check := func(s said) {
		t.Helper()
		if s.status != 503 || s.code() != "unavailable" || s.detail("applied") != true || s.detail("retryable") != true ||
			s.header.Get("X-Should-Retry") != "false" || s.header.Get("Retry-After") == "" {
			t.Errorf("%d %v %v", s.status, s.header, s.body)
		}
	}
	check(o.call(t, "DELETE", project(r)+"/ingest-keys/"+made.text(t, "id"), ""))
	if s := key.track(t, event1); s.code() != "unauthenticated" {
		t.Errorf("it is not revoked here: %d %v", s.status, s.body)
	}
	if keys := o.must(t, 200, "GET", project(r)+"/ingest-keys?limit=200", "").items(t); keys[len(keys)-1]["revoked_at"] == nil {
		t.Errorf("it is not revoked in the store: %v", keys)
	}
	member, memberID := join(t, r, "member@localhost", "member")
	check(o.call(t, "PATCH", own(r)+"/members/"+memberID, `{"role":"viewer"}`))
	member.refused(t, "forbidden", "POST", markers(r), `{"version":"1"}`)
	member.must(t, 200, "GET", project(r), "")

	// What need not be told at once is no failure.
	rotated := o.must(t, 201, "POST", project(r)+"/ci-tokens", `{"name":"k"}`)
	o.must(t, 201, "POST", project(r)+"/ci-tokens/"+rotated.text(t, "id")+"/rotate", `{}`)
	check(o.call(t, "POST", project(r)+"/ci-tokens/"+rotated.text(t, "id")+"/rotate", `{"overlap_seconds":0}`))
	caller{r, rotated.text(t, "token")}.refused(t, "unauthenticated", "POST", markers(r)+"/deploy", release1)
}

// TestRevokedElsewhere: what one server revokes is refused by another on the
// same database as soon as it hears of it, before it would look again by
// itself.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	site := apptest.NewOnPostgreSQL(t)
	second := beside(t, site)
	r, other := site.MustServe(), second.MustServe()
	soonest := time.Hour
	for range 5 { // one must be quick, however busy the machine is
		made := owner(r).must(t, 201, "POST", project(r)+"/ingest-keys", `{"name":"k","kind":"server"}`)
		key := caller{other, made.text(t, "token")}
		asked := time.Now()
		key.must(t, 202, "POST", "/v1/track", goodBatch)
		owner(r).must(t, 204, "DELETE", project(r)+"/ingest-keys/"+made.text(t, "id"), "")
		for key.call(t, "POST", "/v1/track", goodBatch).code() != "unauthenticated" {
			if time.Since(asked) > time.Minute {
				t.Fatal("a revoked key goes on to work elsewhere")
			}
		}
		soonest = min(soonest, time.Since(asked))
	}
	if soonest >= credential.DefaultTTL {
		t.Errorf("the other server heard nothing: it took %v", soonest)
	}
}

// mute returns the address of a database for a role that may do everything
// there but tell others.
func mute(t *testing.T, address string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // the statements have answered
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	role := "mute_" + strings.TrimPrefix(u.Path, "/")
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN PASSWORD 'mute'",
		"GRANT ALL ON SCHEMA public TO " + role,
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO " + role,
		"REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() { unmute(t, address, role) })
	u.User = url.UserPassword(role, "mute")
	return u.String()
}

// unmute drops the role, which belongs to the whole PostgreSQL server.
func unmute(t *testing.T, address, role string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = conn.Exec(ctx, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		t.Error(err)
	}
}
