package storagetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
)

func testRotation(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"both work while they overlap":            testRotate,
		"without an overlap the old ends at once": testRotateAtOnce,
		"what has ended is not rotated":           testRotateEnded,
		"a project's keys are listed by kind":     testListProject,
		"a key is found by what it is":            testRef,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func (h *house) rotate(t testing.TB, r credential.Record, overlap time.Duration) (credential.Record, string, error) {
	t.Helper()
	return h.credentials.Rotate(t.Context(), credential.RotateParams{
		Actor: h.owner(), Ref: credential.Ref{OrganizationID: h.setup.OrganizationID, ID: r.ID}, Overlap: overlap,
	})
}

func testRotate(t *testing.T, h *house) {
	p := h.params(credential.Browser)
	p.Origins, p.Rate, p.Burst = []string{"https://shop.example"}, new(0.5), new(7)
	old, oldSecret := h.create(t, p)
	h.now = h.now.Add(time.Minute)
	fresh, secret, err := h.rotate(t, old, time.Hour)
	must(t, err)
	want := old.Credential
	want.ID, want.Number = fresh.ID, old.Number+1
	if diff := cmp.Diff(want, fresh.Credential); diff != "" || fresh.ID == old.ID || !fresh.ExpiresAt.IsZero() {
		t.Errorf("the new one ends %s: %s", fresh.ExpiresAt, diff)
	}
	h.mustNote(t, auditlog.KeyRotated, h.setup.UserID, old.ID)
	h.now = h.now.Add(time.Hour - time.Microsecond)
	h.mustAnswer(t, oldSecret, "")
	h.mustAnswer(t, secret, "")
	// Again, with an overlap that would go on longer: it does not.
	_, _, err = h.rotate(t, old, credential.MaxOverlap)
	must(t, err)
	h.now = h.now.Add(time.Microsecond)
	h.mustAnswer(t, oldSecret, api.CodeUnauthenticated)
	h.mustAnswer(t, secret, "")
	for _, overlap := range []time.Duration{-1, credential.MaxOverlap + 1} {
		_, _, err = h.rotate(t, fresh, overlap)
		mustFail(t, overlap.String(), err, api.CodeValidationFailed)
	}
}

func testRotateAtOnce(t *testing.T, h *house) {
	for _, overlap := range []time.Duration{0, time.Nanosecond} {
		old, oldSecret := h.create(t, h.params(credential.CI))
		h.mustAnswer(t, oldSecret, "")
		_, secret, err := h.rotate(t, old, overlap)
		must(t, err)
		h.mustAnswer(t, oldSecret, api.CodeUnauthenticated)
		h.mustAnswer(t, secret, "")
	}
}

func testRotateEnded(t *testing.T, h *house) {
	revoked, _ := h.create(t, h.params(credential.Server))
	must(t, h.credentials.Revoke(t.Context(), h.owner(), credential.Ref{OrganizationID: h.setup.OrganizationID, ID: revoked.ID}))
	p := h.params(credential.Server)
	p.Lifetime = time.Minute
	expired, _ := h.create(t, p)
	token, _ := h.create(t, h.params(credential.Access))
	h.now = h.now.Add(time.Minute)
	before := count(t, h.raw, "SELECT COUNT(*) FROM credentials")
	_, _, err := h.rotate(t, revoked, time.Hour)
	mustFail(t, "revoked", err, api.CodeConflict)
	_, _, err = h.rotate(t, expired, time.Hour)
	mustFail(t, "expired", err, api.CodeConflict)
	_, _, err = h.rotate(t, token, time.Hour)
	mustFail(t, "an access token", err, api.CodeNotFound)
	_, _, err = h.rotate(t, credential.Record{}, time.Hour)
	mustFail(t, "none", err, api.CodeNotFound)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM credentials"); n != before {
		t.Errorf("%d credentials, want %d: a refusal made one", n, before)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'key.rotated'"); n != 0 {
		t.Errorf("%d rotations are noted, want none", n)
	}
}

func testListProject(t *testing.T, h *house) {
	q := credential.ListQuery{
		OrganizationID: h.setup.OrganizationID, ProjectID: h.setup.Project.ID, Limit: 2,
		Kinds: []credential.Kind{credential.Browser, credential.Server, credential.Legacy},
	}
	var got []credential.Kind
	for {
		page, err := h.credentials.ListProject(t.Context(), q)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.Kind)
			q.After = r.Number
		}
	}
	if diff := cmp.Diff(q.Kinds, got); diff != "" {
		t.Error(diff)
	}
	other, theirs := h.addOrganization(t)
	for what, change := range map[string]func(*credential.ListQuery){
		"no kind":              func(q *credential.ListQuery) { q.Kinds = nil },
		"part of a kind":       func(q *credential.ListQuery) { q.Kinds = []credential.Kind{"browse"} },
		"access tokens":        func(q *credential.ListQuery) { q.Kinds = []credential.Kind{credential.Access} },
		"another organization": func(q *credential.ListQuery) { q.OrganizationID = other },
		"another project":      func(q *credential.ListQuery) { q.ProjectID = theirs },
		"no project":           func(q *credential.ListQuery) { q.ProjectID = "\x00" },
	} {
		bad := q
		bad.After = 0
		change(&bad)
		if page, err := h.credentials.ListProject(t.Context(), bad); err != nil || len(page) != 0 {
			t.Errorf("%s: got %+v, %v", what, page, err)
		}
	}
}

func testRef(t *testing.T, h *house) {
	r, secret := h.create(t, h.params(credential.Server))
	good := credential.Ref{
		OrganizationID: h.setup.OrganizationID, ProjectID: h.setup.Project.ID, ID: r.ID,
		Kinds: []credential.Kind{credential.Browser, credential.Server},
	}
	_, theirs := h.addOrganization(t)
	for what, change := range map[string]func(*credential.Ref){
		"another project": func(r *credential.Ref) { r.ProjectID = theirs },
		"another kind":    func(r *credential.Ref) { r.Kinds = []credential.Kind{credential.CI} },
		"another id":      func(r *credential.Ref) { r.ID = theirs },
	} {
		bad := good
		change(&bad)
		mustFail(t, what, h.credentials.Revoke(t.Context(), h.owner(), bad), api.CodeNotFound)
	}
	h.mustAnswer(t, secret, "")
	must(t, h.credentials.Revoke(t.Context(), h.owner(), good))
	h.mustAnswer(t, secret, api.CodeUnauthenticated)
	h.mustNote(t, auditlog.KeyRevoked, h.setup.UserID, r.ID)
}
