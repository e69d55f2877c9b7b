package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

// Every path may be a symbolic link, as may be the parts of a folder: they are
// taken for what they lead to, also where that is not allowed.
func TestPathsThatAreLinks(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	ids := r.TrackNew(3)
	r.MustStop()
	dir := t.TempDir()
	link := func(to, name string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, part := range []string{"intake", "events"} {
		elsewhere, here := filepath.Join(dir, "the "+part), filepath.Join(site.Dir, part)
		if err := os.Rename(here, elsewhere); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, here); err != nil {
			t.Fatal(err)
		}
	}
	p := app.BackupParams{Config: site.Config().Folder, Log: apptest.Discard}
	p.Config.Data, p.Out = link(site.Dir, "data"), link(folder("2026-05-01"), "latest")
	if _, err := app.Backup(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	to := link(folder("new"), "restored")
	if err := restoreInto(t, p.Out, to, ""); err != nil {
		t.Fatal(err)
	}
	restored := apptest.At(t, to)
	restored.Setup = site.Setup
	if a := restored.MustServe().Track(ids...); a["duplicates"] != 3.0 {
		t.Errorf("got %v", a)
	}

	inData := link(site.Dir, "way in")
	for _, at := range []string{inData, filepath.Join(inData, "backup"), filepath.Join(inData, "replays", "deep", "backup")} {
		p.Out = at
		_, err := app.Backup(t.Context(), p)
		wantRefusal(t, err, "beside the data folder")
	}
	inBackup := filepath.Join(dir, "latest", "data", "more")
	p.Out = inBackup
	_, err := app.Backup(t.Context(), p)
	wantRefusal(t, err, "lies within the backup")
	wantRefusal(t, restoreInto(t, filepath.Join(dir, "latest"), inBackup, ""), "lies within the backup")
	if err := restoreInto(t, filepath.Join(dir, "latest"), filepath.Join(dir, "another"), ""); err != nil {
		t.Errorf("what was refused has damaged the backup: %v", err)
	}
}
