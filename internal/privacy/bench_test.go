package privacy_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/privacystore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// onSQLite runs a test of what no engine has to do with.
func onSQLite(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	test(t, newBench(t, storagetest.SQLite))
}

// onPostgreSQL runs a test of several servers.
func onPostgreSQL(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newBench(t, storagetest.PostgreSQL)) })
}

func onBothEngines(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, open))
		})
	}
}

// errScripted is what a part fails with that a test has made fail.
var errScripted = errors.New("scripted")

// parts are what lies outside of jobs: events, replays and customers. Each step
// is noted, and may be made to fail or to wait.
type parts struct {
	mu    sync.Mutex
	steps []string
	// fail makes a step fail so many times; hold makes one wait.
	fail map[string]int
	hold map[string]chan struct{}
	// entered is told when a step waits, cut when its run has ended meanwhile.
	entered, cut chan string
	// position is that of the last record, lost says that the next look finds
	// that it is not there.
	position uint64
	lost     bool
	// astray says that the next record is given up by a repair, with its position.
	astray bool
	// kept is whom recordings named that were there, and are not any more.
	kept    []privacy.Taken
	deleted bool
	// running is the customer who has an execution under way.
	running string
	// unreadable is how many chunks of recordings are lost.
	unreadable atomic.Int64
	// newest are the latest times of what was there at the last record, if a
	// test says so, by the step that goes by them; before is which time the step
	// got.
	newest, before map[string]time.Time
}

func (p *parts) step(ctx context.Context, name string) error {
	p.mu.Lock()
	p.steps = append(p.steps, name)
	failing := p.fail[name] > 0
	if failing {
		p.fail[name]--
	}
	held := p.hold[name]
	p.mu.Unlock()
	if held != nil {
		p.entered <- name
		select {
		case <-held:
		case <-ctx.Done():
			p.cut <- name
			return context.Cause(ctx)
		}
	}
	if failing {
		return errScripted
	}
	return nil
}

func (p *parts) did() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.steps...)
}

func (p *parts) Erase(ctx context.Context, _ uint32, _ privacy.Person) (uint64, error) {
	if err := p.step(ctx, "erase"); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.astray {
		p.astray = false
		return p.position + 1000, nil
	}
	p.position += 10
	return p.position, nil
}

func (p *parts) Decided() (uint64, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position, time.Now().UnixMilli()
}

func (p *parts) Purge(ctx context.Context, _ uint64) error { return p.step(ctx, "purge") }

func (p *parts) Stored(context.Context) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position, nil
}

func (p *parts) Erased(ctx context.Context, _ uint32, _ privacy.Person, position uint64) (privacy.Erasure, error) {
	if err := p.step(ctx, "erased"); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if position > p.position {
		return privacy.ErasureWaiting, nil
	}
	if p.lost {
		p.lost = false
		return privacy.ErasureMissing, nil
	}
	return privacy.ErasureApplied, nil
}

func (p *parts) Spans(context.Context, uint32, string) ([]privacy.Span, error) {
	return []privacy.Span{{AnonID: "a"}}, nil
}

func (p *parts) Taken(context.Context, uint32, privacy.Person, uint64) ([]privacy.Taken, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]privacy.Taken{
		{Person: privacy.Person{AnonID: "a"}, To: 1}, {Person: privacy.Person{AnonID: "b"}}, {Person: privacy.Person{UserID: "shared"}},
	}, p.kept...), nil
}

func (p *parts) KeepTaken(ctx context.Context, _ uint32, _ privacy.Person, position uint64, others []privacy.Person) error {
	if position == 0 {
		return errors.New("no position")
	}
	if err := p.step(ctx, "keep"); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range others {
		p.kept = append(p.kept, privacy.Taken{Person: one})
	}
	return nil
}

func (p *parts) ForgetTaken(ctx context.Context, _ uint32, _ privacy.Person, position uint64) error {
	if position == 0 {
		return errors.New("no position")
	}
	return p.step(ctx, "forget")
}

func (p *parts) Rewrite(ctx context.Context) error { return p.step(ctx, "rewrite") }

// stamped returns the latest time of what a step goes by: an hour later with each
// record.
func (p *parts) stamped(step string) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest[step].IsZero() {
		return time.Time{}, nil
	}
	return p.newest[step].Add(time.Duration(p.position) * time.Hour), nil
}

// goesBy notes the time that a step got.
func (p *parts) goesBy(step string, before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[step] = before
}

func (p *parts) Newest(_ context.Context, _, _ string) (time.Time, error) {
	return p.stamped("customer")
}

func (p *parts) RedactCustomer(ctx context.Context, of privacy.RedactParams) (done privacy.Redaction, err error) {
	p.goesBy("customer", of.Before)
	err = p.step(ctx, "customer")
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.Customer == p.running {
		done.Running = 1
	}
	return done, err
}

func (p *parts) RedactMessages(ctx context.Context, of privacy.RedactParams) error {
	p.goesBy("messages", of.Before)
	return p.step(ctx, "messages")
}

func (p *parts) Scrub(ctx context.Context) error { return p.step(ctx, "scrub") }

func (p *parts) ExportCustomer(ctx context.Context, _, customer string, emit privacy.Emit) error {
	if err := p.step(ctx, "export customer"); err != nil {
		return err
	}
	return emit("customer", map[string]string{"customer": customer, "note": spelt})
}

// spelt is a text that an encoder may spell otherwise.
const spelt = `<a href="x&y">`

// events and replays are the parts whose methods have the names of others.
type events struct{ *parts }

