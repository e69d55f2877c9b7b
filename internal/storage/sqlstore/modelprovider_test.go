package sqlstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// opened is a provider that only remembers what it was opened with.
type opened struct{ model.Connection }

func (*opened) Complete(context.Context, *model.Request, func(string)) (*model.Completion, error) {
	return nil, errors.New("nobody calls it")
}

// providers is a store with one project and the service of its providers.
type providers struct {
	*model.Service

	store *sqlstore.Store
	log   *auditlog.Service
	setup account.SetupResult
	now   time.Time
}

func newCipher(t *testing.T, of byte) *model.Cipher {
	t.Helper()
	c, err := model.NewCipher(bytes.Repeat([]byte{of}, model.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *providers) service(t *testing.T, key byte) *model.Service {
	t.Helper()
	return model.NewService(model.Params{
		Store: p.store, Cipher: newCipher(t, key), Clock: func() time.Time { return p.now }, Random: rand.Reader,
		Open: func(c model.Connection) model.Provider { return &opened{c} }, Local: &opened{},
	})
}

// eachProviders runs a test on both engines.
func eachProviders(t *testing.T, test func(t *testing.T, p *providers)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &providers{store: sqlstore.New(storagetest.New(t, open)), now: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
			p.log = auditlog.NewService(p.store)
			accounts := account.NewService(account.Params{Store: p.store, Clock: time.Now, Random: rand.Reader})
			var err error
			if p.setup, err = accounts.Setup(t.Context(), account.SetupParams{Organization: "o", Project: "p", Email: "a@b"}); err != nil {
				t.Fatal(err)
			}
			p.Service = p.service(t, 1)
			test(t, p)
		})
	}
}

func (p *providers) at(name string) model.Place {
	return model.Place{
		Actor: auditlog.Actor{UserID: p.setup.UserID}, OrganizationID: p.setup.OrganizationID, ProjectID: p.setup.Project.ID, Name: name,
	}
}

func content(url string, key *model.Secret) model.Content {
	return model.Content{Settings: model.Settings{BaseURL: url, Timeout: time.Minute, RequestsPerMinute: 60, MaxConcurrent: 4}, APIKey: key}
}

// put puts a provider and moves the clock on by an hour.
func (p *providers) put(t *testing.T, name string, c model.Content) (model.Record, bool) {
	t.Helper()
	r, created, err := p.Put(t.Context(), p.at(name), c)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p.now = p.now.Add(time.Hour)
	return r, created
}

// resolve opens a provider.
func (p *providers) resolve(t *testing.T, name string) *opened {
	t.Helper()
	got, err := p.Resolve(t.Context(), p.setup.Project.ID, name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got.(*opened)
}

// entries are the latest entries about providers, the newest first.
func (p *providers) entries(t *testing.T) []string {
	t.Helper()
	all, err := p.log.List(t.Context(), p.setup.OrganizationID, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, e := range all {
		if e.Object.Kind == auditlog.ObjectModelProvider {
			texts = append(texts, fmt.Sprintf("%s %s %s %s", e.Action, e.Object.ID, e.Details["host"], e.Details["api_key"]))
		}
	}
	return texts
}

const secret = model.Secret("sk-proj-0123456789abcdefWXYZ")

// TestModelProviders: what becomes of a provider that is put again and again.
func TestModelProviders(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		made, created := p.put(t, "openai", content("https://api.example.com/v1/", new(secret)))
		if !created || made.BaseURL != "https://api.example.com/v1" || made.Sealed.Prefix != "sk-p" || made.Sealed.LastFour != "WXYZ" {
			t.Errorf("%v %+v", created, made)
		}
		if bytes.Contains(made.Sealed.Bytes, []byte("0123456789")) {
			t.Error("the secret is stored as it is")
		}
		want := &opened{model.Connection{BaseURL: "https://api.example.com/v1", APIKey: secret, Timeout: time.Minute, RequestsPerMinute: 60, MaxConcurrent: 4}}
		first := p.resolve(t, "openai")
		if diff := cmp.Diff(want, first); diff != "" {
			t.Error(diff)
		}

		// The same again changes nothing: not the row, not the log, and not what
		// is known of the provider's limits.
		for _, key := range []*model.Secret{nil, new(secret)} {
			if again, created := p.put(t, "openai", content("https://api.example.com/v1", key)); created || !cmp.Equal(again, made) {
				t.Errorf("%v %+v", created, again)
			}
		}
		if p.resolve(t, "openai") != first {
			t.Error("an unchanged provider was opened again")
		}

		// Another path keeps the key, a new key is used at once.
		p.put(t, "openai", content("https://api.example.com/v2", nil))
		if got := p.resolve(t, "openai"); got.BaseURL != "https://api.example.com/v2" || got.APIKey != secret {
			t.Errorf("%+v", got)
		}
		p.put(t, "openai", content("https://api.example.com/v2", new(model.Secret("short"))))
		if got := p.resolve(t, "openai"); got.APIKey != "short" {
			t.Error("the old key is used")
		}
		last, _ := p.put(t, "openai", content("https://api.example.com/v2", new(model.Secret(""))))
		if got := p.resolve(t, "openai"); got.APIKey != "" || last.Sealed.Prefix != "" || !last.CreatedAt.Equal(made.CreatedAt) || !last.UpdatedAt.After(made.UpdatedAt) {
			t.Errorf("%+v %+v", got, last)
		}
		if diff := cmp.Diff([]string{
			"model_provider.updated openai api.example.com removed", "model_provider.updated openai api.example.com set",
			"model_provider.updated openai api.example.com kept", "model_provider.created openai api.example.com set",
		}, p.entries(t)); diff != "" {
			t.Error(diff)
		}

		if err := p.Delete(t.Context(), p.at("openai")); err != nil {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), p.at("openai")); fault.CodeOf(err) != api.CodeNotFound {
			t.Error(err)
		}
		if _, err := p.Resolve(t.Context(), p.setup.Project.ID, "openai"); notSent(err) != `the project has no model provider of this name: "openai"` {
			t.Error(err)
		}
	})
}

