package replaystore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/replaystore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bench is a project, and the service of its replays.
type bench struct {
	*house
	*replay.Service

	projectID string
	params    replay.Params
	dir       string
	seen      counted
	mu        sync.Mutex
	at        time.Time
	// full, if set, is why nothing may be written.
	full error
}

// counted counts what was acknowledged.
type counted struct {
	mu                          sync.Mutex
	all, duplicates, conflicted int
}

func (c *counted) Chunk(r replay.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	if r.Duplicate {
		c.duplicates++
	}
	if r.Conflict {
		c.conflicted++
	}
}

// tests are run one after the other on one database for each engine: what
// sweeps and audits see is all of it.
var tests = []struct {
	name string
	run  func(t *testing.T, b *bench)
}{
	{"Chunks", testChunks},
	{"EightAtOnce", testEightAtOnce},
	{"Spelling", testSpelling},
	{"Identity", testIdentity},
	{"NothingIsTakenWhenItIsRefused", testNothingIsTakenWhenItIsRefused},
	{"LostCommits", testLostCommits},
	{"Reservations", testReservations},
	{"Usage", testUsage},
	{"WhatWasDeletedStaysDeleted", testWhatWasDeletedStaysDeleted},
	{"PartsOfAPerson", testPartsOfAPerson},
	{"Companions", testCompanions},
	{"Newest", testNewest},
	{"Persons", testPersons},
	{"Retention", testRetention},
	{"AClockAheadDeletesNothing", testAClockAheadDeletesNothing},
	{"DeletionBesideIntake", testDeletionBesideIntake},
	{"Sessions", testSessions},
	{"SweepAndASlowAttempt", testSweepAndASlowAttempt},
	{"AttemptWithinASweep", testAttemptWithinASweep},
	{"SweepsBesideAttempts", testSweepsBesideAttempts},
	{"Start", testStart},
	{"ABlobThatCannotBeDeleted", testABlobThatCannotBeDeleted},
	{"Damage", testDamage},
	{"ABlobThatStays", testABlobThatStays},
	{"FoldersOfTwoServers", testFoldersOfTwoServers},
	{"MovedToABucket", testMovedToABucket},
	{"KilledWhileMoved", testKilledWhileMoved},
	{"AFolderAfterABucket", testAFolderAfterABucket},
	{"WhoseFolder", testWhoseFolder},
	{"APlaceThatCannotBeTaken", testAPlaceThatCannotBeTaken},
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, open)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, h.newBench(t)) }) //nolint:paralleltest // see tests
			}
		})
	}
}

// house is a database with one organization.
type house struct {
	db       *sqldb.DB
	setup    account.SetupResult
	projects *account.Projects
}

func newHouse(t *testing.T, open storagetest.OpenFunc) *house {
	t.Helper()
	h := &house{}
	h.db, h.setup = storagetest.NewLivedIn(t, open)
	store := sqlstore.New(h.db)
	h.projects = account.NewServices(account.ServicesParams{
		Store: store, Clock: time.Now, Random: rand.Reader, AfterChange: func(_ context.Context, err error) error { return err },
	}).Projects
	return h
}

