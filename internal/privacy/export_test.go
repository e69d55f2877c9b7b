package privacy_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// files are the archives in the folder.
func (b *bench) files(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(b.dir, "*.jsonl*"))
	must(t, err)
	return list
}

// lines reads a finished export.
func (b *bench) lines(t testing.TB, jobID string) (lines []map[string]any) {
	t.Helper()
	file, err := b.service.Archive(t.Context(), b.by, b.at, jobID)
	must(t, err)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var line map[string]any
		must(t, json.Unmarshal(scanner.Bytes(), &line))
		lines = append(lines, line)
	}
	must(t, scanner.Err())
	must(t, file.Close())
	return lines
}

func TestExport(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.work(t)
		j := b.await(t, b.create(t, privacy.Export, "ada").ID)
		lines := b.lines(t, j.ID)
		var types []any
		for _, line := range lines {
			types = append(types, line["type"])
		}
		if !slices.Equal(types, []any{"export", "event", "customer", "end"}) || lines[0]["user_id"] != "ada" || lines[0]["as_of"] == nil {
			t.Errorf("%v", lines)
		}
		if end := lines[3]; end["unreadable"] != nil || lines[2]["note"] != spelt {
			t.Errorf("%v", lines)
		}
		content, err := os.ReadFile(b.files(t)[0])
		must(t, err)
		if !bytes.Contains(content, []byte(`"note":"<a href=\"x&y\">"`)) {
			t.Errorf("%s", content)
		}
		info, err := os.Stat(b.files(t)[0])
		must(t, err)
		if info.Mode().Perm() != 0o600 || info.Size() != j.ArchiveBytes || len(b.files(t)) != 1 {
			t.Errorf("%v of %d bytes, %+v", info.Mode(), info.Size(), j)
		}
		if entries := b.actions(t, j.ID); entries[0].Action != auditlog.PrivacyJobDownloaded || entries[0].Actor.UserID != b.by.UserID {
			t.Errorf("%+v", entries)
		}
		b.ahead.Add(int64(time.Hour)) // it is kept no more
		if _, err := b.service.Archive(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeNotFound {
			t.Error(err)
		}
		b.wake()
		b.gone(t)
		eventually(t, "the archive is still spoken of", func() bool { return b.get(t, j.ID).ArchiveUntil.IsZero() })
		if j := b.get(t, j.ID); j.Status != privacy.Succeeded || j.ArchiveBytes == 0 {
			t.Errorf("%+v", j)
		}
	})
}

// TestAnExportSaysWhatItLacks: chunks of recordings that cannot be read end
// nothing, and are counted.
func TestAnExportSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.unreadable.Store(3)
		b.work(t)
		lines := b.lines(t, b.await(t, b.create(t, privacy.Export, "ada").ID).ID)
		if end := lines[len(lines)-1]; end["type"] != "end" || end["unreadable"] != 3.0 {
			t.Errorf("%v", end)
		}
	})
}

// gone waits until there is no archive.
func (b *bench) gone(t *testing.T) {
	t.Helper()
	eventually(t, "there are archives", func() bool { return len(b.files(t)) == 0 })
}

// TestAnArchiveThatIsNotThere: where it was written it is gone, also after its
// folder has become another server's, when there is only one; of several servers
// another one may have it.
func TestAnArchiveThatIsNotThere(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.work(t)
		j := b.await(t, b.create(t, privacy.Export, "ada").ID)
		archives, err := privacy.OpenArchives(filepath.Join(t.TempDir(), "exports"), rand.Reader)
		must(t, err)
		other := privacy.NewService(privacy.Params{
			Store: b.store, Archives: archives, Alone: b.lease == 0, Guard: free, Clock: b.now, Random: rand.Reader, Wake: func() {},
		})
		want := api.CodeConflict
		if b.lease == 0 {
			want = api.CodeNotFound
		}
		if _, err := other.Archive(t.Context(), b.by, b.at, j.ID); code(err) != want {
			t.Errorf("elsewhere: %v, want %s", err, want)
		}
		must(t, os.Remove(b.files(t)[0]))
		if _, err := b.service.Archive(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeNotFound {
			t.Errorf("where it was: %v", err)
		}
		b.ahead.Add(int64(time.Hour)) // it would be kept no more: nobody has it
		if _, err := other.Archive(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeNotFound {
			t.Errorf("elsewhere, later: %v", err)
		}
		for _, e := range b.actions(t, j.ID) {
			if e.Action == auditlog.PrivacyJobDownloaded {
				t.Errorf("nothing was downloaded: %+v", e)
			}
		}
	})
}

