package replaystore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/replay"
)

// testSessions: what a list shows of sessions, and which each filter lets
// through.
func testSessions(t *testing.T, b *bench) {
	at := func(seconds int) int64 { return b.clock().Add(time.Duration(seconds) * time.Second).UnixMilli() }
	meta := func(seconds int, href string) string {
		return fmt.Sprintf(`{"type":4,"timestamp":%d,"data":{"href":%q}}`, at(seconds), href)
	}
	failed := func(seconds int) string {
		return fmt.Sprintf(`{"type":6,"timestamp":%d,"data":{"plugin":"rrweb/console@1","payload":{"level":"error"}}}`, at(seconds))
	}
	// The later chunk comes first, and the earlier one knows no user yet.
	b.want(t, b.project(), body("long", 1, "["+meta(-5, "/b")+","+failed(-1)+"]", `"anon_id":"a","user_id":"ada"`), first)
	b.want(t, b.project(), body("long", 0, "["+meta(-60, "/a")+"]", `"anon_id":"a"`), first)
	b.want(t, b.project(), body("short", 0, "["+meta(-10, "/")+"]", `"anon_id":"b"`), first)
	b.want(t, b.project(), body("nobody", 0, "[]"), first)
	b.want(t, b.newProject(t), body("elsewhere", 0, "[]", `"user_id":"ada"`), first)

	now := b.clock()
	for name, c := range map[string]struct {
		query replay.ListQuery
		want  []string
	}{
		"all":                 {replay.ListQuery{}, []string{"nobody", "short", "long"}},
		"a page":              {replay.ListQuery{Limit: 2}, []string{"nobody", "short"}},
		"a user":              {replay.ListQuery{Person: "ada"}, []string{"long"}},
		"an anonymous id":     {replay.ListQuery{Person: "a"}, []string{"long"}},
		"a person of no one":  {replay.ListQuery{Person: "ad"}, nil},
		"from":                {replay.ListQuery{From: now.Add(-10 * time.Second)}, []string{"nobody", "short"}},
		"to":                  {replay.ListQuery{To: now.Add(-10 * time.Second)}, []string{"long"}},
		"a duration":          {replay.ListQuery{MinDuration: 59 * time.Second}, []string{"long"}},
		"a longer duration":   {replay.ListQuery{MinDuration: 59*time.Second + 1000}, nil},
		"with errors":         {replay.ListQuery{HasErrors: new(true)}, []string{"long"}},
		"without":             {replay.ListQuery{HasErrors: new(false)}, []string{"nobody", "short"}},
		"errors of an hour":   {replay.ListQuery{HasErrors: new(true), From: now.Add(time.Hour)}, nil},
		"errors of this user": {replay.ListQuery{HasErrors: new(true), Person: "ada"}, []string{"long"}},
	} {
		c.query.ProjectID = b.project()
		if c.query.Limit == 0 {
			c.query.Limit = 10
		}
		all, err := b.List(t.Context(), c.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			got = append(got, s.SessionID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	all, err := b.List(t.Context(), replay.ListQuery{ProjectID: b.project(), Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := replay.Session{
		Number: all[2].Number, SessionID: "long", Person: replay.Person{UserID: "ada", AnonID: "a"}, Chunks: 2, Bytes: all[2].Bytes,
		Summary: replay.Summary{
			StartedAt: now.Add(-60 * time.Second), EndedAt: now.Add(-time.Second), Events: 3, Pages: 2, Errors: 1,
		},
	}
	if diff := cmp.Diff(want, all[2]); diff != "" {
		t.Error(diff)
	}
	next, err := b.List(t.Context(), replay.ListQuery{ProjectID: b.project(), Limit: 10, Before: all[0].Number})
	if err != nil || len(next) != 2 {
		t.Errorf("%+v, %v", next, err)
	}
}
