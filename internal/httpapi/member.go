package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
)

var listMembersOperation = operation{
	id: "listMembers", tag: tagOrganizations, summary: "List the members of the organization",
	params:  pageParams(idParam("id", "The organization of the access token.")),
	replies: replyOK("A page of members.", api.List[api.Member]{}),
}

func (s *service) listMembers(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Members.List(x.r.Context(), id, p.after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, memberOf, func(m *account.Member) string { return m.UserID })
}

var setRoleOperation = operation{
	id: "setMemberRole", tag: tagOrganizations, summary: "Give a member another role",
	description: "It counts from the next request on. Only an owner makes an owner or changes one, and one must remain. A lower " +
		"role ends the open invitations that the member has made.",
	params:  []param{idParam("id", "The organization of the access token."), idParam("user_id", "The member.")},
	request: api.MemberRole{},
	replies: replyOK("The member.", api.Member{}),
	errors:  codes(api.CodeConflict),
}

func (s *service) setRole(x *exchange) (answer, error) {
	in, err := decode[api.MemberRole](x)
	if err != nil {
		return answer{}, err
	}
	p, err := s.memberParams(x)
	if err != nil {
		return answer{}, err
	}
	m, err := s.Members.SetRole(x.r.Context(), p, in.Role)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, memberOf(&m))
}

var removeMemberOperation = operation{
	id: "removeMember", tag: tagOrganizations, summary: "Take a user out of the organization",
	description: "Everybody may take themselves out; for others it needs the role admin, for an owner the role owner, and one " +
		"owner must remain. Sessions and access tokens that the user has in the organization end.",
	params:  []param{idParam("id", "The organization of the access token."), idParam("user_id", "The member.")},
	replies: replyNothing("The user is no member any more."),
	errors:  codes(api.CodeConflict),
}

func (s *service) removeMember(x *exchange) (answer, error) {
	p, err := s.memberParams(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Members.Remove(x.r.Context(), p))
}

// memberParams names the member in the path.
func (s *service) memberParams(x *exchange) (account.MemberParams, error) {
	id, err := ownOrganization(x)
	return account.MemberParams{Actor: s.actor(x), OrganizationID: id, UserID: x.r.PathValue("user_id")}, err
}

// memberOf is a member as they are sent.
func memberOf(m *account.Member) api.Member {
	return api.Member{UserID: m.UserID, Email: m.Email, Role: m.Role, JoinedAt: api.TimeText(m.Since)}
}
