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
	"github.com/actionpulse/actionpulse/internal/apptest"
)

func TestInitRefusesAFolderThatIsNotFree(t *testing.T) {
	s := apptest.New(t)
	again := func(dir string) error {
		_, err := app.Init(t.Context(), app.InitParams{
			Data: dir, Log: apptest.Discard, Setup: account.SetupParams{Organization: "o", Project: "p", Email: "o@localhost"},
		})
		return err
	}
	if err := again(s.Dir); !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), "initialised already") {
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
	s := apptest.New(t)
	for _, name := range []string{".", "intake", "events"} {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	for _, name := range []string{"FORMAT", "ACKNOWLEDGED", "actionpulse.db", "secret.key"} {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestServeRefusesWhatIsNoDataFolder(t *testing.T) {
	s := apptest.Bare(t)
	s.MustRefuse("actionpulse init")
}

func TestServeRefusesAFolderOfANewerVersion(t *testing.T) {
	s := apptest.New(t)
	content, err := os.ReadFile(filepath.Join(s.Dir, "FORMAT"))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(content), `"version": 2`, `"version": 3`, 1)
	if err := os.WriteFile(filepath.Join(s.Dir, "FORMAT"), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	s.MustRefuse("newer version")
}

func TestASecondProcessIsRefusedAndVerifyAsksTheFirst(t *testing.T) {
	s := apptest.New(t)
	r := s.MustServe()
	r.TrackNew(3)
	s.MustRefuse("another process")
	if report := s.Verify(); !report.OK || report.LastPosition != 3 {
		t.Errorf("got %+v", report)
	}
	if _, err := app.Repair(t.Context(), app.RepairParams{Config: s.Config().Folder, Log: apptest.Discard}); !errors.Is(err, app.ErrRefused) {
		t.Errorf("repair beside a server: %v", err)
	}
	r.MustStop()
	if _, err := os.Stat(filepath.Join(s.Dir, "control.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("control.json is left behind: %v", err)
	}
	if report := s.Verify(); !report.OK || report.Backlog != 0 || report.Rows != 3 {
		t.Errorf("got %+v", report)
	}
}

// Folders put together from parts of different age must be refused: the one
// would say "known" of what the other does not hold.
func TestPartsOfDifferentAgeAreRefused(t *testing.T) {
	s := apptest.New(t)
	r := s.MustServe()
	ids := r.TrackNew(10)
	r.MustStop()
	old := s.Copy()
	r = s.MustServe()
	newIDs := r.TrackNew(10)
	r.MustStop()
	now := s.Copy()
	restore := func() {
		for _, part := range []string{"intake", "events", "ACKNOWLEDGED", "actionpulse.db", "GENERATION"} {
			s.Replace(part, now)
		}
	}

	s.Replace("intake", old)
	s.MustRefuse("actionpulse repair")
	s.Replace("ACKNOWLEDGED", old) // as if both had been restored
	s.MustRefuse("actionpulse repair")
	if report := s.Repair(false); !report.Verify.OK || report.Verify.Claims != 20 {
		t.Fatalf("got %+v", report)
	}
	r = s.MustServe()
	if a := r.Track(append(ids, newIDs...)...); a["duplicates"] != 20.0 {
		t.Fatalf("after the repair repeats are new: %v", a)
	}
	r.MustStop()

	restore()
	s.Replace("events", old)
	s.MustRefuse("older than intake")
	if _, err := app.Repair(t.Context(), app.RepairParams{Config: s.Config().Folder, Log: apptest.Discard}); !errors.Is(err, app.ErrRefused) {
		t.Fatalf("repair gave events up without being told to: %v", err)
	}
	if report := s.Repair(true); !report.Verify.OK || report.Verify.Rows != 10 {
		t.Fatalf("got %+v", report)
	}

	restore()
	for _, part := range []string{"intake", "events", "ACKNOWLEDGED"} {
		s.Replace(part, old) // all of it older: a backup
	}
	if report := s.Verify(); !report.OK || report.Rows != 10 {
		t.Fatalf("got %+v", report)
	}
}

func TestPartsOfAnotherFolderAreRefused(t *testing.T) {
	s, other := apptest.New(t), apptest.NewOwn(t)
	kept := s.Copy()
	for part, want := range map[string]string{"intake": "actionpulse repair", "events": "belongs to another", "actionpulse.db": "belong to another"} {
		s.Replace(part, other.Dir)
		s.MustRefuse(want)
		s.Replace(part, kept)
	}
	r := s.MustServe()
	r.TrackNew(1)
}

func TestMissingPartsAreRefusedAndIntakeIsRebuilt(t *testing.T) {
	s := apptest.New(t)
	r := s.MustServe()
	ids := r.TrackNew(25)
	r.MustStop()
	kept := s.Copy()

	for _, part := range []string{"events", "actionpulse.db"} {
		if err := os.RemoveAll(filepath.Join(s.Dir, part)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Serve(); !errors.Is(err, app.ErrRefused) {
			t.Fatalf("without %s: %v", part, err)
		}
		s.Replace(part, kept)
	}
	if err := os.Remove(filepath.Join(s.Dir, "ACKNOWLEDGED")); err != nil {
		t.Fatal(err)
	}
	s.MustRefuse("actionpulse repair")
	if err := os.RemoveAll(filepath.Join(s.Dir, "intake")); err != nil {
		t.Fatal(err)
	}
	s.MustRefuse("actionpulse repair")

	report := s.Repair(false)
	if !report.Verify.OK || report.Verify.Claims != 25 || report.Verify.Rows != 25 {
		t.Fatalf("got %+v", report)
	}
	r = s.MustServe()
	if a := r.Track(ids...); a["duplicates"] != 25.0 {
		t.Fatalf("after the repair repeats are new: %v", a)
	}
	r.TrackNew(1)
	r.MustStop()
	if report := s.Verify(); !report.OK || report.Rows != 26 {
		t.Fatalf("got %+v", report)
	}
}

func TestADamagedIntakeStoreIsMovedAsideNotDeleted(t *testing.T) {
	s := apptest.New(t)
	r := s.MustServe()
	ids := r.TrackNew(5)
	r.MustStop()
	tables, err := filepath.Glob(filepath.Join(s.Dir, "intake", "*.sst"))
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
	s.MustRefuse("actionpulse repair")
	if report := s.Repair(false); !report.Verify.OK {
		t.Fatalf("got %+v", report)
	}
	if aside, err := filepath.Glob(filepath.Join(s.Dir, "intake.damaged-*")); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v %v", aside, err)
	}
	if a := s.MustServe().Track(ids...); a["duplicates"] != 5.0 {
		t.Fatalf("got %v", a)
	}
}

// A window that grows must count what had expired under the old one.
func TestAWindowThatGrows(t *testing.T) {
	s := apptest.New(t, "--intake.window", "1s")
	r := s.MustServe()
	ids := r.TrackNew(4)
	r.MustStop()
	s.Flags = []string{"--intake.window", "2s"}
	r = s.MustServe()
	r.TrackNew(1)
	r.MustStop()
	s.Flags = nil // 48 h
	r = s.MustServe()
	if a := r.Track(ids...); a["duplicates"] != 4.0 {
		t.Fatalf("got %v", a)
	}
	r.MustStop()
	if report := s.Verify(); !report.OK {
		t.Fatalf("got %+v", report)
	}
}

func TestAFullDiskRefusesIntakeAndNothingElse(t *testing.T) {
	s := apptest.New(t, "--storage.min_free_bytes", "900TB")
	r := s.MustServe()
	status, answer := r.Post("/v1/track", s.Setup.ServerKey, `{"events":[{"event":"e","user_id":"u"}]}`)
	if e, ok := answer["error"].(map[string]any); status != http.StatusInternalServerError || !ok || e["code"] != "internal" {
		t.Fatalf("%d %v", status, answer)
	}
	if status, answer := r.Post("/api/v1/projects/"+s.Setup.Project.ID+"/query", s.Setup.AccessToken, `{"type":"events"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	r.MustStop()
	if report := s.Verify(); report.LastPosition != 0 {
		t.Fatalf("something was accepted: %+v", report)
	}
}
