package model

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Local is the name of the provider that every project has: package echo.
const Local = "echo"

// Params configures a [Service]; every member must be set.
type Params struct {
	Store  Store
	Cipher *Cipher
	// AllowPrivate says that providers may be in private networks.
	AllowPrivate bool
	// Open makes a provider of a connection.
	Open func(Connection) Provider
	// Local is the provider of the name [Local].
	Local Provider
	// Clock gives the time; it should keep the monotonic reading.
	Clock func() time.Time
	// Random is where ids and nonces come from: crypto/rand.Reader.
	Random io.Reader
}

// Service manages the providers of projects, and finds them for those who
// call.
type Service struct {
	params Params
	cache  *cache
}

// NewService returns a Service.
func NewService(p Params) *Service { return &Service{params: p, cache: newCache()} }

// Place names a provider and who changes it.
type Place struct {
	Actor                           auditlog.Actor
	OrganizationID, ProjectID, Name string
}

// Content is what a provider is to be.
type Content struct {
	Settings
	// APIKey is nil to leave the key as it is, and empty for none.
	APIKey *Secret
}

// Put makes or replaces a provider, and reports whether it was made. When
// nothing changes, nothing is written. Faults: validation_failed, also when
// the key is to stay while the host changes; conflict, when the name is
// reserved or the project has too many; unavailable.
func (s *Service) Put(ctx context.Context, at Place, c Content) (r Record, created bool, err error) {
	if err := s.check(at, &c); err != nil {
		return Record{}, false, err
	}
	full, err := s.params.Store.PutProvider(ctx, PutParams{
		ProjectID: at.ProjectID, Name: at.Name, Limit: MaxProviders,
		Change: func(before *Record) (*Record, auditlog.Entry, error) {
			after, entry, err := s.change(at, &c, before)
			if err != nil {
				return nil, entry, err
			}
			created = before == nil
			if after == nil {
				r = *before
			} else {
				r = *after
			}
			return after, entry, nil
		},
	})
	switch {
	case err != nil:
		return Record{}, false, fmt.Errorf("put a model provider: %w", err)
	case full:
		return Record{}, false, fault.New(api.CodeConflict, "a project has at most %d model providers", MaxProviders)
	}
	s.cache.forget(at.ProjectID, at.Name)
	return r, created, nil
}

func (s *Service) check(at Place, c *Content) error {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if !namePattern.MatchString(at.Name) {
		return fault.Field("provider", "the name of a model provider is 1 to 64 letters a to z, digits, _ and -")
	}
	if at.Name == Local {
		return reserved()
	}
	if c.APIKey != nil {
		if err := validateSecret(*c.APIKey); err != nil {
			return err
		}
	}
	return c.validate(s.params.AllowPrivate)
}

// change makes the provider anew; nil if it would be the same.
func (s *Service) change(at Place, c *Content, before *Record) (*Record, auditlog.Entry, error) {
	now := s.now()
	after := &Record{ProjectID: at.ProjectID, Name: at.Name, Settings: c.Settings, CreatedAt: now, UpdatedAt: now}
	action := auditlog.ModelProviderCreated
	if before != nil {
		action, after.CreatedAt, after.Sealed = auditlog.ModelProviderUpdated, before.CreatedAt, before.Sealed
	}
	said, err := s.changeSecret(after, c, before)
	if err != nil {
		return nil, auditlog.Entry{}, err
	}
	if before != nil && before.Settings == after.Settings && said == "kept" {
		return nil, auditlog.Entry{}, nil
	}
	entry, err := s.entry(at, action, map[string]string{"host": hostOf(c.BaseURL), "api_key": said})
	return after, entry, err
}

// changeSecret sets the secret and says what became of it. Who may not read a
// secret may not have it sent to a host of their choice: it stays only with its
// host.
func (s *Service) changeSecret(after *Record, c *Content, before *Record) (said string, err error) {
	had := before != nil && len(before.Sealed.Bytes) > 0
	if c.APIKey == nil {
		if had && !sameHost(before.BaseURL, after.BaseURL) {
			return "", fault.Field("api_key", "api_key must be given when base_url leads to another host than before")
		}
		if !had {
			return none(before), nil
		}
		return "kept", nil
	}
	if had && s.equal(before, *c.APIKey) {
		return "kept", nil
	}
	if after.Sealed, err = s.params.Cipher.seal(s.params.Random, after, *c.APIKey); err != nil {
		return "", err
	}
	switch {
	case *c.APIKey != "":
		return "set", nil
	case had:
		return "removed", nil
	default:
		return none(before), nil
	}
}

// none says that there is no secret: of what was there before, that is no
// change.
func none(before *Record) string {
	if before == nil {
		return "none"
	}
	return "kept"
}

func (s *Service) equal(r *Record, secret Secret) bool {
	before, err := s.params.Cipher.open(r)
	return err == nil && subtle.ConstantTimeCompare([]byte(before), []byte(secret)) == 1
}

// Get returns a provider. Fault: not_found.
func (s *Service) Get(ctx context.Context, projectID, name string) (Record, error) {
	if name == Local {
		return local(projectID), nil
	}
	r, found, err := s.find(ctx, projectID, name)
	if err != nil {
		return Record{}, fmt.Errorf("find a model provider: %w", err)
	}
	if !found {
		return Record{}, noProvider()
	}
	return r, nil
}

func (s *Service) find(ctx context.Context, projectID, name string) (Record, bool, error) {
	if !namePattern.MatchString(name) {
		return Record{}, false, nil
	}
	return s.params.Store.FindProvider(ctx, projectID, name)
}

// List returns at most limit providers with names above after, in order of
// name. The provider echo is among them.
func (s *Service) List(ctx context.Context, projectID, after string, limit int) ([]Record, error) {
	all, err := s.params.Store.ListProviders(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list model providers: %w", err)
	}
	if after < Local {
		i, _ := slices.BinarySearchFunc(all, Local, func(r Record, name string) int { return strings.Compare(r.Name, name) })
		all = slices.Insert(all, i, local(projectID))
	}
	return all[:min(limit, len(all))], nil
}

// Delete deletes a provider. Faults: not_found; conflict, when the name is
// reserved; unavailable.
func (s *Service) Delete(ctx context.Context, at Place) error {
	if at.Name == Local {
		return reserved()
	}
	if !namePattern.MatchString(at.Name) {
		return noProvider()
	}
	entry, err := s.entry(at, auditlog.ModelProviderDeleted, nil)
	if err != nil {
		return err
	}
	found, err := s.params.Store.DeleteProvider(ctx, at.ProjectID, at.Name, entry)
	if err != nil {
		return fmt.Errorf("delete a model provider: %w", err)
	}
	if !found {
		return noProvider()
	}
	s.cache.forget(at.ProjectID, at.Name)
	return nil
}

func (s *Service) entry(at Place, action auditlog.Action, details map[string]string) (auditlog.Entry, error) {
	return auditlog.Source{Clock: s.now, Random: s.params.Random}.New(auditlog.Entry{
		OrganizationID: at.OrganizationID, ProjectID: at.ProjectID, Actor: at.Actor, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectModelProvider, ID: at.Name}, Details: details,
	})
}

func (s *Service) now() time.Time { return s.params.Clock().UTC().Truncate(time.Microsecond) }

// local is what is shown of the provider that nobody has made.
func local(projectID string) Record { return Record{ProjectID: projectID, Name: Local} }

func noProvider() error { return fault.New(api.CodeNotFound, "there is no such model provider") }

func reserved() error {
	return fault.New(api.CodeConflict, "the provider echo is part of the server and cannot be changed")
}
