package webhook

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// MaxEndpoints is how many endpoints a project may have.
	MaxEndpoints = 20
	// DefaultOverlap is how long a replaced secret signs beside the new one.
	DefaultOverlap = 24 * time.Hour
)

// Params configures a [Service]; every member must be set.
type Params struct {
	Store Store
	// AllowPrivate says that endpoints may be in private networks.
	AllowPrivate bool
	Clock        func() time.Time
	// Random is where ids and secrets come from: crypto/rand.Reader.
	Random io.Reader
	// Wake tells the worker that there is something to send.
	Wake func()
}

// Service manages endpoints and shows deliveries.
type Service struct{ params Params }

// NewService returns a Service.
func NewService(p Params) *Service { return &Service{params: p} }

// Place names an endpoint and who changes it.
type Place struct {
	Actor                     auditlog.Actor
	OrganizationID, ProjectID string
	// EndpointID is empty if there is none yet.
	EndpointID string
}

// Create makes an endpoint and returns its secret, which is shown once.
// Faults: validation_failed; conflict, when the project has too many;
// unavailable.
func (s *Service) Create(ctx context.Context, at Place, c Content) (Endpoint, string, error) {
	if err := c.validate(s.params.AllowPrivate); err != nil {
		return Endpoint{}, "", err
	}
	now := s.now()
	secret, err := mintSecret(s.params.Random)
	if err != nil {
		return Endpoint{}, "", err
	}
	if at.EndpointID, err = id.New(now, s.params.Random); err != nil {
		return Endpoint{}, "", err
	}
	e := Endpoint{
		ID: at.EndpointID, ProjectID: at.ProjectID, Content: c, Secrets: Secrets{Current: secret}, State: Enabled, CreatedAt: now,
	}
	entry, err := s.entry(at, auditlog.WebhookCreated, map[string]string{"host": hostOf(c.URL)})
	if err != nil {
		return Endpoint{}, "", err
	}
	made, err := s.params.Store.CreateEndpoint(ctx, e, MaxEndpoints, entry)
	if err != nil {
		return Endpoint{}, "", fmt.Errorf("make a webhook endpoint: %w", err)
	}
	if !made {
		return Endpoint{}, "", fault.New(api.CodeConflict, "a project has at most %d webhook endpoints", MaxEndpoints)
	}
	return e, secret, nil
}

// Get returns an endpoint. Fault: not_found.
func (s *Service) Get(ctx context.Context, projectID, endpointID string) (Endpoint, error) {
	if id.Valid(endpointID) {
		e, found, err := s.params.Store.FindEndpoint(ctx, projectID, endpointID)
		if err != nil {
			return Endpoint{}, fmt.Errorf("find a webhook endpoint: %w", err)
		}
		if found {
			return e, nil
		}
	}
	return Endpoint{}, noEndpoint()
}

// List returns at most limit endpoints with ids above after, in order of id.
func (s *Service) List(ctx context.Context, projectID, after string, limit int) ([]Endpoint, error) {
	all, err := s.params.Store.ListEndpoints(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list webhook endpoints: %w", err)
	}
	return all, nil
}

// Edit is a change to an endpoint: what is nil stays.
type Edit struct {
	URL, Description *string
	Types            []Type
	LowBalance       []Threshold
	Enabled          *bool
}

// Update changes an endpoint. Faults: validation_failed, not_found,
// unavailable.
func (s *Service) Update(ctx context.Context, at Place, c Edit) (Endpoint, error) {
	details := map[string]string{}
	if c.Enabled != nil {
		details["enabled"] = fmt.Sprint(*c.Enabled)
	}
	if c.URL != nil {
		details["host"] = hostOf(*c.URL)
	}
	entry, err := s.entry(at, auditlog.WebhookUpdated, details)
	if err != nil {
		return Endpoint{}, err
	}
	e, err := s.update(ctx, at, entry, func(e *Endpoint) error {
		c.apply(e, entry.At)
		return e.validate(s.params.AllowPrivate)
	})
	if err == nil {
		s.params.Wake() // what has waited may go now
	}
	return e, err
}

// apply changes the members that are to be changed. Without balance.low there
// are no thresholds.
func (c *Edit) apply(e *Endpoint, now time.Time) {
	if c.URL != nil {
		e.URL = *c.URL
	}
	if c.Description != nil {
		e.Description = *c.Description
	}
	if c.Types != nil {
		e.Types = c.Types
		if !slices.Contains(c.Types, BalanceLow) {
			e.LowBalance = nil
		}
	}
	if c.LowBalance != nil {
		e.LowBalance = c.LowBalance
	}
	switch {
	case c.Enabled == nil || *c.Enabled == (e.State == Enabled):
	case *c.Enabled:
		e.State, e.Reason, e.EndedAt, e.FailingSince = Enabled, "", time.Time{}, time.Time{}
	default:
		e.State, e.Reason, e.EndedAt = Disabled, Asked, now
	}
}

// RotateSecret replaces an endpoint's secret and returns the new one, which is
// shown once. Both sign until the overlap is over. Faults: not_found,
// unavailable.
func (s *Service) RotateSecret(ctx context.Context, at Place, overlap time.Duration) (Endpoint, string, error) {
	secret, err := mintSecret(s.params.Random)
	if err != nil {
		return Endpoint{}, "", err
	}
	entry, err := s.entry(at, auditlog.WebhookSecretRotated, nil)
	if err != nil {
		return Endpoint{}, "", err
	}
	e, err := s.update(ctx, at, entry, func(e *Endpoint) error {
		e.Secrets = e.Secrets.rotate(secret, entry.At, overlap)
		return nil
	})
	return e, secret, err
}

// Delete deletes an endpoint with its deliveries. Faults: not_found,
// unavailable.
func (s *Service) Delete(ctx context.Context, at Place) error {
	entry, err := s.entry(at, auditlog.WebhookDeleted, nil)
	if err != nil {
		return err
	}
	_, err = s.update(ctx, at, entry, func(e *Endpoint) error {
		e.State, e.Reason, e.EndedAt, e.FailingSince, e.Secrets = Deleted, "", entry.At, time.Time{}, Secrets{}
		return nil
	})
	return err
}

func (s *Service) update(ctx context.Context, at Place, entry auditlog.Entry, change func(*Endpoint) error) (Endpoint, error) {
	if !id.Valid(at.EndpointID) {
		return Endpoint{}, noEndpoint()
	}
	e, found, err := s.params.Store.UpdateEndpoint(ctx, UpdateParams{
		ProjectID: at.ProjectID, EndpointID: at.EndpointID, Change: change, Entry: entry,
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("change a webhook endpoint: %w", err)
	}
	if !found {
		return Endpoint{}, noEndpoint()
	}
	return e, nil
}

func (s *Service) entry(at Place, action auditlog.Action, details map[string]string) (auditlog.Entry, error) {
	return auditlog.Source{Clock: s.now, Random: s.params.Random}.New(auditlog.Entry{
		OrganizationID: at.OrganizationID, ProjectID: at.ProjectID, Actor: at.Actor, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectWebhook, ID: at.EndpointID}, Details: details,
	})
}

func (s *Service) now() time.Time { return s.params.Clock().UTC().Truncate(time.Microsecond) }

// hostOf is what the audit log shows of a URL: its path may be a secret.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func noEndpoint() error { return fault.New(api.CodeNotFound, "there is no such webhook endpoint") }
