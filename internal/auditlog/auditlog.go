// Package auditlog owns what may be said of a change to accounts: who made it,
// from where, to what. It never makes the change, and it has nothing to do
// with package audit, which compares the event stores.
//
// Invariants:
//   - an entry is written in the transaction of the change that it tells of,
//     so that there is neither without the other;
//   - an entry holds no secret and is never altered;
//   - an organization's entries are seen by that organization only.
package auditlog

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/id"
)

// Action names what was done. It is part of the API: never renamed.
type Action string

// The actions.
const (
	KeyCreated         Action = "key.created"
	KeyImported        Action = "key.imported"
	KeyRotated         Action = "key.rotated"
	KeyRevoked         Action = "key.revoked"
	MemberRoleChanged  Action = "member.role_changed"
	MemberRemoved      Action = "member.removed"
	InvitationCreated  Action = "invitation.created"
	InvitationAccepted Action = "invitation.accepted"
	InvitationRevoked  Action = "invitation.revoked"
	ProjectCreated     Action = "project.created"
	ProjectRenamed     Action = "project.renamed"
	// ProjectRetentionChanged says to what, in days; empty is as the server's
	// setting says.
	ProjectRetentionChanged Action = "project.retention_changed"
	OrganizationCreated     Action = "organization.created"
	OrganizationRenamed     Action = "organization.renamed"
	OrganizationSuspended   Action = "organization.suspended"
	OrganizationResumed     Action = "organization.resumed"
	// OrganizationPlanChanged says from which plan to which; empty is the
	// default one.
	OrganizationPlanChanged Action = "organization.plan_changed"
	SessionLogin            Action = "session.login"
	// SessionLoginFailed is written only when the user exists.
	SessionLoginFailed Action = "session.login_failed"
	// SessionRefreshReused says that a spent refresh token came again and that
	// the session was ended for it.
	SessionRefreshReused Action = "session.refresh_reused"
	SessionLogout        Action = "session.logout"
	PasswordChanged      Action = "password.changed"
	WebhookCreated       Action = "webhook.created"
	WebhookUpdated       Action = "webhook.updated"
	WebhookDeleted       Action = "webhook.deleted"
	WebhookSecretRotated Action = "webhook.secret_rotated"
	ModelProviderCreated Action = "model_provider.created"
	ModelProviderUpdated Action = "model_provider.updated"
	ModelProviderDeleted Action = "model_provider.deleted"
	ReplayDeleted        Action = "replay.deleted"
	AlertCreated         Action = "alert.created"
	AlertUpdated         Action = "alert.updated"
	AlertDeleted         Action = "alert.deleted"
	AlertMuted           Action = "alert.muted"
	AlertUnmuted         Action = "alert.unmuted"
	AlertResolved        Action = "alert.resolved"
	PrivacyJobCreated    Action = "privacy_job.created"
	PrivacyJobCancelled  Action = "privacy_job.cancelled"
	// PrivacyJobDownloaded says that somebody has asked for an archive.
	PrivacyJobDownloaded Action = "privacy_job.downloaded"
	// PrivacyJobFinished is nobody's doing: the job has come to its end.
	PrivacyJobFinished Action = "privacy_job.finished"
)

// The kinds of objects that entries are about.
const (
	ObjectKey           = "key"
	ObjectMember        = "member"
	ObjectInvitation    = "invitation"
	ObjectProject       = "project"
	ObjectOrganization  = "organization"
	ObjectSession       = "session"
	ObjectUser          = "user"
	ObjectWebhook       = "webhook"
	ObjectModelProvider = "model_provider" // by its name
	ObjectReplay        = "replay"         // by the SHA-256 of the session's id, in hex
	ObjectAlert         = "alert"
	ObjectPrivacyJob    = "privacy_job"
)

// Actor is who makes a change. The zero Actor is the operator at the machine.
type Actor struct {
	// UserID is empty for the operator.
	UserID string
	// RequestID and Address are those of the request, as text; empty when
	// there is none.
	RequestID string
	Address   string
}

// Object is what a change is made to.
type Object struct {
	Kind string
	ID   string
}

// Entry tells of one change.
type Entry struct {
	// ID sorts by the time of the change.
	ID             string
	OrganizationID string
	// ProjectID is empty when the change is not to a project or within one.
	ProjectID string
	At        time.Time
	Actor     Actor
	Action    Action
	Object    Object
	// Details are a few more words, such as the old and the new role. Never a
	// secret.
	Details map[string]string
}

// Source makes entries: it has the clock and the randomness that their ids
// need.
type Source struct {
	Clock  func() time.Time
	Random io.Reader
}

// New completes an entry with its id and its time.
func (s Source) New(e Entry) (Entry, error) {
	e.At = s.Clock()
	var err error
	if e.ID, err = id.New(e.At, s.Random); err != nil {
		return Entry{}, fmt.Errorf("name an audit entry: %w", err)
	}
	return e, nil
}

// Store keeps entries. They get there with the changes they tell of.
type Store interface {
	// ListEntries returns at most limit entries of an organization with ids
	// below before, or any when that is empty, the highest id first.
	ListEntries(ctx context.Context, organizationID, before string, limit int) ([]Entry, error)
}

// Service shows entries.
type Service struct{ store Store }

// NewService returns a Service.
func NewService(store Store) *Service { return &Service{store: store} }

// List returns at most limit entries of an organization, newest first: those
// with ids below before, which is the last id of the page before this one, or
// empty. What is not an id is before everything: the list is empty.
func (s *Service) List(ctx context.Context, organizationID, before string, limit int) ([]Entry, error) {
	if before != "" && !id.Valid(before) {
		return nil, nil
	}
	all, err := s.store.ListEntries(ctx, organizationID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list audit entries: %w", err)
	}
	return all, nil
}
