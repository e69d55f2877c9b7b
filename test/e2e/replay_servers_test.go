package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// blobsOf counts the files in a server's folder of recordings.
func blobsOf(t *testing.T, s *apptest.Site) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Dir, "replays"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "place" {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReplaysInFoldersOfTwoServers: of two servers on one database that have no
// bucket the first one to get a chunk keeps the recordings. The other refuses new
// ones, says where the others are, has the first one delete what was deleted, and
// does not start again before there is a bucket.
func TestReplaysInFoldersOfTwoServers(t *testing.T) {
	t.Parallel()
	site := apptest.New(t, "--database", pgtest.New(t))
	second := beside(t, site)
	a, b := site.MustServe(), second.MustServe()
	atA, atB := caller{a, a.Setup.BrowserToken}, caller{b, b.Setup.BrowserToken}
	record(t, atA, chunk("s", 0, page("/0")), "first")
	record(t, atA, chunk("t", 0, page("/0")), "first")

	refused := atB.refused(t, "internal", "POST", "/v1/replay", chunk("s", 1, page("/1")))
	if !strings.Contains(refused.raw, "replay.blobs") || !strings.Contains(refused.raw, "nothing was accepted") {
		t.Errorf("%s", refused.raw)
	}
	record(t, atB, chunk("s", 0, page("/0")), "duplicate")
	if s := owner(b).refused(t, "conflict", "GET", replayOf(b, "s")+"/chunks/0", ""); s.status != 409 || strings.Contains(s.raw, "damaged") {
		t.Errorf("%s", s.raw)
	}
	if r := second.Verify(); r.OK || len(r.Differences) != 1 || !strings.Contains(r.Differences[0], "another place") {
		t.Errorf("%+v", r)
	}
	if r := site.Verify(); !r.OK || r.ReplayChunks != 2 {
		t.Errorf("%+v", r)
	}
	record(t, atA, chunk("s", 1, page("/1")), "first") // it was not taken there

	owner(b).must(t, 204, "DELETE", replayOf(b, "s"), "")
	owner(a).refused(t, "not_found", "GET", replayOf(a, "s"), "")
	if ofA, ofB := blobsOf(t, site), blobsOf(t, second); ofA != 3 || ofB != 0 {
		t.Errorf("%d and %d blobs", ofA, ofB)
	}
	owner(a).must(t, 204, "DELETE", replayOf(a, "t"), "") // which deletes what is to be deleted, like its sweep
	if n := blobsOf(t, site); n != 0 {
		t.Errorf("%d blobs are left", n)
	}

	b.MustStop()
	second.MustRefuse("replay.blobs")
	if r := second.Verify(); r.OK || len(r.Differences) != 1 {
		t.Errorf("%+v", r)
	}
	theyMoveToABucket(t, site, second, a)
}

// theyMoveToABucket: who names a bucket does not start before all recordings are
// there. Then the server that goes on with its folder takes none any more, and
// starts only with the bucket, and without what is left in the folder.
func theyMoveToABucket(t *testing.T, site, second *apptest.Site, a *apptest.Running) {
	t.Helper()
	record(t, caller{a, a.Setup.BrowserToken}, chunk("u", 0, page("/0")), "first")
	objects := newBucket(t)
	flags := slices.Concat(site.Flags, objects.flags())
	second.Flags = flags
	second.MustRefuse("not in the bucket replays")
	objects.fill(t, "/replays/x", filepath.Join(site.Dir, "replays"))
	b := second.MustServe()
	record(t, caller{b, b.Setup.BrowserToken}, chunk("u", 1, page("/1")), "first")
	caller{a, a.Setup.BrowserToken}.refused(t, "internal", "POST", "/v1/replay", chunk("u", 2, page("/2")))
	if n := blobsOf(t, site); n != 1 {
		t.Errorf("%d blobs", n)
	}
	a.MustStop()
	site.MustRefuse("not in the folder replays")
	site.Flags = flags
	site.MustRefuse("still holds some that nothing deletes")
	if err := os.RemoveAll(filepath.Join(site.Dir, "replays")); err != nil {
		t.Fatal(err)
	}
	a = site.MustServe()
	for n := range 2 {
		if got := events(t, a, "u", n); got != page(fmt.Sprint("/", n)) {
			t.Error(got)
		}
	}
	owner(a).must(t, 204, "DELETE", replayOf(a, "u"), "")
	// While the sweep of the start is under way, a deletion leaves its blobs to the
	// next one.
	again := 0
	eventually(t, func() bool {
		again++
		session := fmt.Sprint("again", again)
		record(t, caller{a, a.Setup.BrowserToken}, chunk(session, 0, page("/")), "first")
		owner(a).must(t, 204, "DELETE", replayOf(a, session), "")
		objects.mu.Lock()
		defer objects.mu.Unlock()
		return len(objects.objects) == 1 // which says whose they are
	})
}
