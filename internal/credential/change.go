package credential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// DefaultOverlap is how long a rotated credential should work beside the
	// new one.
	DefaultOverlap = 24 * time.Hour
	// MaxOverlap is the longest that it may.
	MaxOverlap = 30 * 24 * time.Hour
)

// Create makes a credential and returns it with its secret, which cannot be
// had again. Faults: validation_failed, not_found when the organization has no
// such project, unavailable.
func (s *Service) Create(ctx context.Context, p CreateParams) (Record, string, error) {
	d, secret, err := NewDraft(p, s.clock(), s.random)
	if err != nil {
		return Record{}, "", err
	}
	r, err := s.save(ctx, d, p.Actor, auditlog.KeyCreated)
	if err != nil {
		return Record{}, "", err
	}
	return r, secret, nil
}

// ImportLegacy stores a key that another system has made, as kind Legacy
// whatever p says. The secret is any text of 1–512 bytes that a header can
// carry. Faults: validation_failed (also when any organization uses the secret
// already), not_found when the organization has no such project, unavailable.
func (s *Service) ImportLegacy(ctx context.Context, secret string, p CreateParams) (Record, error) {
	if secret == "" || len(secret) > secretLimit || !utf8.ValidString(secret) ||
		strings.TrimSpace(secret) != secret || strings.ContainsFunc(secret, unicode.IsControl) {
		return Record{}, fault.Field("secret",
			"a key has 1 to %d bytes, no control characters and no spaces around it", secretLimit)
	}
	p.Kind = Legacy
	d, err := newDraft(p, secret, s.clock(), s.random)
	if err != nil {
		return Record{}, err
	}
	return s.save(ctx, d, p.Actor, auditlog.KeyImported)
}

func (s *Service) save(ctx context.Context, d Draft, by auditlog.Actor, action auditlog.Action) (Record, error) {
	e, err := s.entry(d, by, action)
	if err != nil {
		return Record{}, err
	}
	r, err := s.store.CreateCredential(ctx, d, e)
	// A secret that was refused before must work at once: the answer "unknown"
	// may be cached.
	s.Forget()
	switch {
	case errors.Is(err, ErrTaken):
		return Record{}, fault.Wrap(api.CodeValidationFailed, err, "the key is in use already").With("field", "secret")
	case errors.Is(err, ErrNotFound):
		return Record{}, fault.Wrap(api.CodeNotFound, err, "there is no such project")
	case err != nil:
		return Record{}, fmt.Errorf("create a credential: %w", err)
	}
	return r, nil
}

// entry tells what was done to a credential that is about to be stored.
func (s *Service) entry(d Draft, by auditlog.Actor, action auditlog.Action) (auditlog.Entry, error) {
	return s.source().New(auditlog.Entry{
		OrganizationID: d.OrganizationID, ProjectID: d.ProjectID, Actor: by, Action: action,
		Object:  auditlog.Object{Kind: auditlog.ObjectKey, ID: d.ID},
		Details: map[string]string{"kind": string(d.Kind), "name": d.Name},
	})
}

func (s *Service) source() auditlog.Source {
	return auditlog.Source{Clock: s.clock, Random: s.random}
}

