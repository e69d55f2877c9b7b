package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func testCredential(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"every kind is read as it was made":    testCredentialKinds,
		"an imported key is what its row says": testImportLegacy,
		"a secret is taken once":               testSecretTaken,
		"an access token ends":                 testTokenExpires,
		"another kind's end is no expiry":      testKeyEnds,
		"a user who left is nobody":            testUserLeft,
		"a suspended organization pays first":  testSuspended,
		"revoking ends it at once":             testRevoke,
		"a list goes on where it stopped":      testList,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

// params describes a credential of a kind in the house's organization.
func (h *house) params(kind credential.Kind) credential.CreateParams {
	p := credential.CreateParams{Kind: kind, Name: "Ключ " + string(kind), OrganizationID: h.setup.OrganizationID}
	if kind == credential.Access {
		p.UserID, p.Lifetime = h.setup.UserID, time.Hour
		return p
	}
	p.ProjectID = h.setup.Project.ID
	return p
}

func (h *house) create(t *testing.T, p credential.CreateParams) (credential.Record, string) {
	t.Helper()
	r, secret, err := h.credentials.Create(t.Context(), p)
	if err != nil {
		t.Fatalf("create a credential: %v", err)
	}
	return r, secret
}

// mustAnswer checks the code that a secret is answered with; empty means that
// it is accepted.
func (h *house) mustAnswer(t *testing.T, secret string, want api.Code) {
	t.Helper()
	_, err := h.credentials.Authenticate(t.Context(), secret)
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want it accepted", err)
	case want != "" && (err == nil || fault.CodeOf(err) != want):
		t.Errorf("got %v, want %s", err, want)
	}
}

func testCredentialKinds(t *testing.T, h *house) {
	for i, kind := range []credential.Kind{
		credential.Browser, credential.Server, credential.Legacy, credential.Project, credential.CI, credential.Access,
	} {
		p := h.params(kind)
		if kind.Ingest() {
			p.Rate, p.Burst = new(0.1), new(3)
		}
		if kind == credential.Browser {
			p.Origins = []string{"https://shop.example", "http://localhost:5173"}
		}
		r, secret := h.create(t, p)
		want := credential.Credential{
			ID: r.ID, Number: int64(7 + i), Kind: kind, Name: p.Name, OrganizationID: p.OrganizationID,
			ProjectID: p.ProjectID, Project: 1, UserID: p.UserID, Origins: []string{}, Rate: p.Rate, Burst: p.Burst,
		}
		if kind == credential.Browser {
			want.Origins = p.Origins
		}
		wantEnd := time.Time{}
		if kind == credential.Access {
			want.Project, want.Role, wantEnd = 0, account.RoleOwner, h.now.Add(time.Hour)
		}
		got, err := h.credentials.Authenticate(t.Context(), secret)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, authenticated: %s", kind, diff)
		}
		if diff := cmp.Diff(want, r.Credential); diff != "" {
			t.Errorf("%s, as created: %s", kind, diff)
		}
		if !r.CreatedAt.Equal(h.now) || !r.ExpiresAt.Equal(wantEnd) || !r.RevokedAt.IsZero() || r.Suspended {
			t.Errorf("%s: times %s, %s, %s", kind, r.CreatedAt, r.ExpiresAt, r.RevokedAt)
		}
		if r.Prefix != secret[:4] || r.LastFour != secret[len(secret)-4:] {
			t.Errorf("%s: shown as %s…%s", kind, r.Prefix, r.LastFour)
		}
	}
}

func testImportLegacy(t *testing.T, h *house) {
	for _, secret := range []string{"apb_looks_like_a_browser_token", "aps_", "ключ из прошлого", "k", "Case", "case", "inner space"} {
		r, err := h.credentials.ImportLegacy(t.Context(), secret, h.params(credential.Server))
		if err != nil {
			t.Fatalf("%s: %v", secret, err)
		}
		c, err := h.credentials.Authenticate(t.Context(), secret)
		if err != nil || c.Kind != credential.Legacy || c.ID != r.ID {
			t.Errorf("%s: got %+v, %v", secret, c, err)
		}
		if shown := len([]rune(r.Prefix)) + len([]rune(r.LastFour)); shown*4 > len([]rune(secret)) {
			t.Errorf("%s: %d characters are shown", secret, shown)
		}
	}
	for _, secret := range []string{"CASE", "case ", "apb_looks_like_a_browser_toke"} {
		h.mustAnswer(t, secret, api.CodeUnauthenticated)
	}
}