func (e events) ExportPerson(ctx context.Context, _ uint32, p privacy.Person, emit privacy.Emit) error {
	if err := e.step(ctx, "export events"); err != nil {
		return err
	}
	return emit("event", map[string]string{"event": "bought", "user_id": p.UserID})
}

type replays struct{ *parts }

func (r replays) Newest(_ context.Context, _ string) (time.Time, error) { return r.stamped("replays") }

func (r replays) DeletePerson(ctx context.Context, _ string, _ privacy.Person, before time.Time) error {
	if before.IsZero() {
		return errors.New("no time")
	}
	r.goesBy("replays", before)
	if err := r.step(ctx, "replays"); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted = true
	return nil
}

// Companions knows them only from the recordings.
func (r replays) Companions(_ context.Context, _ string, _ privacy.Person, before time.Time) ([]privacy.Person, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before["companions"] = before
	if r.deleted || before.IsZero() {
		return nil, nil
	}
	return []privacy.Person{{AnonID: "recorded"}}, nil
}

func (r replays) DeleteSpans(ctx context.Context, _ string, spans []privacy.Span, before time.Time) error {
	if len(spans) != 1 || before.IsZero() {
		return errors.New("not the spans")
	}
	r.goesBy("spans", before)
	return r.step(ctx, "spans")
}

func (r replays) Purge(ctx context.Context) error { return r.step(ctx, "blobs") }

func (r replays) ExportPerson(ctx context.Context, _ string, _ privacy.Person, _ []privacy.Span, _ privacy.Emit) (int64, error) {
	return r.unreadable.Load(), r.step(ctx, "export replays")
}

// bench is a service with its store and a folder.
type bench struct {
	*parts

	db    *sqldb.DB
	store *privacystore.Store
	// queue is the store, as workers see it.
	queue    privacy.Queue
	archives *privacy.Archives
	dir      string
	service  *privacy.Service
	at       privacy.Place
	by       auditlog.Actor
	lease    time.Duration
	// ahead is added to the clock, in nanoseconds.
	ahead atomic.Int64
	wake  func()
}

func newBench(t *testing.T, open storagetest.OpenFunc) *bench {
	t.Helper()
	db, setup := storagetest.NewLivedIn(t, open)
	b := &bench{
		parts: &parts{
			fail: map[string]int{}, hold: map[string]chan struct{}{}, entered: make(chan string, 10), cut: make(chan string, 10),
			newest: map[string]time.Time{}, before: map[string]time.Time{},
		},
		db: db, dir: filepath.Join(t.TempDir(), "exports"), wake: func() {},
	}
	b.at = privacy.Place{OrganizationID: setup.OrganizationID, ProjectID: setup.Project.ID, Number: setup.Project.Number}
	b.by = auditlog.Actor{UserID: setup.UserID}
	if strings.HasSuffix(t.Name(), "PostgreSQL") {
		b.lease = 2 * time.Second
	}
	b.store = privacystore.New(b.db)
	b.queue = b.store
	var err error
	b.archives, err = privacy.OpenArchives(b.dir, rand.Reader)
	must(t, err)
	b.service = privacy.NewService(privacy.Params{
		Store: b.store, Archives: b.archives, Alone: b.lease == 0, Guard: free, Clock: b.now, Random: rand.Reader,
		Wake: func() { b.wake() },
	})
	return b
}

func free() error { return nil }

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work has a worker of its own process do jobs until the test ends or stop is
// called, which waits for it.
func (b *bench) work(t *testing.T) (stop func()) {
	t.Helper()
	var owner [16]byte
	_, _ = rand.Read(owner[:])
	w := privacy.NewWorker(privacy.WorkerParams{
		Queue: b.queue, Archives: b.archives, Intake: b.parts, Events: events{b.parts}, Replays: replays{b.parts}, Customers: b.parts,
		Owner: owner, LeaseFor: b.lease, KeepArchives: time.Hour, Guard: free, Clock: b.now, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler),
	})
	b.wake = w.Wake
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

func (b *bench) create(t testing.TB, kind privacy.Kind, user string) privacy.Job {
	t.Helper()
	j, err := b.service.Create(t.Context(), b.by, b.at, kind, privacy.Person{UserID: user})
	must(t, err)
	return j
}

func (b *bench) get(t testing.TB, jobID string) privacy.Job {
	t.Helper()
	j, err := b.service.Get(t.Context(), b.at, jobID)
	must(t, err)
	return j
}

// await waits until a job has succeeded; the progress never falls.
func (b *bench) await(t testing.TB, jobID string) privacy.Job {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for last, end := int64(0), time.After(30*time.Second); ; {
		j := b.get(t, jobID)
		if j.Progress < last {
			t.Fatalf("the progress falls from %d to %d", last, j.Progress)
		}
		last = j.Progress
		if j.Status == privacy.Succeeded {
			return j
		}
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("the job is %+v, not %s; %v", j, privacy.Succeeded, b.did())
		}
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(30 * time.Second); !is(); {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal(what)
		}
	}
}

// code is that of a fault; empty if there is none.
func code(err error) api.Code {
	if err == nil {
		return ""
	}
	return fault.CodeOf(err)
}

// actions are what the audit log says of a job, the latest first.
func (b *bench) actions(t testing.TB, jobID string) (all []auditlog.Entry) {
	t.Helper()
	list, err := sqlstore.New(b.db).ListEntries(t.Context(), b.at.OrganizationID, "", 1000)
	must(t, err)
	for _, e := range list {
		if e.Object.ID == jobID {
			all = append(all, e)
		}
	}
	return all
}