// TestADeletionRemovesExports: of the person, and of nobody else.
func TestADeletionRemovesExports(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.work(t)
		ada := b.await(t, b.create(t, privacy.Export, "ada").ID)
		bob := b.await(t, b.create(t, privacy.Export, "bob").ID)
		b.await(t, b.create(t, privacy.Delete, "ada").ID)
		if _, err := b.service.Archive(t.Context(), b.by, b.at, ada.ID); code(err) != api.CodeNotFound {
			t.Error(err)
		}
		if len(b.lines(t, bob.ID)) != 4 || len(b.files(t)) != 1 {
			t.Errorf("%v", b.files(t))
		}
	})
}

func TestAnExportIsGivenUp(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.fail["export replays"] = 100
		b.work(t)
		j := b.create(t, privacy.Export, "ada")
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for j.Status != privacy.Failed {
			<-ticker.C
			b.ahead.Add(int64(time.Minute))
			b.wake()
			j = b.get(t, j.ID)
		}
		if j.Failures != 5 || j.Error == "" || len(b.files(t)) != 0 {
			t.Errorf("%+v, %v", j, b.files(t))
		}
		if _, err := b.service.Archive(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeConflict {
			t.Error(err)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		for _, kind := range []privacy.Kind{privacy.Export, privacy.Delete} {
			j := b.create(t, kind, "queued")
			for range 2 { // a repeat changes nothing
				j, err := b.service.Cancel(t.Context(), b.by, b.at, j.ID)
				if err != nil || j.Status != privacy.Cancelled || j.FinishedAt.IsZero() {
					t.Errorf("%+v, %v", j, err)
				}
			}
			if n := len(b.actions(t, j.ID)); n != 2 {
				t.Errorf("%d entries", n)
			}
		}
		b.hold["export replays"], b.hold["erased"] = make(chan struct{}), make(chan struct{})
		b.work(t)

		export := b.create(t, privacy.Export, "ada")
		<-b.entered
		if len(b.files(t)) != 1 {
			t.Errorf("%v", b.files(t))
		}
		cancelled, err := b.service.Cancel(t.Context(), b.by, b.at, export.ID)
		if err != nil || cancelled.Status != privacy.Cancelled {
			t.Errorf("%+v, %v", cancelled, err)
		}
		b.gone(t)

		// The record is written: there is no way back.
		deletion := b.create(t, privacy.Delete, "ada")
		<-b.entered
		if _, err := b.service.Cancel(t.Context(), b.by, b.at, deletion.ID); code(err) != api.CodeConflict {
			t.Error(err)
		}
		close(b.hold["erased"])
		b.await(t, deletion.ID)
		if _, err := b.service.Cancel(t.Context(), b.by, b.at, deletion.ID); code(err) != api.CodeConflict {
			t.Error(err)
		}
	})
}

// TestLeftFilesGo: what a process has left of exports that are not to be is
// removed by the next one, and what is to be goes on.
func TestLeftFilesGo(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		kept := b.create(t, privacy.Export, "ada")
		stop := b.work(t)
		b.await(t, kept.ID)
		stop()
		other := b.create(t, privacy.Export, "bob")
		_, err := b.service.Cancel(t.Context(), b.by, b.at, other.ID)
		must(t, err)
		for _, name := range []string{other.ID + ".jsonl", other.ID + ".jsonl.new", kept.ID + ".jsonl.new"} {
			must(t, os.WriteFile(filepath.Join(b.dir, name), []byte("left"), 0o600))
		}
		b.work(t)
		eventually(t, "files are left", func() bool { return len(b.files(t)) <= 2 })
		if len(b.lines(t, kept.ID)) != 4 {
			t.Error("the export is gone")
		}
		again, err := privacy.OpenArchives(b.dir, nil)
		must(t, err)
		if again.Server() != b.archives.Server() {
			t.Error("the server has another id")
		}
		must(t, os.WriteFile(filepath.Join(b.dir, "SERVER"), []byte("short"), 0o600))
		if _, err := privacy.OpenArchives(b.dir, nil); err == nil {
			t.Error("a damaged id was taken")
		}
		if info, err := os.Stat(b.dir); err != nil || info.Mode().Perm() != fs.FileMode(0o700) {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}
