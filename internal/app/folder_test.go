package app_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
)

func TestInitRefusesAFolderThatIsNotFree(t *testing.T) {
	s := newSite(t)
	again := func(dir string) error {
		_, err := app.Init(t.Context(), app.InitParams{
			Data: dir, Log: discard, Setup: account.SetupParams{Organization: "o", Project: "p", Email: "o@localhost"},
		})
		return err
	}
	if err := again(s.dir); !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), "initialised already") {
		t.Errorf("got %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again(other); !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderIsPrivate(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{".", "intake", "events"} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	for _, name := range []string{"FORMAT", "ACKNOWLEDGED", "actionpulse.db"} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestServeRefusesWhatIsNoDataFolder(t *testing.T) {
	s := &site{t: t, dir: t.TempDir()}
	s.mustRefuse("actionpulse init")
}

func TestServeRefusesAFolderOfANewerVersion(t *testing.T) {
	s := newSite(t)
	content, err := os.ReadFile(filepath.Join(s.dir, "FORMAT"))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(content), `"version": 1`, `"version": 2`, 1)
	if err := os.WriteFile(filepath.Join(s.dir, "FORMAT"), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustRefuse("newer version")
}

func TestASecondProcessIsRefusedAndVerifyAsksTheFirst(t *testing.T) {
	s := newSite(t)
	r := s.mustServe()
	r.trackNew(3)
	s.mustRefuse("another process")
	if report := s.verify(); !report.OK || report.LastPosition != 3 {
		t.Errorf("got %+v", report)
	}
	if _, err := app.Repair(t.Context(), app.RepairParams{Config: s.config().Folder, Log: discard}); !errors.Is(err, app.ErrRefused) {
		t.Errorf("repair beside a server: %v", err)
	}
	r.mustStop()
	if _, err := os.Stat(filepath.Join(s.dir, "control.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("control.json is left behind: %v", err)
	}
	if report := s.verify(); !report.OK || report.Backlog != 0 || report.Rows != 3 {
		t.Errorf("got %+v", report)
	}
}

// Folders put together from parts of different age must be refused: the one
// would say "known" of what the other does not hold.
func TestPartsOfDifferentAgeAreRefused(t *testing.T) {
	s := newSite(t)
	r := s.mustServe()
	ids := r.trackNew(10)
	r.mustStop()
	old := s.copyOf()
	r = s.mustServe()
	newIDs := r.trackNew(10)
	r.mustStop()
	now := s.copyOf()
	restore := func() {
		for _, part := range []string{"intake", "events", "ACKNOWLEDGED", "actionpulse.db"} {
			s.replace(part, now)
		}
	}

	s.replace("intake", old)
	s.mustRefuse("actionpulse repair")
	s.replace("ACKNOWLEDGED", old) // as if both had been restored
	s.mustRefuse("actionpulse repair")
	if report := s.repair(false); !report.Verify.OK || report.Verify.Claims != 20 {
		t.Fatalf("got %+v", report)
	}
	r = s.mustServe()
	if a := r.track(append(ids, newIDs...)...); a["duplicates"] != 20.0 {
		t.Fatalf("after the repair repeats are new: %v", a)
	}
	r.mustStop()

	restore()
	s.replace("events", old)
	s.mustRefuse("older than intake")
	if _, err := app.Repair(t.Context(), app.RepairParams{Config: s.config().Folder, Log: discard}); !errors.Is(err, app.ErrRefused) {
		t.Fatalf("repair gave events up without being told to: %v", err)
	}
	if report := s.repair(true); !report.Verify.OK || report.Verify.Rows != 10 {
		t.Fatalf("got %+v", report)
	}

	restore()
	for _, part := range []string{"intake", "events", "ACKNOWLEDGED"} {
		s.replace(part, old) // all of it older: a backup
	}
	if report := s.verify(); !report.OK || report.Rows != 10 {
		t.Fatalf("got %+v", report)
	}
}

func TestPartsOfAnotherFolderAreRefused(t *testing.T) {
	s, other := newSite(t), newSite(t)
	kept := s.copyOf()
	for part, want := range map[string]string{"intake": "actionpulse repair", "events": "belongs to another", "actionpulse.db": "belong to another"} {
		s.replace(part, other.dir)
		s.mustRefuse(want)
		s.replace(part, kept)
	}
	r := s.mustServe()
	r.trackNew(1)
}

func TestMissingPartsAreRefusedAndIntakeIsRebuilt(t *testing.T) {
	s := newSite(t)
	r := s.mustServe()
	ids := r.trackNew(25)
	r.mustStop()
	kept := s.copyOf()

	for _, part := range []string{"events", "actionpulse.db"} {
		if err := os.RemoveAll(filepath.Join(s.dir, part)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.serve(); !errors.Is(err, app.ErrRefused) {
			t.Fatalf("without %s: %v", part, err)
		}
		s.replace(part, kept)
	}
	if err := os.Remove(filepath.Join(s.dir, "ACKNOWLEDGED")); err != nil {
		t.Fatal(err)
	}
	s.mustRefuse("actionpulse repair")
	if err := os.RemoveAll(filepath.Join(s.dir, "intake")); err != nil {
		t.Fatal(err)
	}
	s.mustRefuse("actionpulse repair")

	report := s.repair(false)
	if !report.Verify.OK || report.Verify.Claims != 25 || report.Verify.Rows != 25 {
		t.Fatalf("got %+v", report)
	}
	r = s.mustServe()
	if a := r.track(ids...); a["duplicates"] != 25.0 {
		t.Fatalf("after the repair repeats are new: %v", a)
	}
	r.trackNew(1)
	r.mustStop()
	if report := s.verify(); !report.OK || report.Rows != 26 {
		t.Fatalf("got %+v", report)
	}
}

func TestADamagedIntakeStoreIsMovedAsideNotDeleted(t *testing.T) {
	s := newSite(t)
	r := s.mustServe()
	ids := r.trackNew(5)
	r.mustStop()
	tables, err := filepath.Glob(filepath.Join(s.dir, "intake", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, name := range tables {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[10] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.mustRefuse("actionpulse repair")
	if report := s.repair(false); !report.Verify.OK {
		t.Fatalf("got %+v", report)
	}
	if aside, err := filepath.Glob(filepath.Join(s.dir, "intake.damaged-*")); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v %v", aside, err)
	}
	if a := s.mustServe().track(ids...); a["duplicates"] != 5.0 {
		t.Fatalf("got %v", a)
	}
}

// A window that grows must count what had expired under the old one.
func TestAWindowThatGrows(t *testing.T) {
	s := newSite(t, "--intake.window", "1s")
	r := s.mustServe()
	ids := r.trackNew(4)
	r.mustStop()
	s.flags = []string{"--intake.window", "2s"}
	r = s.mustServe()
	r.trackNew(1)
	r.mustStop()
	s.flags = nil // 48 h
	r = s.mustServe()
	if a := r.track(ids...); a["duplicates"] != 4.0 {
		t.Fatalf("got %v", a)
	}
	r.mustStop()
	if report := s.verify(); !report.OK {
		t.Fatalf("got %+v", report)
	}
}

func TestAFullDiskRefusesIntakeAndNothingElse(t *testing.T) {
	s := newSite(t, "--storage.min_free_percent", "100")
	r := s.mustServe()
	status, answer := r.post("/v1/track", s.setup.ServerKey, `{"events":[{"event":"e","user_id":"u"}]}`)
	if e, ok := answer["error"].(map[string]any); status != http.StatusInternalServerError || !ok || e["code"] != "internal" {
		t.Fatalf("%d %v", status, answer)
	}
	if status, answer := r.post("/api/v1/projects/"+s.setup.Project.ID+"/query", s.setup.AccessToken, `{"type":"events"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	r.mustStop()
	if report := s.verify(); report.LastPosition != 0 {
		t.Fatalf("something was accepted: %+v", report)
	}
}
