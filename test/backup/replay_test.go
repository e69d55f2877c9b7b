package backup_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	folder "github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/config"
)

// sendChunk sends a chunk of a session and says whether it is a duplicate.
func sendChunk(t *testing.T, r *apptest.Running, n int) bool {
	t.Helper()
	status, answer := r.Post("/v1/replay", r.Setup.ServerKey, fmt.Sprintf(
		`{"session_id":"s","chunk":%d,"user_id":"u","events":[{"type":4,"timestamp":1777000000000}]}`, n))
	if status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	return answer["duplicate"] == true
}

// blobsBelow returns the blobs of a folder by name.
func blobsBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	blobs := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			blobs[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return blobs
}

// copies returns the names of the blobs in a backup.
func copies(m *folder.Manifest) (names []string) {
	for _, f := range m.Files {
		if name, ok := strings.CutPrefix(f.Path, "data/replays/"); ok && name != "place" {
			names = append(names, name)
		}
	}
	return names
}

// The blobs that the copied rows name are copied, and no other: nobody would
// ever delete it. One that is lost is told, and keeps nobody from restoring the
// rest; and where the blobs are is said truly.
func TestBlobsAreCopiedByTheirRows(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	for n := range 2 {
		sendChunk(t, r, n)
	}
	replays := filepath.Join(site.Dir, "replays")
	blobs := blobsBelow(t, replays)
	stray := filepath.Join(replays, "p", "stray.zst")
	if err := os.MkdirAll(filepath.Dir(stray), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, stray, []byte("personal data"))
	_, online := backup(t, site)
	r.MustStop()
	dir, stopped := backup(t, site)
	for _, report := range []app.BackupReport{online, stopped} {
		names := copies(report.Manifest)
		if len(blobs) != 3 || len(names) != 2 || blobs[names[0]] == nil || blobs[names[1]] == nil || report.Manifest.Replays != "folder" || report.LostReplays != 0 {
			t.Errorf("copied %v of %d blobs: %+v", names, len(blobs), report)
		}
	}
	restored := restoreNew(t, site, dir)
	if got := blobsBelow(t, filepath.Join(restored.Dir, "replays")); len(got) != 3 || got["place"] == nil {
		t.Errorf("restored %d blobs", len(got))
	}
	_, err := app.Restore(t.Context(), app.RestoreParams{
		From: dir, Data: t.TempDir(), Replay: config.Replay{Blobs: "s3://replays"}, Log: apptest.Discard,
	})
	wantRefusal(t, err, "without --replay.blobs")

	remove(t, filepath.Join(replays, filepath.FromSlash(copies(stopped.Manifest)[0])))
	aBlobIsLost(t, site)
	remove(t, filepath.Join(replays, filepath.FromSlash(copies(stopped.Manifest)[1])))
	if _, report := backup(t, site); report.LostReplays != 2 || report.Manifest.Replays != "folder" {
		t.Errorf("got %+v", report)
	}
	if err := os.RemoveAll(replays); err != nil {
		t.Fatal(err)
	}
	blobsAreElsewhere(t, site)
	blobsAreInABucket(t, site, blobs)
}

// aBlobIsLost: the difference that verify finds was there before, so the folder
// is restored all the same, and a server starts on it.
func aBlobIsLost(t *testing.T, site *apptest.Site) {
	t.Helper()
	dir, report := backup(t, site)
	if report.LostReplays != 1 || report.Manifest.LostReplays != 1 || len(copies(report.Manifest)) != 1 {
		t.Errorf("got %+v", report)
	}
	restored := apptest.At(t, filepath.Join(t.TempDir(), "restored"))
	restored.Setup = site.Setup
	r, err := app.Restore(t.Context(), app.RestoreParams{From: dir, Data: restored.Dir, Log: apptest.Discard})
	if err != nil || r.Verify.OK || r.Verify.ReplayChunks != 2 || len(r.Verify.Differences) != 1 || !strings.Contains(r.Verify.Differences[0], `of the replay "s" in project `) {
		t.Errorf("%+v %v", r.Verify, err)
	}
	if _, err := os.Stat(filepath.Join(restored.Dir, "RESTORING")); !os.IsNotExist(err) {
		t.Errorf("the folder is still being restored: %v", err)
	}
	if running := restored.MustServe(); !sendChunk(t, running, 0) || !sendChunk(t, running, 1) || sendChunk(t, running, 2) {
		t.Error("the chunks that are lost or there are new, or a new one is not")
	}
}

