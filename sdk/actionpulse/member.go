package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// Members are the users of an organization.
type Members struct{ link *link }

const memberPath = organizationPath + "/members/{user_id}"

// List returns a page of an organization's members.
func (m *Members) List(ctx context.Context, organizationID string, p Page) (*api.List[api.Member], error) {
	return list[api.Member](ctx, m.link, reads("listMembers", organizationPath+"/members", organizationID).ask(p.query()))
}

// All yields every member from p on.
func (m *Members) All(ctx context.Context, organizationID string, p Page) iter.Seq2[api.Member, error] {
	return all(p, func(p Page) (*api.List[api.Member], error) { return m.List(ctx, organizationID, p) })
}

// SetRole gives a member another role: owner, admin, member or viewer.
func (m *Members) SetRole(ctx context.Context, organizationID, userID, role string) (*api.Member, error) {
	c := changes("setMemberRole", http.MethodPatch, memberPath, organizationID, userID).with(api.MemberRole{Role: role})
	return fetch[api.Member](ctx, m.link, c)
}

// Remove takes a member out of an organization.
func (m *Members) Remove(ctx context.Context, organizationID, userID string) error {
	return perform(ctx, m.link, changes("removeMember", http.MethodDelete, memberPath, organizationID, userID))
}

// Invitations ask people into an organization.
type Invitations struct{ link *link }

const invitationsPath = organizationPath + "/invitations"

// List returns a page of an organization's invitations.
func (i *Invitations) List(ctx context.Context, organizationID string, p Page) (*api.List[api.Invitation], error) {
	return list[api.Invitation](ctx, i.link, reads("listInvitations", invitationsPath, organizationID).ask(p.query()))
}

// All yields every invitation from p on.
func (i *Invitations) All(ctx context.Context, organizationID string, p Page) iter.Seq2[api.Invitation, error] {
	return all(p, func(p Page) (*api.List[api.Invitation], error) { return i.List(ctx, organizationID, p) })
}

// Create makes an invitation. Its token and link are shown once.
func (i *Invitations) Create(ctx context.Context, organizationID string, n api.NewInvitation) (*api.CreatedInvitation, error) {
	return fetch[api.CreatedInvitation](ctx, i.link, changes("createInvitation", http.MethodPost, invitationsPath, organizationID).with(n))
}

// Revoke ends an invitation that was not accepted yet.
func (i *Invitations) Revoke(ctx context.Context, organizationID, invitationID string) error {
	c := changes("revokeInvitation", http.MethodDelete, invitationsPath+"/{invitation_id}", organizationID, invitationID)
	return perform(ctx, i.link, c)
}
