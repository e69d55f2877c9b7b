package privacy_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// TestStopped: a job whose worker stops is queued again at once and goes on
// from its step, by the next worker.
func TestStopped(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.hold["replays"] = make(chan struct{})
		stop := b.work(t)
		j := b.create(t, privacy.Delete, "ada")
		<-b.entered
		stop()
		if got := b.get(t, j.ID); got.Status != privacy.Queued || got.Failures != 0 || got.Phase != privacy.PhaseReplays {
			t.Errorf("%+v", got)
		}
		close(b.hold["replays"])
		b.work(t)
		b.await(t, j.ID)
		if n := times(b.did(), "erase"); n != 1 {
			t.Errorf("%d erase records", n)
		}
	})
}

// TestOneServerAJob: of two servers one does a job; when its lease has ended the
// other goes on, and what the first one writes then is refused.
func TestOneServerAJob(t *testing.T) {
	t.Parallel()
	onPostgreSQL(t, func(t *testing.T, b *bench) {
		b.create(t, privacy.Delete, "ada")
		var first, second [16]byte
		_, _ = rand.Read(first[:])
		_, _ = rand.Read(second[:])
		claim := func(owner [16]byte, lease time.Duration) (privacy.Job, bool) {
			t.Helper()
			j, found, err := b.store.ClaimJob(t.Context(), privacy.ClaimParams{
				Server: b.archives.Server(), Owner: owner, LeaseFor: lease, Now: time.Now(),
			})
			must(t, err)
			return j, found
		}
		mine, found := claim(first, time.Hour)
		if !found || mine.Place != b.at {
			t.Fatalf("%+v", mine)
		}
		if j, found := claim(second, time.Hour); found {
			t.Fatalf("two do %+v", j)
		}
		held, err := b.store.RenewJob(t.Context(), mine.Lease, time.Microsecond)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		theirs, found := claim(second, time.Hour)
		if !found || theirs.ID != mine.ID || theirs.Lease.Epoch <= mine.Lease.Epoch {
			t.Fatalf("%+v", theirs)
		}
		mine.Phase = privacy.PhaseRecord
		advanced, err1 := b.store.AdvanceJob(t.Context(), &mine)
		renewed, err2 := b.store.RenewJob(t.Context(), mine.Lease, time.Hour)
		err3 := b.store.ReleaseJob(t.Context(), &mine, time.Now())
		mine.Status, mine.Phase, mine.Progress, mine.FinishedAt, mine.ErasedFromLogAt = privacy.Succeeded, privacy.PhaseDone, 1000, time.Now(), time.Now()
		finished, err4 := b.store.FinishJob(t.Context(), &mine, auditlog.Entry{})
		for _, err := range []error{err1, err2, err3, err4} {
			must(t, err)
		}
		if advanced || renewed || finished {
			t.Errorf("a lease that has passed on was taken: %t %t %t", advanced, renewed, finished)
		}
		if j := b.get(t, mine.ID); j.Status != privacy.Running || j.Phase != privacy.PhaseExports || j.Lease != theirs.Lease {
			t.Errorf("%+v", j)
		}
		// A server whose folder is another one does not go on with it.
		must(t, b.store.ReleaseJob(t.Context(), &theirs, time.Now().Add(-time.Second)))
		_, found, err = b.store.ClaimJob(t.Context(), privacy.ClaimParams{Server: first, Owner: first, LeaseFor: time.Hour, Now: time.Now()})
		if err != nil || found {
			t.Errorf("it was claimed by a server with another folder: %v", err)
		}
	})
}

// cut waits until a step that was waiting was cut.
func (b *bench) cut(t *testing.T) {
	t.Helper()
	select {
	case <-b.parts.cut:
	case <-time.After(30 * time.Second):
		t.Fatal("the run goes on")
	}
}

// TestALostLeaseEndsTheRun: a worker whose job was claimed by another stops.
func TestALostLeaseEndsTheRun(t *testing.T) {
	t.Parallel()
	onPostgreSQL(t, func(t *testing.T, b *bench) {
		b.hold["replays"] = make(chan struct{})
		stop := b.work(t)
		j := b.create(t, privacy.Delete, "ada")
		<-b.entered
		_, err := b.db.Reader().ExecContext(t.Context(),
			`UPDATE privacy_jobs SET owner = $1, epoch = epoch + 1, lease_until = lease_until + 3600000000`, make([]byte, 16))
		must(t, err)
		b.cut(t) // the step that waits is told that its run has ended
		stop()
		if got := b.get(t, j.ID); got.Status != privacy.Running || got.Phase != privacy.PhaseReplays {
			t.Errorf("it was written by who has lost it: %+v", got)
		}
	})
}

// TestWhatAnOwnerHasLeftIsClaimedAgain: by itself, whatever it could not write;
// and what it writes under the earlier claim is refused.
func TestWhatAnOwnerHasLeftIsClaimedAgain(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.create(t, privacy.Delete, "ada")
		claim := func(owner byte) (privacy.Job, bool) {
			t.Helper()
			j, found, err := b.store.ClaimJob(t.Context(), privacy.ClaimParams{
				Server: b.archives.Server(), Owner: [16]byte{owner}, LeaseFor: b.lease * 1000, Now: time.Now(),
			})
			must(t, err)
			return j, found
		}
		left, found := claim(1)
		if !found {
			t.Fatal("nothing was claimed")
		}
		if j, found := claim(2); found {
			t.Fatalf("two do %+v", j)
		}
		again, found := claim(1)
		if !found || again.ID != left.ID || again.Lease.Epoch <= left.Lease.Epoch {
			t.Fatalf("%+v, %t", again, found)
		}
		left.Phase = privacy.PhaseRecord
		if held, err := b.store.AdvanceJob(t.Context(), &left); held || err != nil {
			t.Error(held, err)
		}
	})
}

// unsure is a queue that cannot write what became of a job, so many times.
type unsure struct {
	privacy.Queue

	refused atomic.Int64
}

func (u *unsure) ReleaseJob(ctx context.Context, j *privacy.Job, at time.Time) error {
	if u.refused.Add(-1) >= 0 {
		return errScripted
	}
	return u.Queue.ReleaseJob(ctx, j, at)
}

// TestAJobThatCouldNotBeReleased is done all the same, without a restart.
func TestAJobThatCouldNotBeReleased(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		queue := &unsure{Queue: b.store}
		queue.refused.Store(1)
		b.queue = queue
		b.fail["replays"] = 1
		b.work(t)
		b.await(t, b.create(t, privacy.Delete, "ada").ID)
		if left := queue.refused.Load(); left != 0 {
			t.Errorf("%d releases were not refused", left)
		}
	})
}
