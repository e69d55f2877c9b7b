package e2e_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// blobsOf counts the files in a server's folder of recordings.
func blobsOf(t *testing.T, s *apptest.Site) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Dir, "replays"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
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
	second := apptest.Bare(t)
	second.Dir, second.Setup, second.Flags = site.Copy(), site.Setup, site.Flags
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
	if r := second.Verify(); r.OK || len(r.Differences) != 1 || !strings.Contains(r.Differences[0], "another server") {
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
	second.Flags = append(second.Flags[:2:2], newBucket(t).flags()...)
	record(t, caller{second.MustServe(), second.Setup.BrowserToken}, chunk("u", 0, page("/0")), "first")
}