// notSent is the message of an error that is final and not sent.
func notSent(err error) string {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Outcome != model.NotSent || e.Retryable {
		return fmt.Sprintf("not an error for good: %v", err)
	}
	return e.Message
}

// TestModelSecretStaysWithItsHost: who may not read a key may not have it sent
// to a host of their choice either.
func TestModelSecretStaysWithItsHost(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		p.put(t, "openai", content("https://api.example.com/v1", new(secret)))
		for _, url := range []string{"https://evil.example.com/v1", "http://api.example.com/v1", "https://api.example.com:8443/v1"} {
			_, _, err := p.Put(t.Context(), p.at("openai"), content(url, nil))
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != api.CodeValidationFailed || f.Details["field"] != "api_key" {
				t.Errorf("%s: %v", url, err)
			}
		}
		if got := p.resolve(t, "openai"); got.BaseURL != "https://api.example.com/v1" || got.APIKey != secret {
			t.Errorf("%+v", got)
		}
		p.put(t, "openai", content("https://other.example.com", new(model.Secret("other"))))
		if got := p.resolve(t, "openai"); got.BaseURL != "https://other.example.com" || got.APIKey != "other" {
			t.Errorf("%+v", got)
		}
	})
}

// TestModelSecretIsBound: a secret that is moved to another row, or that
// another key has encrypted, is not read.
func TestModelSecretIsBound(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		mine, _ := p.put(t, "mine", content("https://api.example.com", new(secret)))
		_, err := p.store.PutProvider(t.Context(), model.PutParams{
			ProjectID: p.setup.Project.ID, Name: "theirs", Limit: 10,
			Change: func(*model.Record) (*model.Record, auditlog.Entry, error) {
				moved := mine
				moved.Name = "theirs"
				entry, err := auditlog.Source{Clock: time.Now, Random: rand.Reader}.New(auditlog.Entry{
					OrganizationID: p.setup.OrganizationID, Action: auditlog.ModelProviderCreated,
					Object: auditlog.Object{Kind: auditlog.ObjectModelProvider, ID: "theirs"},
				})
				return &moved, entry, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Resolve(t.Context(), p.setup.Project.ID, "theirs"); notSent(err) != "the API key of the model provider cannot be read" {
			t.Error(err)
		}
		other := p.service(t, 2)
		if _, err := other.Resolve(t.Context(), p.setup.Project.ID, "mine"); !strings.Contains(notSent(err), "secret_key") || !errors.Is(err, model.ErrOtherKey) {
			t.Error(err)
		}
		ids, err := p.store.SecretKeyIDs(t.Context())
		if err != nil || len(ids) != 1 || !newCipher(t, 1).Owns(ids[0]) || newCipher(t, 2).Owns(ids[0]) {
			t.Errorf("%x, %v", ids, err)
		}
		// A new key makes it readable again, and the host may stay.
		if _, created, err := other.Put(t.Context(), p.at("mine"), content("https://api.example.com", new(secret))); err != nil || created {
			t.Fatal(created, err)
		}
		if got, err := other.Resolve(t.Context(), p.setup.Project.ID, "mine"); err != nil || got.(*opened).APIKey != secret {
			t.Error(got, err)
		}
	})
}

// TestModelProviderList: echo is in its place, on whichever page that is, and
// cannot be touched.
func TestModelProviderList(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		list := func(after string, limit int) (names []string) {
			t.Helper()
			all, err := p.List(t.Context(), p.setup.Project.ID, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				names = append(names, r.Name)
			}
			return names
		}
		if got := list("", 5); !cmp.Equal(got, []string{"echo"}) {
			t.Error(got)
		}
		for _, name := range []string{"zeta", "_x", "alpha", "echo-2", "b-1", "b_1", "9"} {
			p.put(t, name, content("http://localhost:11434/v1", nil))
		}
		var all []string
		for after := ""; ; after = all[len(all)-1] {
			page := list(after, 2)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
		}
		if diff := cmp.Diff([]string{"9", "_x", "alpha", "b-1", "b_1", "echo", "echo-2", "zeta"}, all); diff != "" {
			t.Error(diff)
		}
		if r, err := p.Get(t.Context(), p.setup.Project.ID, "echo"); err != nil || !r.CreatedAt.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
		if _, _, err := p.Put(t.Context(), p.at("echo"), content("http://x", nil)); fault.CodeOf(err) != api.CodeConflict {
			t.Error(err)
		}
		if err := p.Delete(t.Context(), p.at("echo")); fault.CodeOf(err) != api.CodeConflict {
			t.Error(err)
		}
		if got, err := p.Resolve(t.Context(), "any project", "echo"); err != nil || got == nil {
			t.Error(err)
		}
	})
}

