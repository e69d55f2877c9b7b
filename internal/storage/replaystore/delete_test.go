package replaystore_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// testWhatWasDeletedStaysDeleted: by session, person and age; a repeat is told
// from a conflict all the same, and what was never received is new.
func testWhatWasDeletedStaysDeleted(t *testing.T, b *bench) {
	place := replay.Place{
		Actor: auditlog.Actor{UserID: b.setup.UserID}, OrganizationID: b.setup.OrganizationID, ProjectID: b.project(),
	}
	for name, remove := range map[string]func(session string) error{
		"session": func(session string) error {
			at := place
			at.SessionID = session
			return b.Delete(t.Context(), at)
		},
		"person": func(session string) error {
			n, err := b.DeletePerson(t.Context(), b.project(), replay.Part{Person: replay.Person{UserID: "user of " + session}})
			if n != 3 {
				err = errors.Join(err, fmt.Errorf("%d chunks", n))
			}
			return err
		},
		"age": func(string) error {
			b.pass(time.Hour)
			if n := b.expire(t, 0, 100); n != 3 {
				return fmt.Errorf("%d chunks", n)
			}
			return nil
		},
	} {
		session := name + "/\x00s"
		quoted := strings.ReplaceAll(session, "\x00", "\\u0000")
		text := func(n int, events string) string {
			return fmt.Sprintf(`{"session_id":"%s","chunk":%d,"events":%s,"user_id":"user of %s"}`, quoted, n, events, quoted)
		}
		for n := range 3 {
			b.want(t, b.project(), text(n, events(fmt.Sprint(n))), first)
		}
		if err := remove(session); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if files := b.files(t); len(files) > 0 {
			t.Errorf("%s: there is still %v", name, files)
		}
		for n := range 3 {
			b.want(t, b.project(), text(n, events(fmt.Sprint(n))), duplicate)
			b.want(t, b.project(), text(n, events("other")), conflict)
			_, err := b.Open(t.Context(), b.project(), session, int64(n))
			mustFail(t, err, api.CodeNotFound)
		}
		_, err := b.Get(t.Context(), b.project(), session)
		mustFail(t, err, api.CodeNotFound)
		b.want(t, b.project(), text(5, events("new")), first)
		if got := b.read(t, b.project(), session, 5); got != events("new") {
			t.Error(got)
		}
		if err := b.Delete(t.Context(), replay.Place{OrganizationID: place.OrganizationID, ProjectID: place.ProjectID, SessionID: session}); err != nil {
			t.Error(err)
		}
	}
	mustFail(t, b.Delete(t.Context(), place), api.CodeNotFound)
	entries, err := auditlog.NewService(sqlstore.New(b.db)).List(t.Context(), b.setup.OrganizationID, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if e.Action == auditlog.ReplayDeleted && e.Actor.UserID == b.setup.UserID {
			n++
			if hash := replay.SessionHash("session/\x00s"); e.Object.ID != hex.EncodeToString(hash[:]) || e.ProjectID != b.project() {
				t.Errorf("%+v", e)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
	b.sweep(t)
}

// testCompanions: whom else the chunks of a person name, of one project and time.
func testCompanions(t *testing.T, b *bench) {
	both := func(session, anon, user string) {
		b.want(t, b.project(), body(session, 0, events("0"), `"anon_id":"`+anon+`","user_id":"`+user+`"`), first)
	}
	both("1", "a", "u")
	both("2", "a", "u")
	both("3", "b", "u")
	both("4", "a", "v")
	b.want(t, b.project(), body("5", 0, events("0"), `"anon_id":"c"`), first)
	b.want(t, b.project(), body("6", 0, events("0"), `"user_id":"w"`), first)
	now := b.clock().Add(time.Second)
	b.pass(time.Hour)
	both("7", "late", "u")
	for of, want := range map[replay.Person][]replay.Person{
		{UserID: "u"}: {{AnonID: "a"}, {AnonID: "b"}}, {AnonID: "a"}: {{UserID: "u"}, {UserID: "v"}},
		{AnonID: "c"}: nil, {UserID: "w"}: nil, {UserID: "a"}: nil,
	} {
		got, err := b.Companions(t.Context(), b.project(), of, now)
		slices.SortFunc(got, func(a, b replay.Person) int { return strings.Compare(a.UserID+a.AnonID, b.UserID+b.AnonID) })
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", of, err, diff)
		}
	}
	if got, err := b.Companions(t.Context(), b.setup.OrganizationID, replay.Person{UserID: "u"}, now); len(got) != 0 || err != nil {
		t.Errorf("of another project: %v, %v", got, err)
	}
	_, err := b.Companions(t.Context(), b.project(), replay.Person{}, now)
	mustFail(t, err, api.CodeValidationFailed)
}

// testNewest: the latest time of receipt of a project, by whatever clock.
func testNewest(t *testing.T, b *bench) {
	if at, err := b.Newest(t.Context(), b.project()); !at.IsZero() || err != nil {
		t.Errorf("of nothing: %s, %v", at, err)
	}
	b.pass(time.Hour)
	b.want(t, b.project(), body("ahead", 0, events("0"), `"anon_id":"a"`), first)
	b.pass(-2 * time.Hour)
	b.want(t, b.project(), body("set back", 0, events("0"), `"anon_id":"a"`), first)
	var newest int64
	if err := b.db.Reader().QueryRowContext(t.Context(), `SELECT MAX(received_at) FROM replay_chunks`).Scan(&newest); err != nil {
		t.Fatal(err)
	}
	at, err := b.Newest(t.Context(), b.project())
	if err != nil || at.UnixMicro() != newest || at.Sub(b.clock()) < 90*time.Minute {
		t.Errorf("%s, want %s, %v", at, time.UnixMicro(newest), err)
	}
	if at, err := b.Newest(t.Context(), b.newProject(t)); !at.IsZero() || err != nil {
		t.Errorf("of another project: %s, %v", at, err)
	}
	n, err := b.DeletePerson(t.Context(), b.project(), replay.Part{Person: replay.Person{AnonID: "a"}, ReceivedBefore: at.Add(time.Microsecond)})
	if n != 2 || err != nil {
		t.Errorf("%d chunks are before a time after it, %v", n, err)
	}
}

// testPartsOfAPerson: what is narrowed by time is what is deleted, and no more;
// and an anonymous id may be meant whatever the user.
func testPartsOfAPerson(t *testing.T, b *bench) {
	b.want(t, b.project(), body("early", 0, events("0"), `"anon_id":"a"`), first)
	b.want(t, b.project(), body("used", 0, events("1"), `"anon_id":"a","user_id":"u"`), first)
	var received, begun int64
	err := b.db.Reader().QueryRowContext(t.Context(), `SELECT MIN(received_at) / 1000, MIN(started_at) / 1000 FROM replay_chunks`).Scan(&received, &begun)
	if err != nil {
		t.Fatal(err)
	}
	begun -= 3_600_000 // the client's clock is wrong
	err = b.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE replay_chunks SET started_at = $1`, begun*1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	a := replay.Person{AnonID: "a"}
	for _, c := range []struct {
		name string
		part replay.Part
		want int
	}{
		{"received earlier", replay.Part{Person: a, AnyUser: true, ReceivedBefore: time.Unix(1, 0)}, 0},
		{"received later", replay.Part{Person: a, AnyUser: true, Received: &replay.Span{From: received + 60_000, To: math.MaxInt64}}, 0},
		{"received before then", replay.Part{Person: a, AnyUser: true, Received: &replay.Span{From: math.MinInt64, To: received}}, 0},
		{"by the client's clock", replay.Part{Person: a, AnyUser: true, Received: &replay.Span{From: begun, To: begun + 1}}, 0},
		{"both bounds", replay.Part{Person: a, ReceivedBefore: time.Unix(1, 0), Received: &replay.Span{From: received, To: received + 60_000}}, 0},
		{"received then", replay.Part{Person: a, Received: &replay.Span{From: received, To: received + 60_000}}, 1},
		{"of any user", replay.Part{Person: a, AnyUser: true, ReceivedBefore: time.Now().Add(time.Hour)}, 1},
	} {
		if n, err := b.DeletePerson(t.Context(), b.project(), c.part); err != nil || n != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, n, err, c.want)
		}
	}
}

// testPersons: a chunk is its user's, and only without one its anonymous id's;
// nobody else's is touched, in no other project.
func testPersons(t *testing.T, b *bench) {
	other := b.newProject(t)
	for _, project := range []string{b.project(), other} {
		for n, who := range []string{`"anon_id":"a"`, `"anon_id":"a","user_id":"u"`, `"user_id":"u"`, `"anon_id":"u"`, `"user_id":"v"`, `"user_id":null`} {
			b.want(t, project, body("s", n, events(fmt.Sprint(n)), who), first)
			b.want(t, project, body(who, n, events(fmt.Sprint(n)), who), first)
		}
	}
	exported := func(p replay.Person) []string {
		var all []string
		err := b.ExportPerson(t.Context(), b.project(), replay.Part{Person: p}, func(_ string, c replay.Chunk, w io.WriterTo) error {
			var out bytes.Buffer
			_, err := w.WriteTo(&out)
			if out.String() != events(fmt.Sprint(c.Chunk)) {
				t.Errorf("%s", out.String())
			}
			all = append(all, fmt.Sprint(c.Chunk))
			return err
		})
		if err != nil {
			t.Error(err)
		}
		slices.Sort(all)
		return all
	}
	for _, c := range []struct {
		replay.Person

		want []string
	}{
		{replay.Person{UserID: "u"}, []string{"1", "1", "2", "2"}},
		{replay.Person{AnonID: "a"}, []string{"0", "0"}},
		{replay.Person{AnonID: "u"}, []string{"3", "3"}},
		{replay.Person{UserID: "nobody"}, nil},
	} {
		if diff := cmp.Diff(c.want, exported(c.Person)); diff != "" {
			t.Errorf("%+v: %s", c.Person, diff)
		}
		if n, err := b.DeletePerson(t.Context(), b.project(), replay.Part{Person: c.Person}); err != nil || n != len(c.want) {
			t.Errorf("%+v: %d, %v", c.Person, n, err)
		}
		if left := exported(c.Person); left != nil {
			t.Errorf("%+v: %v is left", c.Person, left)
		}
	}
	if mine, others := b.count(t, "replay_chunks WHERE project_id = '"+b.project()+"'"), b.count(t, "replay_chunks WHERE project_id = '"+other+"'"); mine != 4 || others != 12 {
		t.Errorf("%d and %d chunks are left", mine, others)
	}
	for _, p := range []replay.Person{{}, {UserID: "u", AnonID: "a"}} {
		_, err := b.DeletePerson(t.Context(), b.project(), replay.Part{Person: p})
		mustFail(t, err, api.CodeValidationFailed)
	}
	stop := errors.New("enough")
	if err := b.ExportPerson(t.Context(), b.project(), replay.Part{Person: replay.Person{UserID: "v"}}, func(string, replay.Chunk, io.WriterTo) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	b.sweep(t)
}

// testRetention: in steps, by receipt, the oldest first; a session keeps what
// is younger and sums up only that.
func testRetention(t *testing.T, b *bench) {
	for n := range 10 {
		b.want(t, b.project(), body("s", n, events(fmt.Sprint(n))), first)
		b.pass(time.Minute)
	}
	for i, want := range []int{4, 2, 0} {
		if n := b.expire(t, 4*time.Minute, 4); n != want { // 0 to 5 are older
			t.Errorf("step %d: %d", i, n)
		}
		b.verify(t)
	}
	r, err := b.Get(t.Context(), b.project(), "s")
	if err != nil || len(r.Chunks) != 4 || r.Chunks[0].Chunk != 6 || r.Session.Chunks != 4 || r.Pages != 4 || r.GapCount != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	b.sweep(t)
}

// testAClockAheadDeletesNothing: a server whose clock is ahead deletes nothing
// that the newest event of any server does not let go, and one whose events are
// ahead, too, nothing that the shared clock does not.
func testAClockAheadDeletesNothing(t *testing.T, b *bench) {
	const keep, ahead = 30 * 24 * time.Hour, 3000 * 24 * time.Hour
	for n := range 2 {
		b.want(t, b.project(), body("s", n, events(fmt.Sprint(n))), first)
		b.pass(24 * time.Hour)
	}
	began := b.clock()
	expire := func(now time.Time, want int) {
		t.Helper()
		n, err := b.DeleteOlder(t.Context(), b.project(), replay.Age{Now: now, Keep: keep}, 10)
		if err != nil || n != want {
			t.Errorf("%d are deleted, want %d: %v", n, want, err)
		}
	}
	expire(began.Add(ahead), 0) // without an event
	b.received(t, 1, began)
	b.received(t, 2, began.Add(-ahead)) // by a server that has none any more
	expire(began.Add(ahead), 0)
	b.received(t, 1, began.Add(keep-25*time.Hour)) // the first is old by now, and the second not
	expire(began, 0)                               // nor by a clock that is behind
	expire(began.Add(ahead), 1)

	shared, err := b.db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.pass(shared.Sub(b.clock()))
	b.want(t, b.project(), body("s", 2, events("2")), first)
	b.received(t, 2, shared.Add(ahead))
	expire(shared.Add(ahead), 1) // the second, which is old by any clock
	expire(shared.Add(ahead), 0)
	if r, err := b.Get(t.Context(), b.project(), "s"); err != nil || len(r.Chunks) != 1 || r.Chunks[0].Chunk != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// testDeletionBesideIntake: while chunks come in, deletions leave no session
// without a chunk, no chunk without a blob, and sums that are right.
func testDeletionBesideIntake(t *testing.T, b *bench) {
	b.received(t, 1, b.clock().Add(time.Hour))
	ctx, stop := context.WithCancel(t.Context())
	var adds, deletions sync.WaitGroup
	for _, remove := range []func() error{
		func() error {
			_, err := b.DeletePerson(context.Background(), b.project(), replay.Part{Person: replay.Person{UserID: "u"}})
			return err
		},
		func() error {
			_, err := b.DeleteOlder(context.Background(), b.project(), replay.Age{Now: b.clock(), Keep: -time.Hour}, 3)
			return err
		},
	} {
		deletions.Go(func() {
			for ctx.Err() == nil {
				if err := remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range 3 {
		adds.Go(func() {
			for n := range 20 {
				text := body(fmt.Sprint("s", n%2), w*20+n, events("x"), `"user_id":"u"`)
				if r, err := b.Add(context.Background(), replay.Source{ProjectID: b.project()}, []byte(text)); err != nil || r != first {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	adds.Wait()
	stop()
	deletions.Wait()
	if marks := b.count(t, "replay_marks"); marks != 60 {
		t.Errorf("%d marks", marks)
	}
	b.sweep(t)
}
