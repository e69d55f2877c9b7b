package privacy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// steps are those of a deletion of a user in their order.
var steps = []string{"erase", "erased", "keep", "replays", "spans", "blobs", "forget", "customer", "messages", "rewrite", "purge", "scrub"}

func TestDelete(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.work(t)
		j := b.create(t, privacy.Delete, "ada")
		if j.Status != privacy.Queued || j.Progress != 0 {
			t.Errorf("%+v", j)
		}
		j = b.await(t, j.ID)
		if !slices.Equal(b.did(), steps) {
			t.Errorf("%v", b.did())
		}
		if j.Progress != 1000 || j.ErasedFromLogAt.IsZero() || j.Position != 10 || j.Error != "" || j.FinishedAt.Before(j.ErasedFromLogAt) {
			t.Errorf("%+v", j)
		}
		entries := b.actions(t, j.ID)
		if len(entries) != 2 || entries[0].Action != auditlog.PrivacyJobFinished || entries[1].Action != auditlog.PrivacyJobCreated ||
			entries[1].Actor.UserID != b.by.UserID || entries[0].Details["status"] != "succeeded" {
			t.Errorf("%+v", entries)
		}
		// The person is free for the next one.
		b.await(t, b.create(t, privacy.Delete, "ada").ID)
	})
}

// TestEachStepIsDoneAgain: whatever step fails, the job goes on from it and
// ends, and nothing that was done before it is done anew.
func TestEachStepIsDoneAgain(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.ahead.Store(int64(time.Hour))
		b.work(t)
		for i, step := range steps {
			user := fmt.Sprint("user", i)
			b.mu.Lock()
			b.steps, b.fail[step] = nil, 1
			b.mu.Unlock()
			j := b.create(t, privacy.Delete, user)
			b.awaitFailure(t, j.ID)
			b.ahead.Add(int64(time.Minute)) // the wait is over
			b.wake()
			j = b.await(t, j.ID)
			did := b.did()
			if n := len(did); !slices.Equal(did[n-(len(steps)-first(step)):], steps[first(step):]) || j.Failures != 0 || j.Error != "" {
				t.Errorf("%s failed: %v, %+v", step, did, j)
			}
			if count := times(did, "erase"); count > 1 && step != "erase" {
				t.Errorf("%s failed: %d erase records", step, count)
			}
		}
	})
}

// awaitFailure waits until a step has failed; meanwhile the job is queued.
func (b *bench) awaitFailure(t *testing.T, jobID string) {
	t.Helper()
	var j privacy.Job
	eventually(t, "nothing has failed", func() bool {
		j = b.get(t, jobID)
		return j.Failures == 1
	})
	if j.Status != privacy.Queued || j.Error == "" {
		t.Errorf("%+v", j)
	}
}

// first is where a job goes on after a failure of a step: with the first of its
// phase.
func first(step string) int {
	switch step {
	case "spans", "blobs", "forget":
		return slices.Index(steps, "replays")
	case "customer", "messages":
		return slices.Index(steps, "customer")
	case "rewrite", "purge", "scrub":
		return slices.Index(steps, "rewrite")
	default:
		return slices.Index(steps, step)
	}
}

func times(list []string, one string) (n int) {
	for _, s := range list {
		if s == one {
			n++
		}
	}
	return n
}

// TestALostRecordIsWrittenAgain: when the event store is past the position and
// has not applied it.
func TestALostRecordIsWrittenAgain(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.lost = true
		b.work(t)
		j := b.await(t, b.create(t, privacy.Delete, "ada").ID)
		if did := b.did(); times(did, "erase") != 2 || times(did, "spans") != 1 || j.Position != 20 {
			t.Errorf("%v, %+v", did, j)
		}
	})
}

// TestARecordBehindTheEndIsWrittenAgain: a repair has given it up, and nobody
// waits until others have come to its position.
func TestARecordBehindTheEndIsWrittenAgain(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.astray = true
		b.work(t)
		j := b.await(t, b.create(t, privacy.Delete, "ada").ID)
		if did := b.did(); times(did, "erase") != 2 || j.Position != 10 {
			t.Errorf("%v, %+v", did, j)
		}
	})
}

// TestAClockThatWasAhead: what was stored before the record is before it, also
// when it is written again, whatever time it was stamped with; and the job does
// not wait for that time.
func TestAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	ahead := time.Now().Add(1000 * time.Hour)
	for _, by := range []string{"replays", "customer"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			onSQLite(t, func(t *testing.T, b *bench) {
				b.lost, b.newest[by] = true, ahead
				b.work(t)
				j := b.await(t, b.create(t, privacy.Delete, "ada").ID)
				b.mu.Lock()
				defer b.mu.Unlock()
				for _, step := range []string{"companions", "replays", "spans", "customer", "messages"} {
					if newest := ahead.Add(20 * time.Hour); !b.before[step].After(newest) || !b.before[step].Before(newest.Add(time.Second)) {
						t.Errorf("%s: before %s, and the newest is of %s", step, b.before[step], newest)
					}
				}
				if j.Position != 20 || j.FinishedAt.After(ahead) {
					t.Errorf("%+v", j)
				}
			})
		})
	}
}

