package replaystore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// asking is a store that counts who asks whose folder holds the blobs, and whose
// first answers may fail.
type asking struct {
	replay.Store

	takes, finds atomic.Int64
	fails        func(take int64) error
}

func (a *asking) TakeFolder(ctx context.Context, server [16]byte) ([16]byte, error) {
	n := a.takes.Add(1)
	holder, err := a.Store.TakeFolder(ctx, server)
	if a.fails != nil {
		err = errors.Join(err, a.fails(n))
	}
	return holder, err
}

func (a *asking) FindFolder(ctx context.Context) ([16]byte, bool, error) {
	a.finds.Add(1)
	return a.Store.FindFolder(ctx)
}

// another is a server with a folder of its own on the same store.
type another struct {
	*replay.Service

	store  *asking
	params replay.Params
	dir    string
	log    bytes.Buffer
}

func (b *bench) another(t *testing.T, server byte, dir string) *another {
	t.Helper()
	blobs, err := blobstore.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	a := &another{store: &asking{Store: b.params.Store}, dir: dir}
	a.Service = b.service(t, func(p *replay.Params) {
		p.Store, p.Blobs, p.Server, p.Log = a.store, blobs, [16]byte{server}, slog.New(slog.NewTextHandler(&a.log, nil))
		a.params = *p
	})
	return a
}

