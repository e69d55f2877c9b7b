package httpapi

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// Sessions logs users in and out. The errors are described where
// account.Sessions has these methods.
type Sessions interface {
	Login(ctx context.Context, p account.LoginParams) (account.Tokens, error)
	Refresh(ctx context.Context, p account.RefreshParams) (account.Tokens, error)
	Logout(ctx context.Context, by auditlog.Actor, caller credential.Credential) error
	ChangePassword(ctx context.Context, p account.ChangePasswordParams) error
}

// Organizations are those of users; see account.Organizations.
type Organizations interface {
	List(ctx context.Context, userID, after string, limit int) ([]account.OwnOrganization, error)
	Get(ctx context.Context, userID, organizationID string) (account.OwnOrganization, error)
	Create(ctx context.Context, by auditlog.Actor, name string) (account.OwnOrganization, error)
	Rename(ctx context.Context, by auditlog.Actor, organizationID, name string) (account.OwnOrganization, error)
}

// Members are those of organizations; see account.Members.
type Members interface {
	List(ctx context.Context, organizationID, after string, limit int) ([]account.Member, error)
	SetRole(ctx context.Context, p account.MemberParams, role string) (account.Member, error)
	Remove(ctx context.Context, p account.MemberParams) error
}

// Invitations ask users into organizations; see account.Invitations.
type Invitations interface {
	Create(ctx context.Context, p account.InviteParams) (account.Invitation, string, error)
	List(ctx context.Context, organizationID, before string, limit int) ([]account.Invitation, error)
	Revoke(ctx context.Context, by auditlog.Actor, organizationID, invitationID string) error
	Accept(ctx context.Context, p account.AcceptParams) (account.Membership, error)
}

// Projects are those of organizations; see account.Projects. A project of
// another organization, or a malformed id, is not_found.
type Projects interface {
	List(ctx context.Context, organizationID string, after uint32, limit int) ([]account.Project, error)
	Get(ctx context.Context, organizationID, projectID string) (account.Project, error)
	Create(ctx context.Context, by auditlog.Actor, organizationID, name string) (account.Project, error)
	Update(ctx context.Context, by auditlog.Actor, p account.Project, c account.ProjectChange) (account.Project, error)
	InForce(p account.Project) retention.Days
}

// Keys makes and ends the credentials of projects; see credential.Service.
type Keys interface {
	Create(ctx context.Context, p credential.CreateParams) (credential.Record, string, error)
	ImportLegacy(ctx context.Context, secret string, p credential.CreateParams) (credential.Record, error)
	ListProject(ctx context.Context, q credential.ListQuery) ([]credential.Record, error)
	Rotate(ctx context.Context, p credential.RotateParams) (credential.Record, string, error)
	Revoke(ctx context.Context, by auditlog.Actor, ref credential.Ref) error
}

// AuditLog tells of changes; see auditlog.Service.
type AuditLog interface {
	List(ctx context.Context, organizationID, before string, limit int) ([]auditlog.Entry, error)
}

// Models manages model providers, of projects that exist; see model.Service.
type Models interface {
	List(ctx context.Context, projectID, after string, limit int) ([]model.Record, error)
	Get(ctx context.Context, projectID, name string) (model.Record, error)
	Put(ctx context.Context, at model.Place, c model.Content) (model.Record, bool, error)
	Delete(ctx context.Context, at model.Place) error
}

// Alerts manages alerts, of projects that exist; see alert.Service.
type Alerts interface {
	Create(ctx context.Context, at alert.Place, d alert.Definition) (alert.Alert, error)
	List(ctx context.Context, projectID, after string, limit int) ([]alert.Alert, error)
	Get(ctx context.Context, projectID, alertID string) (alert.Alert, error)
	Update(ctx context.Context, at alert.Place, edit func(*alert.Definition) error) (alert.Alert, error)
	Delete(ctx context.Context, at alert.Place) error
	Mute(ctx context.Context, at alert.Place, until time.Time) (alert.Alert, error)
	Unmute(ctx context.Context, at alert.Place) (alert.Alert, error)
	Resolve(ctx context.Context, at alert.Place) (alert.Alert, error)
	History(ctx context.Context, projectID string, p alert.HistoryParams) ([]alert.Entry, error)
	Preview(ctx context.Context, p alert.PreviewParams) ([]alert.Previewed, error)
}

// Webhooks manages webhook endpoints, of projects that exist; see
// webhook.Service.
type Webhooks interface {
	Create(ctx context.Context, at webhook.Place, c webhook.Content) (webhook.Endpoint, string, error)
	List(ctx context.Context, projectID, after string, limit int) ([]webhook.Endpoint, error)
	Get(ctx context.Context, projectID, endpointID string) (webhook.Endpoint, error)
	Update(ctx context.Context, at webhook.Place, c webhook.Edit) (webhook.Endpoint, error)
	Delete(ctx context.Context, at webhook.Place) error
	RotateSecret(ctx context.Context, at webhook.Place, overlap time.Duration) (webhook.Endpoint, string, error)
	Test(ctx context.Context, at webhook.Place) (webhook.Delivery, error)
	Deliveries(ctx context.Context, projectID string, p webhook.ListParams) ([]webhook.Delivery, error)
	Resend(ctx context.Context, at webhook.Place, deliveryID string) (webhook.Delivery, error)
}
