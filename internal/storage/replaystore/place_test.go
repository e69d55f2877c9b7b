package replaystore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// asking is a store that counts who takes the place of the blobs, and whose first
// answers may fail: before it is taken, or after.
type asking struct {
	replay.Store

	takes         atomic.Int64
	before, after func(take int64) error
}

func (a *asking) TakePlace(ctx context.Context, id [16]byte) (replay.Location, error) {
	n := a.takes.Add(1)
	if a.before != nil {
		if err := a.before(n); err != nil {
			return replay.Location{}, err
		}
	}
	place, err := a.Store.TakePlace(ctx, id)
	if a.after != nil {
		err = errors.Join(err, a.after(n))
	}
	return place, err
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
		p.Store, p.Blobs, p.Place, p.Log = a.store, blobs, [16]byte{server}, slog.New(slog.NewTextHandler(&a.log, nil))
		a.params = *p
	})
	return a
}

func (a *another) verify(t *testing.T) replay.Audit {
	t.Helper()
	found, err := replay.Verify(t.Context(), replay.VerifyParams{Store: a.params.Store, Blobs: a.params.Blobs, Place: a.params.Place})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// settle is what a start does: it says whether the blobs are there.
func (a *another) settle(t *testing.T) bool {
	t.Helper()
	_, here, err := replay.Settle(t.Context(), replay.PlaceParams{Store: a.params.Store, Blobs: a.params.Blobs, Place: a.params.Place})
	if err != nil {
		t.Fatal(err)
	}
	return here
}

// wantElsewhere has a server refuse to take in, to read and to compare.
func (b *bench) wantElsewhere(t *testing.T, a *another) {
	t.Helper()
	_, err := b.send(t, a.Service, 99)
	mustFail(t, err, api.CodeInternal)
	if f, ok := errors.AsType[*fault.Error](err); !ok || len(f.Details) > 0 || f.RetryAfter == 0 ||
		!strings.Contains(f.Message, "replay.blobs") || !strings.Contains(f.Message, "nothing was accepted") {
		t.Errorf("%v", err)
	}
	if found := a.verify(t); len(found.Differences) != 1 || !strings.Contains(found.Differences[0], "another place") || found.Chunks != 0 {
		t.Errorf("%+v", found)
	}
	if a.settle(t) {
		t.Error("it starts")
	}
}

// copyPlace copies all blobs of a place to another.
func copyPlace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Remove(filepath.Join(to, replay.PlaceName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// session is the one that chunks are sent of.
func (b *bench) session() replay.Place {
	return replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: b.project(), SessionID: "s"}
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
	b.unmark(t)
	one, two := b.another(t, 200, b.dir), b.another(t, 2, t.TempDir())
	if n, err := two.Sweep(t.Context()); n != 0 || err != nil || b.count(t, "replay_place") != 0 || !two.settle(t) {
		t.Fatalf("a sweep of nothing has taken the place: %d, %v", n, err)
	}
	for n := range 3 {
		if r, err := b.send(t, one.Service, n); err != nil || r != first {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	for range 2 {
		b.wantElsewhere(t, two)
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
	if a := one.verify(t); len(a.Differences) > 0 || a.Chunks != 3 || !one.settle(t) {
		t.Errorf("%+v", a)
	}
	b.deleteElsewhere(t, one, two)
	if warnings := strings.Count(two.log.String(), "level=WARN"); warnings != 1 || !strings.Contains(two.log.String(), "replay.blobs") || one.log.Len() > 0 {
		t.Errorf("%s\n%s", two.log.String(), one.log.String())
	}
	b.sweep(t)
}

// deleteElsewhere deletes all chunks at a server that has no blob of them: the
// one that has them deletes these.
func (b *bench) deleteElsewhere(t *testing.T, one, two *another) {
	t.Helper()
	if err := two.Delete(t.Context(), b.session()); err != nil {
		t.Fatal(err)
	}
	if n, err := two.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if doomed, files := b.count(t, "replay_blobs WHERE state = 'doomed'"), filesIn(t, one.dir); doomed != 3 || len(files) != 3 {
		t.Errorf("%d are doomed, of the files %v", doomed, files)
	}
	if n, err := one.Sweep(t.Context()); n != 3 || err != nil || len(filesIn(t, one.dir)) > 0 {
		t.Errorf("%d, %v, %v", n, err, filesIn(t, one.dir))
	}
}

// testMovedToABucket: who starts where all blobs were copied has them from then
// on. Who goes on with the folder that they were in takes in nothing, and leaves
// to the others what is to be deleted, from that moment on.
func testMovedToABucket(t *testing.T, b *bench) {
	b.unmark(t)
	folder, bucket := b.another(t, 1, t.TempDir()), b.another(t, 200, b.dir)
	for n := range 3 {
		if r, err := b.send(t, folder.Service, n); err != nil || r != first {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	b.wantElsewhere(t, bucket)
	copyPlace(t, folder.dir, bucket.dir)
	if a := bucket.verify(t); a.Chunks != 3 || len(a.Differences) > 0 || !folder.settle(t) {
		t.Errorf("a copy is not to be read, or to look at it has moved it: %+v", a)
	}
	for range 2 {
		if !bucket.settle(t) {
			t.Error("it does not start where all blobs are")
		}
	}
	b.wantElsewhere(t, folder)
	for _, s := range []*replay.Service{bucket.Service, b.another(t, 200, b.dir).Service} {
		if r, err := b.send(t, s, 3+b.count(t, "replay_chunks")); err != nil || r != first {
			t.Errorf("%+v, %v", r, err)
		}
	}
	b.deleteMoved(t, folder, bucket)
	b.sweep(t)
}

// deleteMoved deletes all five chunks at a server that has copies of three.
func (b *bench) deleteMoved(t *testing.T, folder, bucket *another) {
	t.Helper()
	if err := folder.Delete(t.Context(), b.session()); err != nil {
		t.Fatal(err)
	}
	if n, err := folder.Sweep(t.Context()); n != 0 || err != nil || b.count(t, "replay_blobs") != 5 || len(filesIn(t, bucket.dir)) != 5 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := bucket.Sweep(t.Context()); n != 5 || err != nil || len(filesIn(t, bucket.dir)) > 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// testKilledWhileMoved: who is killed between noting the place and marking it goes
// on; of two that start at once with copies one has it.
func testKilledWhileMoved(t *testing.T, b *bench) {
	b.unmark(t)
	from, to, late := b.another(t, 1, t.TempDir()), b.another(t, 200, b.dir), b.another(t, 3, t.TempDir())
	if r, err := b.send(t, from.Service, 0); err != nil || r != first {
		t.Fatalf("%+v, %v", r, err)
	}
	copyPlace(t, from.dir, to.dir)
	copyPlace(t, from.dir, late.dir)
	for range 2 {
		_, _, err := replay.Settle(t.Context(), replay.PlaceParams{Store: b.params.Store, Blobs: noBlobs{b.params.Blobs}, Place: [16]byte{200}})
		if place, _, again := b.params.Store.FindPlace(t.Context()); err == nil || again != nil || place.ID[0] != 200 || place.From[0] != 1 {
			t.Errorf("%v, %v, %+v", err, again, place)
		}
	}
	if a := to.verify(t); a.Chunks != 1 || len(a.Differences) > 0 {
		t.Errorf("%+v", a)
	}
	if !to.settle(t) {
		t.Error("it does not start any more")
	}
	b.wantElsewhere(t, from)
	b.wantElsewhere(t, late)
	if got := b.read(t, b.project(), "s", 0); got != events("0") {
		t.Error(got)
	}
	b.sweep(t)
}

// testAFolderAfterABucket: nobody takes a folder for the bucket that the blobs are
// in, until they were copied there.
func testAFolderAfterABucket(t *testing.T, b *bench) {
	bucket := b.another(t, 200, b.dir)
	for n := range 2 {
		if r, err := b.send(t, bucket.Service, n); err != nil || r != first {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	one, two := b.another(t, 1, t.TempDir()), b.another(t, 2, t.TempDir())
	for _, s := range []*another{one, two} {
		_, err := s.Open(t.Context(), b.project(), "s", 0)
		mustFail(t, err, api.CodeConflict)
		b.wantElsewhere(t, s)
	}
	copyPlace(t, bucket.dir, two.dir)
	if !two.settle(t) {
		t.Fatal("it does not start where all blobs are")
	}
	b.wantElsewhere(t, one)
	b.wantElsewhere(t, bucket)
	if err := two.Delete(t.Context(), b.session()); err != nil {
		t.Fatal(err)
	}
	if files := filesIn(t, two.dir); len(files) > 0 || b.count(t, "replay_blobs") != 0 {
		t.Errorf("%v", files)
	}
	if r, err := b.send(t, two.Service, 2); err != nil || r != first || len(filesIn(t, two.dir)) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// testWhoseFolder: of servers that begin at once one has the place, and another
// place that is only called alike is not taken for it.
func testWhoseFolder(t *testing.T, b *bench) {
	b.unmark(t)
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
	if taken.Load() != 2 || holders != 1 || b.count(t, "replay_place") != 1 {
		t.Errorf("%d were taken, %d have files", taken.Load(), holders)
	}
	place, found, err := b.params.Store.FindPlace(t.Context())
	if err != nil || !found || place.From != place.ID {
		t.Fatal(place, err)
	}
	b.wantElsewhere(t, b.another(t, place.ID[0], t.TempDir()))
}

// testAPlaceThatCannotBeTaken: an answer that was not heard is asked for again,
// and while there is none nothing is taken.
func testAPlaceThatCannotBeTaken(t *testing.T, b *bench) {
	b.unmark(t)
	a := b.another(t, 200, b.dir)
	fails := func(at int64, err error) func(int64) error {
		return func(take int64) error {
			if take == at {
				return err
			}
			return nil
		}
	}
	a.store.before = fails(1, errors.New("no such table"))
	a.store.after = fails(2, fault.New(api.CodeUnavailable, "not confirmed").With("applied", "unknown"))
	_, err := b.send(t, a.Service, 9)
	mustFail(t, err, api.CodeInternal)
	if files := filesIn(t, a.dir); len(files) > 0 || b.count(t, "replay_blobs") != 0 {
		t.Errorf("%v", files)
	}
	for n, want := range []replay.Receipt{first, duplicate} {
		if r, err := b.send(t, a.Service, 9); err != nil || r != want || a.store.takes.Load() != 3 {
			t.Errorf("%d: %+v, %v, asked %d times", n, r, err, a.store.takes.Load())
		}
	}
	b.sweep(t)
}