// TestAClockThatWasNotAhead: what comes after the record is new.
func TestAClockThatWasNotAhead(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.newest["replays"], b.newest["customer"] = time.Now().Add(-1000*time.Hour), time.Now().Add(-1000*time.Hour)
		b.work(t)
		b.await(t, b.create(t, privacy.Delete, "ada").ID)
		b.mu.Lock()
		defer b.mu.Unlock()
		if wait := time.Since(b.before["messages"]); wait < 0 || wait > time.Minute {
			t.Errorf("before %s", b.before["messages"])
		}
	})
}

// TestExecutionsUnderWayAreAwaited: what they were given is needed until they
// end. Nobody else waits for them, and waiting is no failure.
func TestExecutionsUnderWayAreAwaited(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.running = "ada"
		b.work(t)
		waits := b.create(t, privacy.Delete, "ada")
		b.await(t, b.create(t, privacy.Delete, "bob").ID)
		if j := b.get(t, waits.ID); j.Phase != privacy.PhaseCustomers || j.Failures != 0 || j.Error != "" || !j.FinishedAt.IsZero() {
			t.Errorf("%+v", j)
		}
		if _, err := b.service.Cancel(t.Context(), b.by, b.at, waits.ID); code(err) != api.CodeConflict || !strings.Contains(err.Error(), "has begun to erase") {
			t.Error(err)
		}
		b.mu.Lock()
		b.running = ""
		b.mu.Unlock()
		b.ahead.Store(int64(time.Hour)) // the wait is over
		b.wake()
		b.await(t, waits.ID)
		if did := b.did(); times(did, "customer") < 3 || times(did, "erase") != 2 || times(did, "messages") != 2 {
			t.Errorf("%v", did)
		}
	})
}

// TestAnAnonymousIDHasNoCustomer: nothing of a customer who is called alike is
// touched.
func TestAnAnonymousIDHasNoCustomer(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		b.work(t)
		j, err := b.service.Create(t.Context(), b.by, b.at, privacy.Delete, privacy.Person{AnonID: "ada"})
		must(t, err)
		b.await(t, j.ID)
		if did := b.did(); !slices.Equal(did, []string{"erase", "erased", "keep", "replays", "spans", "blobs", "forget", "rewrite", "purge", "scrub"}) {
			t.Errorf("%v", did)
		}
	})
}

func TestOneJobAPerson(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		var wait sync.WaitGroup
		results := make(chan error, 8)
		for i := range cap(results) {
			kind := privacy.Export
			if i%2 == 0 {
				kind = privacy.Delete
			}
			wait.Go(func() {
				_, err := b.service.Create(t.Context(), b.by, b.at, kind, privacy.Person{UserID: "ada"})
				results <- err
			})
		}
		wait.Wait()
		close(results)
		made := 0
		for err := range results {
			if err == nil {
				made++
			} else if code(err) != api.CodePrivacyJobActive {
				t.Error(err)
			}
		}
		list, err := b.service.List(t.Context(), b.at, "", 10)
		must(t, err)
		if made != 1 || len(list) != 1 {
			t.Errorf("%d were made, there are %+v", made, list)
		}
		b.create(t, privacy.Delete, "Ada")       // another person
		b.create(t, privacy.Delete, "a\x00\xff") // no column of text holds it
		if _, err := b.service.Create(t.Context(), b.by, b.at, privacy.Delete, privacy.Person{AnonID: "ada"}); err != nil {
			t.Errorf("an anonymous id is another person: %v", err)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, b *bench) {
		long := string(make([]rune, 201))
		for name, p := range map[string]privacy.Person{"nobody": {}, "two": {UserID: "a", AnonID: "b"}, "too long": {UserID: long}} {
			if _, err := b.service.Create(t.Context(), b.by, b.at, privacy.Delete, p); code(err) != api.CodeValidationFailed {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.service.Create(t.Context(), b.by, b.at, "forget", privacy.Person{UserID: "a"}); code(err) != api.CodeValidationFailed {
			t.Error(err)
		}
		j := b.create(t, privacy.Delete, "ada")
		elsewhere := b.at
		elsewhere.ProjectID = "01980000-0000-7000-8000-0000000000ff"
		for _, at := range []privacy.Place{elsewhere} {
			_, got := b.service.Get(t.Context(), at, j.ID)
			_, cancelled := b.service.Cancel(t.Context(), b.by, at, j.ID)
			_, opened := b.service.Archive(t.Context(), b.by, at, j.ID)
			for _, err := range []error{got, cancelled, opened} {
				if code(err) != api.CodeNotFound {
					t.Error(err)
				}
			}
		}
		if got := b.get(t, j.ID); got.Status != privacy.Queued {
			t.Errorf("%+v", got)
		}
	})
}