// bucketOf is a bucket that holds blobs, as settings name it.
func bucketOf(t *testing.T, blobs map[string][]byte) (flags []string) {
	t.Helper()
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/replays/")
		w.Header().Set("ETag", `"x"`)
		if r.Method == http.MethodPut { // which place it is
			return
		}
		content, there := blobs[name]
		if !there && name != "" {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
			return
		}
		w.Header().Set("Last-Modified", "Fri, 01 May 2026 10:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content)
	}))
	t.Cleanup(bucket.Close)
	return []string{"--replay.blobs", "s3://replays?region=eu-1&endpoint=" + bucket.URL, "--replay.access_key", "id", "--replay.secret_key", "key"}
}

// blobsAreElsewhere: a folder that they are not in is copied without them, and
// says so; what is restored of it is not served without them.
func blobsAreElsewhere(t *testing.T, site *apptest.Site) {
	t.Helper()
	dir, report := backup(t, site)
	if report.Manifest.Replays != "elsewhere" || len(copies(report.Manifest)) != 0 || report.LostReplays != 0 {
		t.Errorf("got %+v", report)
	}
	restored := apptest.At(t, filepath.Join(t.TempDir(), "restored"))
	r, err := app.Restore(t.Context(), app.RestoreParams{From: dir, Data: restored.Dir, Log: apptest.Discard})
	if err != nil || !r.ReplaysUnseen || !r.Verify.OK || r.Verify.ReplayChunks != 0 {
		t.Errorf("%+v %v", r, err)
	}
	restored.MustRefuse("not in the folder replays")
}

// blobsAreInABucket: they are not copied, the manifest says so, and they are
// compared where the bucket is named.
func blobsAreInABucket(t *testing.T, site *apptest.Site, blobs map[string][]byte) {
	t.Helper()
	flags := bucketOf(t, blobs)
	named := apptest.At(t, site.Dir, flags...)
	r := named.MustServe()
	_, online := backup(t, site) // the server knows where they are
	r.MustStop()
	dir, stopped := backup(t, named)
	for _, report := range []app.BackupReport{online, stopped} {
		if report.Manifest.Replays != "bucket" || len(copies(report.Manifest)) != 0 || report.LostReplays != 0 {
			t.Errorf("got %+v", report)
		}
	}
	restoreFrom := func(c config.Replay) app.RestoreReport {
		r, err := app.Restore(t.Context(), app.RestoreParams{From: dir, Data: filepath.Join(t.TempDir(), "restored"), Replay: c, Log: apptest.Discard})
		if err != nil {
			t.Error(err)
		}
		return r
	}
	if r := restoreFrom(config.Replay{}); !r.ReplaysUnseen || !r.Verify.OK || r.Verify.ReplayChunks != 0 {
		t.Errorf("without a bucket: %+v", r)
	}
	if r := restoreFrom(named.Config().Replay); r.ReplaysUnseen || !r.Verify.OK || r.Verify.ReplayChunks != 2 {
		t.Errorf("with the bucket: %+v", r)
	}
	maps.DeleteFunc(blobs, func(name string, _ []byte) bool { return name != "place" })
	if r := restoreFrom(named.Config().Replay); r.ReplaysUnseen || r.Verify.OK || len(r.Verify.Differences) != 2 {
		t.Errorf("with an empty bucket: %+v", r)
	}
	clear(blobs)
	if r := restoreFrom(named.Config().Replay); r.ReplaysUnseen || r.Verify.OK || len(r.Verify.Differences) != 1 {
		t.Errorf("with another bucket: %+v", r)
	}
}