func (a *another) verify(t *testing.T) replay.Audit {
	t.Helper()
	found, err := replay.Verify(t.Context(), replay.VerifyParams{Store: a.params.Store, Blobs: a.params.Blobs, Server: a.params.Server})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// send sends a chunk of the session "s", and returns how it was refused.
func (b *bench) send(t *testing.T, to *replay.Service, n int) (replay.Receipt, error) {
	t.Helper()
	src := replay.Source{ProjectID: b.project(), OrganizationID: b.setup.OrganizationID}
	return to.Add(t.Context(), src, []byte(body("s", n, events(fmt.Sprint(n)), `"user_id":"w"`)))
}

// testFoldersOfTwoServers: the folder of the first one that has a chunk to keep
// is the only one that keeps any. The other acknowledges what is there, and
// neither takes in, nor reads, nor deletes or forgets a blob.
func testFoldersOfTwoServers(t *testing.T, b *bench) {
	one, two := b.another(t, 1, b.dir), b.another(t, 2, t.TempDir())
	if n, err := two.Sweep(t.Context()); n != 0 || err != nil || b.count(t, "replay_folder") != 0 {
		t.Fatalf("a sweep of nothing has taken the folder: %d, %v", n, err)
	}
	for n := range 3 {
		if r, err := b.send(t, one.Service, n); err != nil || r != first {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	for range 2 {
		_, err := b.send(t, two.Service, 3)
		mustFail(t, err, api.CodeInternal)
		if f, ok := errors.AsType[*fault.Error](err); !ok || len(f.Details) > 0 || f.RetryAfter == 0 ||
			!strings.Contains(f.Message, "replay.blobs") || !strings.Contains(f.Message, "nothing was accepted") {
			t.Errorf("%v", err)
		}
	}
	if r, err := b.send(t, two.Service, 0); err != nil || r != duplicate {
		t.Errorf("%+v, %v", r, err)
	}
	if marks, claims, files := b.count(t, "replay_marks"), b.count(t, "replay_blobs"), filesIn(t, two.dir); marks != 3 || claims != 0 || len(files) > 0 {
		t.Errorf("%d marks, %d claims, the files %v", marks, claims, files)
	}
	if _, err := two.Open(t.Context(), b.project(), "s", 1); err == nil || fault.CodeOf(err) != api.CodeConflict || strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
	err := two.ExportPerson(t.Context(), b.project(), replay.Part{Person: replay.Person{UserID: "w"}}, func(string, replay.Chunk, io.WriterTo) error { return nil })
	mustFail(t, err, api.CodeConflict) // not one that says that they are lost
	if a := two.verify(t); len(a.Differences) != 1 || !strings.Contains(a.Differences[0], "another server") {
		t.Errorf("%+v", a)
	}
	if a := one.verify(t); len(a.Differences) > 0 || a.Chunks != 3 {
		t.Errorf("%+v", a)
	}
	b.deleteElsewhere(t, one, two)
	if asked := one.store.takes.Load() + one.store.finds.Load(); asked != 2 { // once by verify, which is a process of its own
		t.Errorf("asked %d times", asked)
	}
	if asked := two.store.takes.Load() + two.store.finds.Load(); asked != 2 {
		t.Errorf("the other has asked %d times", asked)
	}
	if warnings := strings.Count(two.log.String(), "level=WARN"); warnings != 1 || !strings.Contains(two.log.String(), "replay.blobs") || one.log.Len() > 0 {
		t.Errorf("%s\n%s", two.log.String(), one.log.String())
	}
	b.sweep(t)
}

// deleteElsewhere deletes all chunks at a server that has no blob of them: the
// one that has them deletes these.
func (b *bench) deleteElsewhere(t *testing.T, one, two *another) {
	t.Helper()
	place := replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: b.project(), SessionID: "s"}
	if err := two.Delete(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if n, err := two.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if doomed, files := b.count(t, "replay_blobs WHERE state = 'doomed'"), b.files(t); doomed != 3 || len(files) != 3 {
		t.Errorf("%d are doomed, of the files %v", doomed, files)
	}
	if n, err := one.Sweep(t.Context()); n != 3 || err != nil || len(b.files(t)) > 0 {
		t.Errorf("%d, %v, %v", n, err, b.files(t))
	}
}

// testABucketForAll: once all have the same blobs, it does not matter whose
// folder has held them.
func testABucketForAll(t *testing.T, b *bench) {
	one := b.another(t, 1, t.TempDir())
	if r, err := b.send(t, one.Service, 0); err != nil || r != first {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := os.CopyFS(b.dir, os.DirFS(one.dir)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 3; n++ {
		if r, err := b.send(t, b.service(t, func(*replay.Params) {}), n); err != nil || r != first {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for n := range 3 {
		if got := b.read(t, b.project(), "s", int64(n)); got != events(fmt.Sprint(n)) {
			t.Error(got)
		}
	}
	if err := b.Delete(t.Context(), replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: b.project(), SessionID: "s"}); err != nil {
		t.Error(err)
	}
	b.sweep(t)
}

// testAFolderAfterABucket: while nobody's folder has the blobs, what is missing is
// missing, and the next one to delete or to write has them.
func testAFolderAfterABucket(t *testing.T, b *bench) {
	for n := range 2 { // in a bucket that all have
		b.want(t, b.project(), body("s", n, events(fmt.Sprint(n))), first)
	}
	one, two := b.another(t, 1, t.TempDir()), b.another(t, 2, t.TempDir())
	for _, s := range []*another{one, two} {
		_, err := s.Open(t.Context(), b.project(), "s", 0)
		mustFail(t, err, api.CodeInternal)
		if a := s.verify(t); a.Chunks != 2 || len(a.Differences) != 2 {
			t.Errorf("%+v", a)
		}
	}
	if err := os.CopyFS(two.dir, os.DirFS(b.dir)); err != nil {
		t.Fatal(err)
	}
	if err := two.Delete(t.Context(), replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: b.project(), SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if files := filesIn(t, two.dir); len(files) > 0 || b.count(t, "replay_blobs") != 0 {
		t.Errorf("%v", files)
	}
	_, err := b.send(t, one.Service, 2)
	mustFail(t, err, api.CodeInternal)
	if r, err := b.send(t, two.Service, 2); err != nil || r != first || len(filesIn(t, two.dir)) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// testWhoseFolder: of servers that begin at once one has the folder; an answer
// that was not heard is asked for again, and while there is none nothing is
// taken.
func testWhoseFolder(t *testing.T, b *bench) {
	servers := make([]*another, 4)
	for i := range servers {
		servers[i] = b.another(t, byte(i+1), t.TempDir())
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for i, s := range servers {
		for n := range 2 {
			all.Go(func() {
				if _, err := b.send(t, s.Service, 2*i+n); err == nil {
					taken.Add(1)
				}
			})
		}
	}
	all.Wait()
	holders := 0
	for _, s := range servers {
		if n := len(filesIn(t, s.dir)); n == 2 {
			holders++
		} else if n != 0 {
			t.Errorf("%d files", n)
		}
	}
	if taken.Load() != 2 || holders != 1 || b.count(t, "replay_folder") != 1 {
		t.Errorf("%d were taken, %d have files", taken.Load(), holders)
	}
	holder, found, err := b.params.Store.FindFolder(t.Context())
	if err != nil || !found {
		t.Fatal(err)
	}
	mine := b.another(t, holder[0], t.TempDir())
	mine.store.fails = func(take int64) error {
		switch take {
		case 1:
			return errors.New("no such table")
		case 2:
			return fault.New(api.CodeUnavailable, "not confirmed").With("applied", "unknown")
		default:
			return nil
		}
	}
	_, err = b.send(t, mine.Service, 9)
	mustFail(t, err, api.CodeInternal)
	if r, err := b.send(t, mine.Service, 9); err != nil || r != first || mine.store.takes.Load() != 3 {
		t.Errorf("%+v, %v, asked %d times", r, err, mine.store.takes.Load())
	}
}