// newProject makes a project.
func (h *house) newProject(t *testing.T) string {
	t.Helper()
	p, err := h.projects.Create(t.Context(), auditlog.Actor{UserID: h.setup.UserID}, h.setup.OrganizationID, rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// newBench makes a bench with a new project, and nothing of the tests before.
func (h *house) newBench(t *testing.T) *bench {
	t.Helper()
	for _, table := range []string{"replay_chunks", "replay_sessions", "replay_marks", "replay_blobs", "replay_usage", "replay_place", "received_marks"} {
		h.empty(t, table)
	}
	b := &bench{house: h, dir: t.TempDir(), at: time.Date(2025, 5, 31, 10, 0, 0, 0, time.UTC), projectID: h.newProject(t)}
	blobs, err := blobstore.OpenFolder(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	b.params = replay.Params{
		Store: replaystore.New(b.db), Blobs: blobs, Place: [16]byte{200}, Workers: 2, Guard: func() error { return b.full }, Observer: &b.seen,
		Clock: b.clock, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	}
	b.Service = b.service(t, func(*replay.Params) {})
	b.mark(t, b.params.Place)
	return b
}

// mark makes the folder the place that holds the blobs.
func (b *bench) mark(t *testing.T, id [16]byte) {
	t.Helper()
	_, err := b.params.Store.TakePlace(t.Context(), id)
	err = errors.Join(err, b.params.Blobs.Put(t.Context(), replay.PlaceName, fmt.Appendf(nil, "%x\n", id)))
	if err != nil {
		t.Fatal(err)
	}
}

// unmark undoes that: no place holds any.
func (b *bench) unmark(t *testing.T) {
	t.Helper()
	b.empty(t, "replay_place")
	if err := b.params.Blobs.Delete(t.Context(), replay.PlaceName); err != nil {
		t.Fatal(err)
	}
}

// empty deletes all rows of a table.
func (h *house) empty(t *testing.T, table string) {
	t.Helper()
	if err := h.db.WriteBatch(t.Context(), func(b *sqldb.Batch) error {
		return b.Run(t.Context(), []sqldb.Statement{{Text: "DELETE FROM " + table}})
	}); err != nil {
		t.Fatal(err)
	}
}

// received notes when a server has received its newest event.
func (b *bench) received(t *testing.T, server byte, at time.Time) {
	t.Helper()
	if err := sqlstore.New(b.db).NoteReceived(t.Context(), [16]byte{server}, at); err != nil {
		t.Fatal(err)
	}
}

// expire deletes chunks that are older than they are kept, by the bench's clock,
// up to which there are events.
func (b *bench) expire(t *testing.T, keep time.Duration, most int) int {
	t.Helper()
	b.received(t, 1, b.clock())
	n, err := b.DeleteOlder(t.Context(), b.project(), replay.Age{Now: b.clock(), Keep: keep}, most)
	if err != nil {
		t.Error(err)
	}
	return n
}

// service makes another service of the same store.
func (b *bench) service(t *testing.T, change func(*replay.Params)) *replay.Service {
	t.Helper()
	p := b.params
	change(&p)
	s, err := replay.NewService(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func (b *bench) project() string { return b.projectID }

// body is a chunk; more are members beside the usual ones.
func body(session string, chunk int, events string, more ...string) string {
	members := append([]string{fmt.Sprintf(`{"session_id":%q,"chunk":%d,"events":%s`, session, chunk, events)}, more...)
	return strings.Join(members, ",") + "}"
}

// events are some that hold a text.
func events(text string) string {
	return fmt.Sprintf(`[{"type":4,"timestamp":1780221600000,"data":{"href":%q}}]`, text)
}

// add sends a chunk that must be acknowledged.
func (b *bench) add(t *testing.T, project, body string) replay.Receipt {
	t.Helper()
	r, err := b.Add(t.Context(), replay.Source{ProjectID: project, OrganizationID: b.setup.OrganizationID}, []byte(body))
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	return r
}

var (
	first     = replay.Receipt{}
	duplicate = replay.Receipt{Duplicate: true}
	conflict  = replay.Receipt{Duplicate: true, Conflict: true}
)

func (b *bench) want(t *testing.T, project, body string, want replay.Receipt) {
	t.Helper()
	if got := b.add(t, project, body); got != want {
		t.Errorf("%.200s: %+v, want %+v", body, got, want)
	}
}

// read returns the events of a chunk.
func (b *bench) read(t *testing.T, project, session string, chunk int64) string {
	t.Helper()
	w, err := b.Open(t.Context(), project, session, chunk)
	if err != nil {
		t.Fatalf("chunk %d: %v", chunk, err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// files are the names of the blobs of chunks in the folder.
func (b *bench) files(t *testing.T) []string {
	t.Helper()
	return filesIn(t, b.dir)
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path != filepath.Join(dir, replay.PlaceName) {
			all = append(all, strings.TrimPrefix(path, dir+string(os.PathSeparator)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// count counts rows, as in "replay_chunks WHERE chunk = 1".
func (b *bench) count(t *testing.T, from string) int {
	t.Helper()
	var n int
	if err := b.db.Reader().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sweep deletes what is garbage after an hour, and checks that then there is a
// blob for each chunk and no other.
func (b *bench) sweep(t *testing.T) {
	t.Helper()
	b.pass(time.Hour + time.Second)
	if _, err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.verify(t)
	if n := b.count(t, "replay_blobs"); n != 0 {
		t.Errorf("%d blobs are still claimed or doomed", n)
	}
	if chunks, files := b.count(t, "replay_chunks"), b.files(t); len(files) != chunks {
		t.Errorf("%d chunks and the files %v", chunks, files)
	}
}

// verify checks that every chunk can be read, and that sessions sum up their
// chunks.
func (b *bench) verify(t *testing.T) {
	t.Helper()
	a, err := replay.Verify(t.Context(), replay.VerifyParams{Store: b.params.Store, Blobs: b.params.Blobs, Place: b.params.Place})
	if err != nil || len(a.Differences) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
	wrong := b.count(t, `replay_sessions s LEFT JOIN (
  SELECT session_number, COUNT(*) AS chunks, SUM(bytes) AS bytes, SUM(events) AS events, SUM(pages) AS pages, SUM(errors) AS errors,
    SUM(clicks) AS clicks, MIN(started_at) AS started_at, MAX(ended_at) AS ended_at FROM replay_chunks GROUP BY session_number
) c ON c.session_number = s.number
WHERE c.chunks IS NULL OR c.chunks <> s.chunks OR c.bytes <> s.bytes OR c.events <> s.events OR c.pages <> s.pages
  OR c.errors <> s.errors OR c.clicks <> s.clicks OR c.started_at <> s.started_at OR c.ended_at <> s.ended_at`)
	if wrong > 0 {
		t.Errorf("%d sessions do not sum up their chunks", wrong)
	}
}

func mustFail(t *testing.T, err error, want api.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
