package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
)

var createInvitationOperation = operation{
	id: "createInvitation", tag: tagOrganizations, summary: "Invite somebody into the organization",
	description: "Nothing is mailed: hand the link, behind this server's address, to whom you invite. Whoever has it can accept once, within 7 days. Only an " +
		"owner invites an owner. A repeat makes a second invitation.",
	params:  []param{idParam("id", "The organization of the access token.")},
	request: api.NewInvitation{},
	replies: replyCreated("The invitation with its token, which is shown once.", api.CreatedInvitation{}),
	errors:  codes(api.CodeConflict),
}

func (s *service) createInvitation(x *exchange) (answer, error) {
	in, err := decode[api.NewInvitation](x)
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	i, token, err := s.Invitations.Create(x.r.Context(), account.InviteParams{
		Actor: s.actor(x), OrganizationID: id, Email: in.Email, Role: in.Role,
	})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, api.CreatedInvitation{
		Invitation: invitationOf(&i), Token: token, Link: invitePath + "#" + token,
	})
}

var listInvitationsOperation = operation{
	id: "listInvitations", tag: tagOrganizations, summary: "List invitations, latest first",
	description: "Those that can no longer be accepted are among them.",
	params:      pageParams(idParam("id", "The organization of the access token.")),
	replies:     replyOK("A page of invitations.", api.List[api.Invitation]{}),
}

func (s *service) listInvitations(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Invitations.List(x.r.Context(), id, p.after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, invitationOf, func(i *account.Invitation) string { return i.ID })
}

var revokeInvitationOperation = operation{
	id: "revokeInvitation", tag: tagOrganizations, summary: "Revoke an invitation",
	description: "Revoking again changes nothing.",
	params:      []param{idParam("id", "The organization of the access token."), idParam("invitation_id", "The invitation.")},
	replies:     replyNothing("It can no longer be accepted."),
	errors:      codes(api.CodeConflict),
}

func (s *service) revokeInvitation(x *exchange) (answer, error) {
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Invitations.Revoke(x.r.Context(), s.actor(x), id, x.r.PathValue("invitation_id")))
}

var acceptInvitationOperation = operation{
	id: "acceptInvitation", tag: tagAuth, summary: "Accept an invitation",
	description: "Makes the invited user a member, and the user too if there is none with that email. Then log in. A wrong " +
		"password of a user who exists counts like a failed login.",
	request: api.Acceptance{},
	replies: replyCreated("The place in the organization.", api.Membership{}),
	errors:  codes(api.CodeNotFound, api.CodeInvalidCredentials, api.CodePaymentRequired, api.CodeConflict, api.CodeRateLimited),
}

func (s *service) acceptInvitation(x *exchange) (answer, error) {
	in, err := decode[api.Acceptance](x)
	if err != nil {
		return answer{}, err
	}
	m, err := s.Invitations.Accept(x.r.Context(), account.AcceptParams{
		Token: in.Token, Password: in.Password, Client: s.client(x),
	})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, api.Membership{OrganizationID: m.OrganizationID, UserID: m.UserID, Role: m.Role})
}

// invitationOf is an invitation as it is sent.
func invitationOf(i *account.Invitation) api.Invitation {
	return api.Invitation{
		ID: i.ID, Email: i.Email, Role: i.Role, CreatedBy: api.OptionalText(i.CreatedBy),
		CreatedAt: api.TimeText(i.CreatedAt), ExpiresAt: api.TimeText(i.ExpiresAt),
		AcceptedAt: api.OptionalTime(i.AcceptedAt), RevokedAt: api.OptionalTime(i.RevokedAt),
	}
}