func testSecretTaken(t *testing.T, h *house) {
	organizationID, projectID := h.addOrganization(t)
	p := h.params(credential.Legacy)
	if _, err := h.credentials.ImportLegacy(t.Context(), "shared", p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := h.credentials.ImportLegacy(t.Context(), "shared", p)
		if fault.CodeOf(err) != api.CodeValidationFailed {
			t.Errorf("got %v, want validation_failed", err)
		}
		p.OrganizationID, p.ProjectID = organizationID, projectID
	}
	if c, err := h.credentials.Authenticate(t.Context(), "shared"); err != nil || c.OrganizationID != h.setup.OrganizationID {
		t.Errorf("the first owner lost it: %+v, %v", c, err)
	}
	if r, _ := h.create(t, h.params(credential.Server)); r.Number != 8 {
		t.Errorf("the next number is %d, want 8: a refusal took one", r.Number)
	}
}

func testTokenExpires(t *testing.T, h *house) {
	_, secret := h.create(t, h.params(credential.Access))
	h.now = h.now.Add(time.Hour - time.Microsecond)
	h.mustAnswer(t, secret, "")
	h.now = h.now.Add(time.Microsecond) // the answer before is still in the cache
	h.mustAnswer(t, secret, api.CodeTokenExpired)
	h.now = h.now.Add(time.Hour)
	h.mustAnswer(t, secret, api.CodeTokenExpired)
}

func testKeyEnds(t *testing.T, h *house) {
	p := h.params(credential.Server)
	p.Lifetime = time.Minute
	_, secret := h.create(t, p)
	h.mustAnswer(t, secret, "")
	h.now = h.now.Add(time.Minute)
	h.mustAnswer(t, secret, api.CodeUnauthenticated)
}

func testUserLeft(t *testing.T, h *house) {
	h.mustAnswer(t, h.setup.AccessToken, "")
	exec(t, h.raw, "DELETE FROM memberships")
	h.now = h.now.Add(credential.DefaultTTL)
	h.mustAnswer(t, h.setup.AccessToken, api.CodeUnauthenticated)
	h.mustAnswer(t, h.setup.ServerKey, "")
}

func testSuspended(t *testing.T, h *house) {
	all := []string{h.setup.AccessToken, h.setup.BrowserToken, h.setup.ServerKey, h.setup.LegacyKey, h.setup.ProjectKey, h.setup.CIToken}
	exec(t, h.raw, "UPDATE organizations SET suspended_at = 1")
	for _, secret := range all {
		h.mustAnswer(t, secret, api.CodePaymentRequired)
	}
	exec(t, h.raw, "UPDATE organizations SET suspended_at = NULL")
	h.now = h.now.Add(credential.DefaultTTL)
	for _, secret := range all {
		h.mustAnswer(t, secret, "")
	}
}

func testRevoke(t *testing.T, h *house) {
	r, secret := h.create(t, h.params(credential.Server))
	h.mustAnswer(t, secret, "")
	organizationID, _ := h.addOrganization(t)
	for name, err := range map[string]error{
		"another organization's": h.credentials.Revoke(t.Context(), auditlog.Actor{}, credential.Ref{OrganizationID: organizationID, ID: r.ID}),
		"not an id":              h.credentials.Revoke(t.Context(), auditlog.Actor{}, credential.Ref{OrganizationID: h.setup.OrganizationID, ID: "\x00"}),
	} {
		if fault.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", name, err)
		}
	}
	h.mustAnswer(t, secret, "")
	first := h.now
	for range 2 {
		if err := h.credentials.Revoke(t.Context(), auditlog.Actor{}, credential.Ref{OrganizationID: h.setup.OrganizationID, ID: r.ID}); err != nil {
			t.Fatal(err)
		}
		h.mustAnswer(t, secret, api.CodeUnauthenticated)
		h.now = h.now.Add(time.Hour)
	}
	all, err := h.credentials.List(t.Context(), h.setup.OrganizationID, r.Number-1, 1)
	if err != nil || len(all) != 1 || !all[0].RevokedAt.Equal(first) {
		t.Errorf("revoked at %+v, %v, want %s", all, err, first)
	}
}

func testList(t *testing.T, h *house) {
	organizationID, _ := h.addOrganization(t)
	var got []string
	after := int64(0)
	for {
		page, err := h.credentials.List(t.Context(), h.setup.OrganizationID, after, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			got = append(got, fmt.Sprintf("%d %s", r.Number, r.Kind))
			after = r.Number
		}
		if len(page) < 4 {
			break
		}
	}
	want := []string{"1 browser", "2 server", "3 legacy", "4 project", "5 ci", "6 access"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if other, err := h.credentials.List(t.Context(), organizationID, 0, 10); err != nil || len(other) != 0 {
		t.Errorf("another organization sees %+v, %v", other, err)
	}
}