// TestModelProviderLimit: a project has so many and no more, and what it has
// can still be changed.
func TestModelProviderLimit(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		for i := range model.MaxProviders {
			p.put(t, fmt.Sprintf("p%d", i), content("https://api.example.com", nil))
		}
		if _, _, err := p.Put(t.Context(), p.at("more"), content("https://api.example.com", nil)); fault.CodeOf(err) != api.CodeConflict {
			t.Error(err)
		}
		p.put(t, "p0", content("https://other.example.com", nil))
	})
}

// TestModelProvidersAtOnce: of many who make one at once, each succeeds, and
// what is there at the end is what one of them has said.
func TestModelProvidersAtOnce(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		var all sync.WaitGroup
		for i := range 8 {
			key := model.Secret(fmt.Sprintf("key-%d", i))
			all.Go(func() {
				if _, _, err := p.Put(t.Context(), p.at("one"), content(fmt.Sprintf("https://h%s.example.com", string(key)), &key)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := p.resolve(t, "one"); got.BaseURL != fmt.Sprintf("https://h%s.example.com", string(got.APIKey)) {
			t.Errorf("the key %q goes to %s", string(got.APIKey), got.BaseURL)
		}
	})
}

// TestModelProviderOfOthersIsNotFound: another project does not see it.
func TestModelProviderOfOthersIsNotFound(t *testing.T) {
	eachProviders(t, func(t *testing.T, p *providers) {
		p.put(t, "mine", content("https://api.example.com", new(secret)))
		const other = "01980000-0000-7000-8000-0000000000ff"
		if _, err := p.Get(t.Context(), other, "mine"); fault.CodeOf(err) != api.CodeNotFound {
			t.Error(err)
		}
		if _, err := p.Resolve(t.Context(), other, "mine"); notSent(err) != `the project has no model provider of this name: "mine"` {
			t.Error(err)
		}
		for _, name := range []string{"", "Mine", "mine ", strings.Repeat("a", 65)} {
			if _, err := p.Get(t.Context(), p.setup.Project.ID, name); fault.CodeOf(err) != api.CodeNotFound {
				t.Errorf("%q: %v", name, err)
			}
			if _, err := p.Resolve(t.Context(), p.setup.Project.ID, name); notSent(err) != "the project has no model provider of this name" && name != "" {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}
