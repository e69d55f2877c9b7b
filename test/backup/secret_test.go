package backup_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/config"
)

// A folder with secrets is not copied without the key that reads them, unless a
// setting gives it; then the manifest says that it is not in the backup, which is
// restored with it and not without.
func TestTheKeyOfSecretsIsNotForgotten(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	key, err := os.ReadFile(filepath.Join(site.Dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	without := apptest.At(t, site.Copy()) // nothing is encrypted yet
	remove(t, filepath.Join(without.Dir, "secret.key"))
	fine, _ := backup(t, without)
	restoreNew(t, site, fine)

	r := site.MustServe()
	path := "/api/v1/projects/" + site.Setup.Project.ID + "/model-providers/local"
	if status, answer := r.Call(http.MethodPut, path, site.Setup.AccessToken, `{"base_url":"https://example.com/v1","api_key":"sk"}`); status != http.StatusCreated {
		t.Fatalf("%d %v", status, answer)
	}
	dir, report := backup(t, site)
	if report.Manifest.SecretKey != "" {
		t.Errorf("%+v", report.Manifest)
	}
	restoreNew(t, site, dir)
	const other = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	wrong := site.Config().Folder
	wrong.SecretKey = other
	refuseBackup(t, wrong, "encrypted by another key")
	remove(t, filepath.Join(site.Dir, "secret.key"))
	refuseBackup(t, site.Config().Folder, "secret.key is missing")
	r.MustStop()
	refuseBackup(t, site.Config().Folder, "secret.key is missing")
	write(t, filepath.Join(site.Dir, "secret.key"), []byte(other))
	refuseBackup(t, site.Config().Folder, "encrypted by another key")
	remove(t, filepath.Join(site.Dir, "secret.key"))

	write(t, filepath.Join(site.Dir, "config.json"), fmt.Appendf(nil, `{"secret_key":%q}`, key[:len(key)-1]))
	inFolder, secretKey := keyIsASetting(t, site, config.SecretKey(key))
	if secretKey != "" || restoreInto(t, inFolder, filepath.Join(t.TempDir(), "data"), "") != nil {
		t.Errorf("the folder's own settings are in the backup: %q", secretKey)
	}
	remove(t, filepath.Join(site.Dir, "config.json"))
	elsewhere, secretKey := keyIsASetting(t, site, config.SecretKey(key))
	if secretKey != "settings" {
		t.Errorf("the manifest says %q of a key that is elsewhere", secretKey)
	}
	data := filepath.Join(t.TempDir(), "data")
	wantRefusal(t, restoreInto(t, elsewhere, data, ""), "secret.key is missing")
	apptest.At(t, data).MustRefuse("restored to its end")
	p := app.RestoreParams{From: elsewhere, Data: data, SecretKey: other, Log: apptest.Discard}
	_, err = app.Restore(t.Context(), p)
	wantRefusal(t, err, "encrypted by another key")
	p.SecretKey = config.SecretKey(key)
	if _, err := app.Restore(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// keyIsASetting backs a site up with a key that is given, and returns where the
// manifest says that it is.
func keyIsASetting(t *testing.T, site *apptest.Site, key config.SecretKey) (dir, secretKey string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "backup")
	given := site.Config().Folder
	given.SecretKey = key
	r, err := app.Backup(t.Context(), app.BackupParams{Config: given, Out: dir, Log: apptest.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return dir, r.Manifest.SecretKey
}
