package backup_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func client(r *apptest.Running) *conversation.Client {
	s := r.Setup
	return &conversation.Client{URL: r.URL, HTTP: http.DefaultClient, Credentials: conversation.Credentials{
		ProjectID: s.Project.ID, AccessToken: s.AccessToken, BrowserToken: s.BrowserToken, ServerKey: s.ServerKey,
		LegacyKey: s.LegacyKey, ProjectKey: s.ProjectKey, CIToken: s.CIToken,
	}}
}

// backup copies a site into a new folder.
func backup(t *testing.T, s *apptest.Site) (dir string, r app.BackupReport) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "backup")
	r, err := app.Backup(t.Context(), app.BackupParams{Config: s.Config().Folder, Out: dir, Log: apptest.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

// restore makes the folder of another site of a backup of s.
func restore(t *testing.T, s *apptest.Site, from string, to *apptest.Site) {
	t.Helper()
	to.Setup = s.Setup
	r, err := app.Restore(t.Context(), app.RestoreParams{
		From: from, Data: to.Dir, Database: to.Config().Database, Log: apptest.Discard,
	})
	if err != nil || !r.Verify.OK {
		t.Fatalf("%+v %v", r.Verify, err)
	}
}

// restoreNew makes a new site of a backup of s.
func restoreNew(t *testing.T, s *apptest.Site, from string) *apptest.Site {
	t.Helper()
	to := apptest.At(t, filepath.Join(t.TempDir(), "restored"))
	restore(t, s, from, to)
	return to
}

// again demands that every request is answered as a repeat.
func again(t *testing.T, r *apptest.Running, said []conversation.Exchange) {
	t.Helper()
	faults, err := client(r).Again(t.Context(), said)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults[:min(len(faults), 5)] {
		t.Error(fault)
	}
}

// A copy made under load knows every request that was answered before it was
// begun, and those that came after it was made are new to it.
func TestARestoredFolderKnowsEveryRequest(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		site := apptest.New(t)
		_, said := knowsEveryRequest(t, site, site.MustServe(), apptest.At(t, filepath.Join(t.TempDir(), "restored")))
		aStoppedFolderIsCopied(t, site, said)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url, other := pgtest.New(t), pgtest.New(t)
		site := apptest.New(t, "--database", url)
		write(t, filepath.Join(site.Dir, "config.json"), fmt.Appendf(nil, `{"database":%q,"query":{"time_budget":"3s"}}`, url))
		r := site.MustServe()
		databaseMustBeNamed(t, site)
		restored := apptest.At(t, filepath.Join(t.TempDir(), "restored"), "--database", other)
		dir, _ := knowsEveryRequest(t, site, r, restored)
		databaseMustBeEmpty(t, dir, restored, url)
		copiesAreToldApart(t, site, config.DatabaseURL(other))
		serversJoin(t, site)
	})
}

// knowsEveryRequest backs a site up under load, restores it, makes every request
// again, and returns the backup and all that the site has answered.
func knowsEveryRequest(t *testing.T, site *apptest.Site, r *apptest.Running, restored *apptest.Site) (dir string, answered []conversation.Exchange) {
	t.Helper()
	said, err := conversation.Talk(t.Context(), client(r), time.Now(), 7)
	if err != nil {
		t.Fatal(err)
	}
	l := startLoad(t.Context(), client(r))
	l.atLeast(t, 50)
	before := l.soFar()
	dir, report := backup(t, site)
	during := len(l.soFar())
	l.atLeast(t, during+50)
	all := l.stop(t)
	begun := min(during+len(writers), len(all)) // some may have been under way when the backup was made
	if !report.Online || during == len(before) || report.LostReplays != 0 {
		t.Fatalf("%d requests were answered during the backup: %+v", during-len(before), report)
	}
	r.MustStop()

	restore(t, site, dir, restored)
	r = restored.MustServe()
	least, most := identified(append(said, before...)), identified(append(said, all[:begun]...))
	if n := events(t, r, "identify"); n < least || n > most {
		t.Errorf("%v events of identify are in the copy, want %v to %v", n, least, most)
	}
	again(t, r, append(said, before...))
	unknown(t, r, all[begun:])
	r.MustStop()
	if report := restored.Verify(); !report.OK {
		t.Errorf("%+v", report)
	}
	return dir, append(said, all...)
}

// events returns how many events of a name there are, once everything is
// stored.
func events(t *testing.T, r *apptest.Running, name string) float64 {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); r.Verify().Backlog > 0; {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("events are not stored")
		}
	}
	status, answer := r.Post("/api/v1/projects/"+r.Setup.Project.ID+"/query", r.Setup.AccessToken, fmt.Sprintf(
		`{"type":"breakdown","by":"event","measure":"count","from":"2020-01-01T00:00:00Z","to":"2100-01-01T00:00:00Z","where":[],"event":%q}`, name))
	items, _ := answer["items"].([]any)
	if status != http.StatusOK || len(items) != 1 {
		t.Fatalf("%d %v", status, answer)
	}
	return items[0].(map[string]any)["value"].(float64)
}

// unknown demands that requests are new to a server.
func unknown(t *testing.T, r *apptest.Running, said []conversation.Exchange) {
	t.Helper()
	for _, e := range said {
		now, replayed, err := client(r).Send(t.Context(), e)
		if err != nil || replayed || strings.Contains(now.Answer, `"duplicates":1`) || strings.Contains(now.Answer, `"duplicate":true`) || now.Status != e.Status {
			t.Fatalf("%s is not new: %d %s %v", e, now.Status, now.Answer, err)
		}
	}
}

// aStoppedFolderIsCopied: a folder that nobody serves is copied as it is, and
// goes on as if it had not been.
func aStoppedFolderIsCopied(t *testing.T, site *apptest.Site, said []conversation.Exchange) {
	t.Helper()
	dir, report := backup(t, site)
	if report.Online {
		t.Error("nobody was there to ask")
	}
	again(t, restoreNew(t, site, dir).MustServe(), said)
	again(t, site.MustServe(), said)
}

// restoreInto restores into a folder and returns the error.
func restoreInto(t *testing.T, from, data string, database config.DatabaseURL) error {
	t.Helper()
	_, err := app.Restore(t.Context(), app.RestoreParams{From: from, Data: data, Database: database, Log: apptest.Discard})
	return err
}