// List returns at most limit credentials of an organization with numbers above
// after, in order of number, revoked ones included.
func (s *Service) List(ctx context.Context, organizationID string, after int64, limit int) ([]Record, error) {
	all, err := s.store.ListCredentials(ctx, organizationID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	return all, nil
}

// ListProject returns a page of a project's credentials of some kinds, in
// order of number, revoked ones included. A project that the organization does
// not have has none.
func (s *Service) ListProject(ctx context.Context, q ListQuery) ([]Record, error) {
	if !id.Valid(q.ProjectID) {
		return nil, nil
	}
	all, err := s.store.ListProjectCredentials(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list the credentials of a project: %w", err)
	}
	return all, nil
}

// Revoke ends a credential: at once here and where the announcement is heard,
// elsewhere within the TTL. Revoking again changes nothing. Faults: not_found,
// also for a credential of another organization; unavailable, with applied
// true when it is revoked and only the announcement failed.
func (s *Service) Revoke(ctx context.Context, by auditlog.Actor, ref Ref) error {
	_, err := s.change(ctx, ref, func(r Record) (Change, error) {
		if !r.RevokedAt.IsZero() {
			return Change{}, nil
		}
		e, err := s.entry(draftOf(r), by, auditlog.KeyRevoked)
		return Change{RevokedAt: s.clock(), Entries: []auditlog.Entry{e}}, err
	})
	if err = s.AfterChange(ctx, err); err != nil {
		return fmt.Errorf("revoke a credential: %w", err)
	}
	return nil
}

// RotateParams says which credential gets a successor.
type RotateParams struct {
	Actor auditlog.Actor
	Ref   Ref
	// Overlap is how long the old one still works, at most MaxOverlap; 0 ends
	// it at once. It never makes it work longer than it did.
	Overlap time.Duration
	// Lifetime is that of the new one; 0 means until it is revoked.
	Lifetime time.Duration
}

// Rotate makes a new credential like an old one, with another secret, and has
// the old one end. Events keep their identity: it goes by the kind, not by the
// key. Faults: validation_failed; not_found, also for one of another
// organization and for access tokens; conflict when the old one is revoked or
// has expired; unavailable, with applied true when it is done and only the
// announcement failed, which is made only if the old one ends within the TTL:
// then the new secret is lost, and its credential is to be rotated.
func (s *Service) Rotate(ctx context.Context, p RotateParams) (Record, string, error) {
	if p.Overlap < 0 || p.Overlap > MaxOverlap {
		return Record{}, "", fault.Field("overlap", "the overlap is between 0 and %d days", int(MaxOverlap.Hours()/24))
	}
	var secret string
	r, err := s.change(ctx, p.Ref, func(old Record) (c Change, err error) {
		c, secret, err = s.rotate(old, p)
		return c, err
	})
	if p.Overlap < s.ttl {
		err = s.AfterChange(ctx, err)
	}
	s.Forget()
	if err != nil {
		return Record{}, "", fmt.Errorf("rotate a credential: %w", err)
	}
	return r, secret, nil
}

func (s *Service) rotate(old Record, p RotateParams) (Change, string, error) {
	now := s.clock()
	switch {
	case old.Kind == Access:
		return Change{}, "", ErrNotFound
	case !old.RevokedAt.IsZero() || !old.ExpiresAt.IsZero() && !now.Before(old.ExpiresAt):
		return Change{}, "", fault.New(api.CodeConflict, "the credential is revoked or has expired")
	}
	d, secret, err := NewDraft(CreateParams{
		Kind: old.Kind, Name: old.Name, OrganizationID: old.OrganizationID, ProjectID: old.ProjectID,
		Origins: old.Origins, Rate: old.Rate, Burst: old.Burst, Lifetime: p.Lifetime,
	}, now, s.random)
	if err != nil {
		return Change{}, "", err
	}
	e, err := s.entry(draftOf(old), p.Actor, auditlog.KeyRotated)
	if err != nil {
		return Change{}, "", err
	}
	e.Details["replaced_by"] = d.ID
	c := Change{Replacement: &d, Entries: []auditlog.Entry{e}}
	end := now.Add(p.Overlap)
	switch {
	case p.Overlap < time.Microsecond || !end.After(old.CreatedAt):
		c.RevokedAt = now
	case old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt):
		c.ExpiresAt = end
	}
	return c, secret, nil
}

// draftOf returns of a record what entries tell.
func draftOf(r Record) Draft {
	return Draft{ID: r.ID, Kind: r.Kind, Name: r.Name, OrganizationID: r.OrganizationID, ProjectID: r.ProjectID}
}

// change has decide look at the credential that ref names.
func (s *Service) change(ctx context.Context, ref Ref, decide func(Record) (Change, error)) (Record, error) {
	err := ErrNotFound
	var r Record
	if id.Valid(ref.ID) {
		r, err = s.store.ChangeCredential(ctx, ref.OrganizationID, ref.ID, func(r Record) (Change, error) {
			if ref.ProjectID != "" && ref.ProjectID != r.ProjectID || len(ref.Kinds) > 0 && !slices.Contains(ref.Kinds, r.Kind) {
				return Change{}, ErrNotFound
			}
			return decide(r)
		})
	}
	if errors.Is(err, ErrNotFound) {
		return Record{}, fault.Wrap(api.CodeNotFound, err, "there is no such credential")
	}
	return r, err
}
