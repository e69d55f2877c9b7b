package storagetest

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// house is a store with its services, a clock that a test moves, and a second
// connection to the rows.
type house struct {
	store       *sqlstore.Store
	accounts    *account.Service
	services    account.Services
	credentials *credential.Service
	audit       *auditlog.Service
	raw         *sql.DB
	now         time.Time
	setup       account.SetupResult
}

var (
	setupParams = account.SetupParams{Organization: "Shop", Project: "Web", Email: "Owner@Shop.Example"}
	// begun is when the clock of a house begins.
	begun = time.Date(2026, 5, 1, 10, 0, 0, 123456000, time.UTC)
)

// newHouse makes a store with nobody in it.
func newHouse(t testing.TB, open OpenFunc) *house {
	t.Helper()
	return houseIn(t, open(t, Tables))
}

func houseIn(t testing.TB, o sqldb.Options) *house {
	t.Helper()
	h := &house{store: sqlstore.New(Open(t, o)), raw: raw(t, o), now: begun}
	clock := func() time.Time { return h.now }
	h.accounts = account.NewService(account.Params{Store: h.store, Clock: clock, Random: rand.Reader})
	h.credentials = credential.NewService(credential.Params{Store: h.store, Clock: clock, Random: rand.Reader})
	h.services = account.NewServices(account.ServicesParams{
		Store: h.store, Clock: clock, Random: rand.Reader, AfterChange: h.credentials.AfterChange,
	})
	h.audit = auditlog.NewService(h.store)
	return h
}

// newLivedIn makes a store that has been set up, as all others of its engine
// have, but that the owner's password costs nothing to verify.
func newLivedIn(t testing.TB, open OpenFunc) *house {
	t.Helper()
	o := open(t, housed)
	h := houseIn(t, o)
	h.setup = setupOf(t, o, housed)
	return h
}

// addOrganization adds a second organization with a project and returns their
// ids.
func (h *house) addOrganization(t testing.TB) (organizationID, projectID string) {
	t.Helper()
	organizationID, projectID = "0196a1b2-c3d4-7e5f-8a6b-0123456789ab", "0196a1b2-c3d4-7e5f-8a6b-0123456789ac"
	exec(t, h.raw, `INSERT INTO organizations (id, name, created_at) VALUES ($1, 'Other', 0)`, organizationID)
	exec(t, h.raw, `INSERT INTO projects (id, number, organization_id, name, created_at) VALUES ($1, 77, $2, 'Theirs', 0)`,
		projectID, organizationID)
	return organizationID, projectID
}

