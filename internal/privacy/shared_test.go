package privacy_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// TestArchivesAboutOthersWithThePerson go too, also of those whom only a
// recording names that is gone when the step is done again; those about anybody
// else stay.
func TestArchivesAboutOthersWithThePerson(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.fail["blobs"] = 1
		b.work(t)
		export := func(p privacy.Person) privacy.Job {
			t.Helper()
			j, err := b.service.Create(t.Context(), b.by, b.at, privacy.Export, p)
			must(t, err)
			return b.await(t, j.ID)
		}
		shared := []privacy.Job{export(privacy.Person{AnonID: "a"}), export(privacy.Person{AnonID: "b"}), export(privacy.Person{UserID: "shared"}), export(privacy.Person{AnonID: "recorded"})}
		other := export(privacy.Person{UserID: "a"})
		b.await(t, b.create(t, privacy.Delete, "ada").ID)
		for _, j := range shared {
			if _, err := b.service.Archive(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeNotFound {
				t.Errorf("%+v: %v", j.Person, err)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, j.ID+"*")); len(left) != 0 {
				t.Errorf("%v", left)
			}
		}
		file, err := b.service.Archive(t.Context(), b.by, b.at, other.ID)
		must(t, err)
		must(t, file.Close())
	})
}

// TestAnExportByAnotherServerIsAwaited: it may have begun before the deletion.
func TestAnExportByAnotherServerIsAwaited(t *testing.T) {
	t.Parallel()
	onPostgreSQL(t, func(t *testing.T, b *bench) {
		elsewhere, archives := b.elsewhere(t)
		theirs, err := elsewhere.Create(t.Context(), b.by, b.at, privacy.Export, privacy.Person{AnonID: "b"})
		must(t, err)
		_, found, err := b.store.ClaimJob(t.Context(), privacy.ClaimParams{
			Server: archives.Server(), Owner: archives.Server(), LeaseFor: 3 * time.Hour, Now: time.Now(),
		})
		if err != nil || !found {
			t.Fatal(found, err)
		}
		b.work(t)
		j := b.create(t, privacy.Delete, "ada")
		eventually(t, "it does not wait", func() bool {
			j = b.get(t, j.ID)
			return j.Status == privacy.Queued && j.Phase == privacy.PhaseReplays && times(b.did(), "blobs") > 0
		})
		if j.Failures != 0 || times(b.did(), "forget") != 0 {
			t.Errorf("%+v, %v", j, b.did())
		}
		_, err = elsewhere.Cancel(t.Context(), b.by, b.at, theirs.ID)
		must(t, err)
		b.ahead.Store(int64(time.Hour)) // the wait is over
		b.wake()
		b.await(t, j.ID)
	})
}
