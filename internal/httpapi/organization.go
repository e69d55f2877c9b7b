package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// accountLimit is the most that a body about accounts may hold: 100 origins
// are the largest thing in one.
const accountLimit = 64 << 10

var listOrganizationsOperation = operation{
	id: "listOrganizations", tag: tagOrganizations, summary: "List the organizations that the user belongs to",
	description: "An access token works in one of them; refresh with organization_id to go on to another.",
	params:      pageParams(),
	replies:     replyOK("A page of organizations.", api.List[api.Organization]{}),
}

func (s *service) listOrganizations(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Organizations.List(x.r.Context(), x.caller.UserID, p.after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, organizationOf, func(o *account.OwnOrganization) string { return o.ID })
}

var createOrganizationOperation = operation{
	id: "createOrganization", tag: tagOrganizations, summary: "Make an organization",
	description: "The caller becomes its owner. A repeat makes a second one.",
	request:     api.NewOrganization{},
	replies:     replyCreated("The organization.", api.Organization{}),
}

func (s *service) createOrganization(x *exchange) (answer, error) {
	in, err := decode[api.NewOrganization](x)
	if err != nil {
		return answer{}, err
	}
	o, err := s.Organizations.Create(x.r.Context(), s.actor(x), in.Name)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, organizationOf(&o))
}

var getOrganizationOperation = operation{
	id: "getOrganization", tag: tagOrganizations, summary: "Get the organization of the access token",
	params:  []param{idParam("id", "The organization of the access token.")},
	replies: replyOK("The organization.", api.Organization{}),
}

func (s *service) getOrganization(x *exchange) (answer, error) {
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	o, err := s.Organizations.Get(x.r.Context(), x.caller.UserID, id)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, organizationOf(&o))
}

var renameOrganizationOperation = operation{
	id: "renameOrganization", tag: tagOrganizations, summary: "Rename the organization of the access token",
	params:  []param{idParam("id", "The organization of the access token.")},
	request: api.NewOrganization{},
	replies: replyOK("The organization.", api.Organization{}),
}

func (s *service) renameOrganization(x *exchange) (answer, error) {
	in, err := decode[api.NewOrganization](x)
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	o, err := s.Organizations.Rename(x.r.Context(), s.actor(x), id, in.Name)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, organizationOf(&o))
}

// ownOrganization returns the id in the path, which must be that of the
// organization that the caller works in. Any other is not_found, whether or
// not it exists.
func ownOrganization(x *exchange) (string, error) {
	if x.r.PathValue("id") != x.caller.OrganizationID {
		return "", fault.New(api.CodeNotFound, "there is no such organization")
	}
	return x.caller.OrganizationID, nil
}

// organizationOf is an organization as it is sent.
func organizationOf(o *account.OwnOrganization) api.Organization {
	return api.Organization{
		ID: o.ID, Name: o.Name, Role: o.Role, CreatedAt: api.TimeText(o.CreatedAt), SuspendedAt: api.OptionalTime(o.SuspendedAt),
	}
}
