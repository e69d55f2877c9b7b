package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// A database that is older than the folder beside it would do again what was done
// by a key since: nothing is opened or copied with it. The folder's own is fine
// afterwards, whether the copy was made by a backup or by hand.
func TestAnEarlierDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	r.TrackNew(1)
	fromBackup, _ := backup(t, site)
	r.MustStop()
	byHand := site.Copy()
	site.MustServe().MustStop()
	latest := site.Copy()
	for name, older := range map[string]string{"a backup's": filepath.Join(fromBackup, "data"), "one by hand": byHand} {
		site.Replace("actionpulse.db", older)
		site.MustRefuse("the accounts are older than this folder")
		refuseBackup(t, site.Config().Folder, "the accounts are older than this folder")
		if _, err := os.Stat(filepath.Join(older, "GENERATION")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		site.Replace("GENERATION", older) // together they are the folder that they were
		site.MustServe().MustStop()
		site.Replace("actionpulse.db", latest)
		site.Replace("GENERATION", latest)
	}
	write(t, filepath.Join(site.Dir, "GENERATION"), []byte("0"))
	site.MustRefuse("GENERATION is malformed")
	remove(t, filepath.Join(site.Dir, "GENERATION")) // as an operator who knows
	site.MustServe().MustStop()
}

// copiesAreToldApart: a folder is neither served nor copied with the restored
// copy of its database, whether that was served or not.
func copiesAreToldApart(t *testing.T, site *apptest.Site, restored config.DatabaseURL) {
	t.Helper()
	wrong := site.Config().Folder
	wrong.Database = restored
	refuseBackup(t, wrong, "or a copy that was served elsewhere: say the same --database as the server")
	r := site.MustServe()
	refuseBackup(t, wrong, "or a copy that was served elsewhere: say the same --database as the server")
	r.MustStop()
	apptest.At(t, site.Dir, "--database", string(restored)).MustRefuse("or a copy that was served elsewhere")
}

// recordingsAreAtAnother: a stopped folder of a server that does not keep the
// recordings is copied, and what is copied of it says so.
func recordingsAreAtAnother(t *testing.T, joined *apptest.Site) {
	t.Helper()
	dir, report := backup(t, joined)
	if report.Online || report.Manifest.Replays != "elsewhere" || len(copies(report.Manifest)) != 0 || report.LostReplays != 0 {
		t.Errorf("got %+v", report)
	}
	restored := apptest.At(t, filepath.Join(t.TempDir(), "restored"), "--database", pgtest.New(t))
	r, err := app.Restore(t.Context(), app.RestoreParams{From: dir, Data: restored.Dir, Database: restored.Config().Database, Log: apptest.Discard})
	if err != nil || !r.ReplaysUnseen || !r.Verify.OK {
		t.Errorf("%+v %v", r, err)
	}
	restored.MustRefuse("replay.blobs")
}

// serversJoin: a folder that is made for a database that is there serves its
// accounts with events of its own, and is made for no other.
func serversJoin(t *testing.T, site *apptest.Site) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(site.Dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	joined := apptest.At(t, filepath.Join(t.TempDir(), "joined"), "--database", string(site.Config().Database))
	joined.Setup = site.Setup
	p := app.InitParams{Data: joined.Dir, Database: site.Config().Database, SecretKey: config.SecretKey(key), Log: apptest.Discard}
	if err := app.Join(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, app.Join(t.Context(), p), "is initialised already")
	joined.MustRefuse("replay.blobs") // there are recordings in the folder of the first
	recordingsAreAtAnother(t, joined)
	replays := filepath.Join(site.Dir, "replays")
	bucket := bucketOf(t, blobsBelow(t, replays))
	if err := os.RemoveAll(replays); err != nil {
		t.Fatal(err)
	}
	joined.Flags, site.Flags = append(joined.Flags, bucket...), append(site.Flags, bucket...)
	one, two := site.MustServe(), joined.MustServe()
	for _, r := range []*apptest.Running{one, two} {
		if status, answer := r.Post("/v1/track", r.Setup.ServerKey, `{"events":[{"event":"joined","anon_id":"a"}]}`); status != 202 {
			t.Fatalf("%d %v", status, answer)
		}
	}
	if a, b := events(t, one, "joined"), events(t, two, "joined"); a != 1 || b != 1 {
		t.Errorf("%v and %v events, want one at each server", a, b)
	}
	two.MustStop()
	one.MustStop()
	joined.MustServe().MustStop() // also when others have begun generations since
}