func testAccount(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, OpenFunc){
		"setup makes one of each":            testSetup,
		"setup runs once":                    testSetupTwice,
		"of many setups at once one wins":    testSetupConcurrently,
		"a setup that fails leaves nothing":  testSetupFails,
		"a project is found by its own only": testFindProject,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func testSetup(t *testing.T, open OpenFunc) {
	h := newHouse(t, open)
	s, err := h.accounts.Setup(t.Context(), setupParams)
	if err != nil {
		t.Fatal(err)
	}
	if s.Project.Number != 1 || s.Email != "owner@shop.example" {
		t.Errorf("got project %d and email %s", s.Project.Number, s.Email)
	}
	for kind, secret := range map[credential.Kind]string{
		credential.Browser: s.BrowserToken, credential.Server: s.ServerKey, credential.Legacy: s.LegacyKey,
		credential.Project: s.ProjectKey, credential.CI: s.CIToken, credential.Access: s.AccessToken,
	} {
		c, err := h.credentials.Authenticate(t.Context(), secret)
		if err != nil || c.Kind != kind || c.OrganizationID != s.OrganizationID || c.Number < 1 || c.Number > 6 {
			t.Errorf("%s: got %+v, %v", kind, c, err)
		}
		access := kind == credential.Access
		if access && (c.UserID != s.UserID || c.Role != account.RoleOwner || c.Project != 0 || c.ProjectID != "") {
			t.Errorf("access token: got %+v", c)
		}
		if !access && (c.UserID != "" || c.Role != "" || c.Project != 1 || c.ProjectID != s.Project.ID) {
			t.Errorf("%s: got %+v", kind, c)
		}
	}
	for name, want := range map[string]int{"project": 1, "credential": 6} {
		if n := count(t, h.raw, "SELECT value FROM counters WHERE name = $1", name); n != want {
			t.Errorf("the %s counter is at %d, want %d", name, n, want)
		}
	}
	var hash string
	err = h.raw.QueryRowContext(t.Context(), "SELECT password_hash FROM users WHERE email = $1", s.Email).Scan(&hash)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := account.VerifyPassword(s.Password, hash); !ok || err != nil || !strings.Contains(hash, "$m=19456,t=2,p=1$") {
		t.Errorf("the password does not belong to its hash: %v", err)
	}
}

func testSetupTwice(t *testing.T, open OpenFunc) {
	h := newLivedIn(t, open)
	if _, err := h.accounts.Setup(t.Context(), setupParams); !errors.Is(err, account.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	for table, want := range map[string]int{"organizations": 1, "users": 1, "memberships": 1, "projects": 1, "credentials": 6} {
		if n := count(t, h.raw, "SELECT COUNT(*) FROM "+table); n != want {
			t.Errorf("%d %s, want %d", n, table, want)
		}
	}
}

// setupRecord makes what a setup stores, with one credential for each kind of
// key named.
func (h *house) setupRecord(t *testing.T, kinds ...credential.Kind) account.SetupRecord {
	t.Helper()
	newID := func() string {
		ref, err := id.New(h.now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	r := account.SetupRecord{
		Organization: account.Organization{ID: newID(), Name: "o", CreatedAt: h.now},
		Owner:        account.User{ID: newID(), Email: "a@b", PasswordHash: "$argon2id$x", CreatedAt: h.now},
	}
	r.Project = account.Project{ID: newID(), Name: "p", OrganizationID: r.Organization.ID}
	for _, kind := range kinds {
		d, _, err := credential.NewDraft(credential.CreateParams{
			Kind: kind, Name: "n", OrganizationID: r.Organization.ID, ProjectID: r.Project.ID,
		}, h.now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		r.Credentials = append(r.Credentials, d)
	}
	return r
}

func testSetupConcurrently(t *testing.T, open OpenFunc) {
	h := newHouse(t, open)
	const setups = 8
	var wg sync.WaitGroup
	begin := make(chan struct{})
	results := make(chan error, setups)
	for range setups {
		r := h.setupRecord(t, credential.Server)
		wg.Go(func() {
			<-begin
			_, err := h.store.CreateSetup(t.Context(), r)
			results <- err
		})
	}
	close(begin)
	wg.Wait()
	close(results)
	won := 0
	for err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, account.ErrExists) {
			t.Errorf("a loser got %v, want ErrExists", err)
		}
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM organizations"); won != 1 || n != 1 {
		t.Errorf("%d setups won and left %d organizations, want 1", won, n)
	}
}

func testSetupFails(t *testing.T, open OpenFunc) {
	h := newHouse(t, open)
	r := h.setupRecord(t, credential.Server)
	r.Credentials = append(r.Credentials, r.Credentials[0]) // the last row repeats the secret
	if _, err := h.store.CreateSetup(t.Context(), r); !errors.Is(err, credential.ErrTaken) {
		t.Fatalf("got %v, want ErrTaken", err)
	}
	for _, table := range []string{"organizations", "users", "memberships", "projects", "credentials"} {
		if n := count(t, h.raw, "SELECT COUNT(*) FROM "+table); n != 0 {
			t.Errorf("%d %s left behind", n, table)
		}
	}
	s, err := h.accounts.Setup(t.Context(), setupParams)
	if err != nil || s.Project.Number != 1 {
		t.Errorf("the setup after it: project %d, %v", s.Project.Number, err)
	}
}

func testFindProject(t *testing.T, open OpenFunc) {
	h := newLivedIn(t, open)
	otherOrganization, otherProject := h.addOrganization(t)
	got, err := h.services.Projects.Get(t.Context(), h.setup.OrganizationID, h.setup.Project.ID)
	want := account.Project{ID: h.setup.Project.ID, Number: 1, Name: "Web", OrganizationID: h.setup.OrganizationID, CreatedAt: h.now}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := h.services.Projects.Get(t.Context(), otherOrganization, otherProject); err != nil || got.Number != 77 {
		t.Errorf("got %+v, %v", got, err)
	}
	var first error
	for name, projectID := range map[string]string{
		"another organization's": otherProject,
		"nobody's":               "0196a1b2-c3d4-7e5f-8a6b-0123456789ad",
		"upper case":             strings.ToUpper(h.setup.Project.ID),
		"empty":                  "",
		"NUL":                    "\x00",
		"NUL inside":             h.setup.Project.ID[:35] + "\x00",
		"not UTF-8":              "\xff" + h.setup.Project.ID[1:],
		"white space":            h.setup.Project.ID + " ",
	} {
		_, err := h.services.Projects.Get(t.Context(), h.setup.OrganizationID, projectID)
		if fault.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", name, err)
			continue
		}
		if first == nil {
			first = err
		}
		if err.Error() != first.Error() {
			t.Errorf("%s: %q can be told from %q", name, err, first)
		}
	}
}
