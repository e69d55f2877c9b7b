package replaystore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// slow is a store of blobs in which the first Put is held up before and after
// it has written.
type slow struct {
	replay.Blobs

	puts          atomic.Int64
	before, after func()
}

func (s *slow) Put(ctx context.Context, name string, content []byte) error {
	once := s.puts.Add(1) == 1
	if once && s.before != nil {
		s.before()
	}
	err := s.Blobs.Put(ctx, name, content)
	if once && s.after != nil {
		s.after()
	}
	return err
}

// testSweepAndASlowAttempt: an attempt that is slower than the sweep thinks
// possible loses neither its chunk nor leaves a blob, wherever it was held up.
func testSweepAndASlowAttempt(t *testing.T, b *bench) {
	late := func() {
		b.pass(time.Hour + time.Second)
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	soon := func() {
		b.pass(time.Hour - time.Second)
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for i, s := range []*slow{
		{before: late}, {after: late}, {before: late, after: late}, {before: soon}, {after: soon},
	} {
		s.Blobs = b.params.Blobs
		service := b.service(t, func(p *replay.Params) { p.Blobs = s })
		r, err := service.Add(t.Context(), replay.Source{ProjectID: b.project()}, []byte(body("s", i, events(fmt.Sprint(i)))))
		if err != nil || r != first {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
		if got, want := b.read(t, b.project(), "s", int64(i)), events(fmt.Sprint(i)); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		if again := s.puts.Load() == 2; again != (i < 3) {
			t.Errorf("%d: %d attempts", i, s.puts.Load())
		}
	}
	b.sweep(t)
}

// testAttemptWithinASweep: an attempt whose blob is written after the sweep has
// deleted it, and doomed once more before the sweep has noted that, leaves no
// blob.
func testAttemptWithinASweep(t *testing.T, b *bench) {
	deleted, done := make(chan struct{}), make(chan struct{})
	sweeper := b.service(t, func(p *replay.Params) {
		p.Blobs = slowDelete{p.Blobs, func() { close(deleted); <-done }}
	})
	var sweep sync.WaitGroup
	writer := b.service(t, func(p *replay.Params) {
		p.Blobs = &slow{Blobs: p.Blobs, before: func() {
			b.pass(time.Hour + time.Second)
			sweep.Go(func() {
				if n, err := sweeper.Sweep(context.Background()); n != 1 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			})
			<-deleted
		}}
	})
	r, err := writer.Add(t.Context(), replay.Source{ProjectID: b.project()}, []byte(body("s", 0, events("0"))))
	close(done)
	sweep.Wait()
	if err != nil || r != first {
		t.Errorf("%+v, %v", r, err)
	}
	b.sweep(t)
}

// slowDelete is a store of blobs in which something happens before a deletion is
// told.
type slowDelete struct {
	replay.Blobs

	after func()
}

func (s slowDelete) Delete(ctx context.Context, name string) error {
	err := s.Blobs.Delete(ctx, name)
	s.after()
	return err
}

// testSweepsBesideAttempts: whatever the ages, sweeps that take every claim for
// old and attempts that begin again never leave a row without a blob.
func testSweepsBesideAttempts(t *testing.T, b *bench) {
	ctx, stop := context.WithCancel(t.Context())
	var sweeps, adds sync.WaitGroup
	sweeps.Go(func() {
		for ctx.Err() == nil {
			b.pass(2 * time.Hour)
			if _, err := b.Sweep(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	var taken, slow atomic.Int64
	for w := range 4 {
		adds.Go(func() {
			for n := range 15 {
				text := body(fmt.Sprint("s", n%3), n, events(fmt.Sprint(w%2)))
				_, err := b.Add(context.Background(), replay.Source{ProjectID: b.project()}, []byte(text))
				f, ok := errors.AsType[*fault.Error](err)
				switch {
				case ok && (f.Code == api.CodeUnavailable && f.Details["applied"] == false || f.Code == api.CodeInternal):
					slow.Add(1) // refused: nothing was taken
				case err != nil:
					t.Error(err)
				default:
					taken.Add(1)
				}
			}
		})
	}
	adds.Wait()
	stop()
	sweeps.Wait()
	if taken.Load() == 0 {
		t.Errorf("nothing was taken, %d were too slow", slow.Load())
	}
	b.sweep(t)
}

// testStart: where no other process uses the store, what was claimed before the
// start is swept at once; elsewhere it may be another's.
func testStart(t *testing.T, b *bench) {
	if err := b.params.Store.Claim(t.Context(), []string{"p/00/left"}, b.clock()); err != nil {
		t.Fatal(err)
	}
	if err := b.params.Blobs.Put(t.Context(), "p/00/left", []byte("x")); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Second)
	for _, alone := range []bool{false, true} {
		s := b.service(t, func(p *replay.Params) { p.Alone = alone })
		n, err := s.Sweep(t.Context())
		if err != nil || (n == 1) != alone || (len(b.files(t)) == 0) != alone {
			t.Errorf("alone %v: %d, %v, %v", alone, n, err, b.files(t))
		}
	}
}

// stuck is a store of blobs from which one cannot be deleted.
type stuck struct {
	replay.Blobs

	name string
}

func (s stuck) Delete(ctx context.Context, name string) error {
	if name == s.name {
		return errors.New("input/output error")
	}
	return s.Blobs.Delete(ctx, name)
}

// testABlobThatCannotBeDeleted keeps neither the others nor itself: it is tried
// again.
func testABlobThatCannotBeDeleted(t *testing.T, b *bench) {
	for n := range 3 {
		b.want(t, b.project(), body("s", n, events(fmt.Sprint(n))), first)
	}
	name := filepath.ToSlash(b.files(t)[1])
	s := b.service(t, func(p *replay.Params) { p.Blobs = stuck{p.Blobs, name} })
	if err := s.Delete(t.Context(), replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: b.project(), SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if files := b.files(t); len(files) != 1 || filepath.ToSlash(files[0]) != name {
		t.Errorf("%v", files)
	}
	if _, err := s.Sweep(t.Context()); err == nil {
		t.Error("it is not said")
	}
	b.sweep(t)
}

// testDamage: a blob that is missing or is not what was written is told from
// one that cannot be asked for, by whoever reads it and by an audit.
func testDamage(t *testing.T, b *bench) {
	whose := replay.Person{UserID: "w"}
	for n := range 4 {
		b.want(t, b.project(), strings.Replace(body("s", n, events(fmt.Sprint(n)), `"user_id":"w"`), `"s"`, `"s\u0000\n"`, 1), first)
	}
	chunks, err := b.Get(t.Context(), b.project(), "s\x00\n")
	if err != nil {
		t.Fatal(err)
	}
	path := func(n int) string { return filepath.Join(b.dir, filepath.FromSlash(chunks.Chunks[n].Blob)) }
	content, err := os.ReadFile(path(1))
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	for _, err := range []error{
		os.Remove(path(0)), os.WriteFile(path(1), content, 0o600), os.WriteFile(path(2), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		_, err := b.Open(t.Context(), b.project(), "s\x00\n", int64(n))
		if n == 3 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		mustFail(t, err, api.CodeInternal)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["retryable"] != false {
			t.Errorf("%d: %v", n, err)
		}
	}
	told := map[int64]bool{} // whether a chunk was exported with its events
	err = b.ExportPerson(t.Context(), b.project(), replay.Part{Person: whose}, func(_ string, c replay.Chunk, w io.WriterTo) error {
		told[c.Chunk] = w != nil
		return nil
	})
	if diff := cmp.Diff(map[int64]bool{0: false, 1: false, 2: false, 3: true}, told); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	a, err := replay.Verify(t.Context(), replay.VerifyParams{Store: b.params.Store, Blobs: b.params.Blobs})
	if err != nil || a.Chunks != 4 || len(a.Differences) != 3 {
		t.Errorf("%+v, %v", a, err)
	}
	for n := range 3 {
		want := fmt.Sprintf(`chunk %d of the replay "s\x00\n" in project %s`, n, b.project())
		if !strings.Contains(strings.Join(a.Differences, "\n"), want) {
			t.Errorf("%d: %v", n, a.Differences)
		}
	}
	down := b.service(t, func(p *replay.Params) { p.Blobs = silent{} })
	_, err = down.Open(t.Context(), b.project(), "s\x00\n", 3)
	mustFail(t, err, api.CodeUnavailable)
	err = down.ExportPerson(t.Context(), b.project(), replay.Part{Person: whose}, func(string, replay.Chunk, io.WriterTo) error { return nil })
	mustFail(t, err, api.CodeUnavailable)
	if _, err := replay.Verify(t.Context(), replay.VerifyParams{Store: b.params.Store, Blobs: silent{}}); err == nil {
		t.Error("an audit that saw nothing found nothing wrong")
	}
}

type silent struct{ replay.Blobs }

func (silent) Get(context.Context, string) ([]byte, error) {
	return nil, errors.New("connection refused")
}

// stubborn is a store of blobs that cannot delete one.
type stubborn struct {
	replay.Blobs

	keeps string
}

var errStubborn = errors.New("stubborn")

func (s stubborn) Delete(ctx context.Context, name string) error {
	if name == s.keeps {
		return errStubborn
	}
	return s.Blobs.Delete(ctx, name)
}

// testABlobThatStays keeps no other, on no page, and is told of.
func testABlobThatStays(t *testing.T, b *bench) {
	ctx := t.Context()
	for i := range 150 {
		err := b.db.Write(ctx, func(q *sqldb.Queries) error {
			return q.DoomReplayBlob(ctx, sqldb.DoomReplayBlobParams{Name: fmt.Sprintf("%032x", i), Since: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	service := b.service(t, func(p *replay.Params) { p.Blobs = stubborn{p.Blobs, fmt.Sprintf("%032x", 0)} })
	if n, err := service.Sweep(ctx); n != 149 || !errors.Is(err, errStubborn) {
		t.Errorf("%d were deleted, %v", n, err)
	}
	b.sweep(t)
}
