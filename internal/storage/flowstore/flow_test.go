package flowstore_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/storage/flowstore"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// plain is a type of steps that do nothing.
type plain struct{ step.Program }

func (plain) Name() string { return "plain" }

func (plain) Schema() json.RawMessage { return json.RawMessage(`{"properties":{"value":true}}`) }

func (p plain) Compile(*step.Compiler) (step.Program, error) { return p, nil }

func (plain) Effect() step.Effect { return step.Pure }

// bench is a service on a store of its own.
type bench struct {
	db      *sqldb.DB
	service *flow.Service
	project string
	guard   error
}

func newBench(t *testing.T, open storagetest.OpenFunc) *bench {
	t.Helper()
	db, setup := storagetest.NewLivedIn(t, open)
	b := &bench{db: db}
	b.project = setup.Project.ID
	b.service = flow.NewService(flow.Params{
		Store: flowstore.New(b.db), Types: []step.Type{plain{}}, Guard: func() error { return b.guard }, Clock: time.Now,
	})
	return b
}

func onBothEngines(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, open))
		})
	}
}

// definition is one that differs from others by a text.
func definition(text string) []byte {
	return fmt.Appendf(nil, `{"steps":[{"id":"a","type":"plain","value":%q}],"output":null}`, text)
}

func (b *bench) publish(t *testing.T, slug, text string) (flow.Flow, bool, error) {
	t.Helper()
	return b.service.Publish(t.Context(), flow.PublishParams{ProjectID: b.project, Slug: slug, Source: definition(text), Format: flow.JSON})
}

// must publishes and demands a version, made now or not.
func (b *bench) must(t *testing.T, text string, version int64, created bool) flow.Flow {
	t.Helper()
	f, made, err := b.publish(t, "f", text)
	if err != nil || made != created || f.Shown.Number != version || f.Latest != version {
		t.Fatalf("%q: version %d of %d, made %v, %v; want %d, %v", text, f.Shown.Number, f.Latest, made, err, version, created)
	}
	return f
}

// refused demands a refusal and returns its details.
func refused(t *testing.T, code api.Code, err error) map[string]any {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return f.Details
}

func TestPublish(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		b.must(t, "one", 1, true)
		b.must(t, "one", 1, false)
		b.must(t, "two", 2, true)
		b.must(t, "one", 3, true) // equal to an older version is not equal to the latest
		if _, created, err := b.publish(t, "other", "one"); err != nil || !created {
			t.Errorf("another flow: %v, %v", created, err)
		}
		for _, slug := range []string{"", "F", "-a", "_a", "a b", "a/b", "ä", string(make([]byte, 65))} {
			_, _, err := b.publish(t, slug, "one")
			refused(t, api.CodeInvalidRequest, err)
		}
		for _, source := range []string{`{`, `{"steps":[],"steps":[]}`, ``} {
			_, _, err := b.service.Publish(t.Context(), flow.PublishParams{ProjectID: b.project, Slug: "f", Source: []byte(source), Format: flow.JSON})
			refused(t, api.CodeInvalidJSON, err)
		}
		b.guard = errors.New("the disk is full")
		_, _, err := b.publish(t, "f", "four")
		refused(t, api.CodeUnavailable, err)
		_, err = b.service.Pin(t.Context(), b.project, "f", 1)
		refused(t, api.CodeUnavailable, err)
		if f, err := b.service.Get(t.Context(), b.project, "f", 0); err != nil || f.Latest != 3 || f.Pinned != 0 {
			t.Errorf("something was written: %+v, %v", f, err)
		}
	})
}

// TestPublishAtOnce: equal definitions make one version, different ones make
// one each, with numbers that have no gap.
func TestPublishAtOnce(t *testing.T) {
	t.Parallel()
	const many = 20
	onBothEngines(t, func(t *testing.T, b *bench) {
		created := b.publishAtOnce(t, many, func(int) string { return "equal" })
		if len(created) != 1 || created[1] != "equal" {
			t.Errorf("equal ones made %v", created)
		}
		created = b.publishAtOnce(t, many, func(i int) string { return fmt.Sprint("text ", i) })
		if len(created) != many {
			t.Errorf("%d different ones made %v", many, created)
		}
		for n := int64(2); n < many+2; n++ {
			f, err := b.service.Get(t.Context(), b.project, "f", n)
			if want := string(definition(created[n])); err != nil || created[n] == "" || !sameJSON(t, string(f.Shown.Definition), want) {
				t.Errorf("version %d is %s, want %s; %v", n, f.Shown.Definition, want, err)
			}
		}
		_, err := b.service.Get(t.Context(), b.project, "f", many+2)
		refused(t, api.CodeFlowNotFound, err)
	})
}

// publishAtOnce publishes n definitions at once and returns those that have
// made a version, by its number.
func (b *bench) publishAtOnce(t *testing.T, n int, text func(int) string) map[int64]string {
	t.Helper()
	var mu sync.Mutex
	created := map[int64]string{}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			f, made, err := b.publish(t, "f", text(i))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if made {
				created[f.Shown.Number] = text(i)
			}
		})
	}
	all.Wait()
	return created
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	texts := [2]string{a, b}
	for i := range texts {
		var value any
		if err := json.Unmarshal([]byte(texts[i]), &value); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1]
}

// TestVersionsNeverChange: not even by somebody who writes SQL.
func TestVersionsNeverChange(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		f := b.must(t, "one", 1, true)
		b.must(t, "two", 2, true)
		for _, text := range []string{
			`UPDATE flow_versions SET definition = '{}' WHERE flow_id = $1`, `DELETE FROM flow_versions WHERE flow_id = $1`,
			`UPDATE flows SET pinned_version = 3 WHERE id = $1`, `INSERT INTO flow_versions VALUES ($1, 2, '{}', 0)`,
		} {
			err := b.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), text, f.ID)
				return err
			})
			if err == nil {
				t.Errorf("%s: done", text)
			}
		}
		v, err := b.service.Load(t.Context(), f.ID, 1)
		if err != nil || !sameJSON(t, string(v.Definition), string(definition("one"))) {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
