package privacy_test

import (
	"crypto/rand"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// elsewhere is the service of another server on the database of a bench.
func (b *bench) elsewhere(t *testing.T) (*privacy.Service, *privacy.Archives) {
	t.Helper()
	archives, err := privacy.OpenArchives(filepath.Join(t.TempDir(), "exports"), rand.Reader)
	must(t, err)
	return privacy.NewService(privacy.Params{
		Store: b.store, Archives: archives, Guard: free, Clock: b.now, Random: rand.Reader, Wake: func() {},
	}), archives
}

// begun is a deletion that has begun to erase and whose server has stopped.
func (b *bench) begun(t *testing.T, user string) privacy.Job {
	t.Helper()
	b.hold["replays"] = make(chan struct{})
	stop := b.work(t)
	j := b.create(t, privacy.Delete, user)
	<-b.entered
	stop()
	return b.get(t, j.ID)
}

// since has nothing been heard of the server that has a job: it runs, or waits to
// be done again.
func (b *bench) since(t *testing.T, jobID string, running bool, silence time.Duration) {
	t.Helper()
	now, err := b.db.Now(t.Context())
	must(t, err)
	text := `UPDATE privacy_jobs SET status = 'queued', owner = NULL, lease_until = NULL, next_attempt_at = $1 WHERE id = $2`
	if running {
		text = `UPDATE privacy_jobs SET status = 'running', owner = server, lease_until = $1, next_attempt_at = NULL WHERE id = $2`
	}
	must(t, b.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, now.Add(-silence).UnixMicro(), jobID)
		return err
	}))
}

// TestALostServersDeletion: once nothing was heard of the server for an hour,
// another one ends it when an admin says so; who comes back does not go on with
// it, and the person is free at once.
func TestALostServersDeletion(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"running": true, "queued": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onPostgreSQL(t, func(t *testing.T, b *bench) {
				other, _ := b.elsewhere(t)
				j := b.begun(t, "ada")
				refused := func(what string, at *privacy.Service) {
					t.Helper()
					if _, err := at.Cancel(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeConflict || !strings.Contains(err.Error(), "has begun to erase") {
						t.Errorf("%s: %v", what, err)
					}
				}
				b.since(t, j.ID, running, 59*time.Minute)
				refused("too early", other)
				b.since(t, j.ID, running, 61*time.Minute)
				refused("at its own server", b.service)
				if got := b.get(t, j.ID); got.Status != privacy.Queued || got.Phase != privacy.PhaseReplays {
					t.Errorf("it is shown as %+v", got)
				}
				list, err := other.List(t.Context(), b.at, "", 10)
				if err != nil || len(list) != 1 || list[0].Status != privacy.Queued {
					t.Errorf("%+v, %v", list, err)
				}
				lease := b.get(t, j.ID)
				ended, err := other.Cancel(t.Context(), b.by, b.at, j.ID)
				if err != nil || ended.Status != privacy.Failed || !strings.Contains(ended.Error, "has not finished it") || ended.FinishedAt.IsZero() ||
					!ended.ErasedFromLogAt.IsZero() {
					t.Fatalf("%+v, %v", ended, err)
				}
				if e := b.actions(t, j.ID)[0]; e.Action != auditlog.PrivacyJobCancelled || e.Actor.UserID != b.by.UserID || e.Details["status"] != "failed" {
					t.Errorf("%+v", e)
				}
				if _, err := other.Cancel(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeConflict || !strings.Contains(err.Error(), "is failed") {
					t.Errorf("again: %v", err)
				}
				// It comes back.
				if held, err := b.store.AdvanceJob(t.Context(), &lease); held || err != nil {
					t.Errorf("%t, %v", held, err)
				}
				close(b.hold["replays"])
				b.work(t)
				b.await(t, b.create(t, privacy.Delete, "ada").ID)
				if got := b.get(t, j.ID); got.Status != privacy.Failed || got.Error != ended.Error {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestAServerThatIsBusyIsNotLost: what waits until it has done something else
// is its own.
func TestAServerThatIsBusyIsNotLost(t *testing.T) {
	t.Parallel()
	onPostgreSQL(t, func(t *testing.T, b *bench) {
		other, _ := b.elsewhere(t)
		waits := b.begun(t, "ada")
		busy := b.create(t, privacy.Delete, "bob")
		b.since(t, waits.ID, false, 2*time.Hour)
		b.since(t, busy.ID, true, -time.Minute)
		if _, err := other.Cancel(t.Context(), b.by, b.at, waits.ID); code(err) != api.CodeConflict {
			t.Error(err)
		}
		b.since(t, busy.ID, true, 2*time.Hour)
		if j, err := other.Cancel(t.Context(), b.by, b.at, waits.ID); err != nil || j.Status != privacy.Failed {
			t.Errorf("%+v, %v", j, err)
		}
	})
}

// TestNoServerIsLostOnSQLite: whatever folder a job was made in, the one process
// that there is does it.
func TestNoServerIsLostOnSQLite(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		j := b.begun(t, "ada")
		b.since(t, j.ID, false, 2*time.Hour)
		_, archives := b.elsewhere(t)
		other := privacy.NewService(privacy.Params{
			Store: b.store, Archives: archives, Alone: true, Guard: free, Clock: b.now, Random: rand.Reader, Wake: func() {},
		})
		if _, err := other.Cancel(t.Context(), b.by, b.at, j.ID); code(err) != api.CodeConflict {
			t.Error(err)
		}
	})
}
