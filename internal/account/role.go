package account

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// The roles, from the highest to the lowest.
const (
	// RoleOwner may do everything; an organization always has one.
	RoleOwner = "owner"
	// RoleAdmin manages everything but owners.
	RoleAdmin = "admin"
	// RoleMember reads and queries and makes markers.
	RoleMember = "member"
	// RoleViewer reads.
	RoleViewer = "viewer"
)

// ranks order the roles. What is not a role has rank 0.
var ranks = map[string]int{RoleViewer: 1, RoleMember: 2, RoleAdmin: 3, RoleOwner: 4}

func validateRole(role string) error {
	if ranks[role] == 0 {
		return fault.Field("role", "a role is owner, admin, member or viewer")
	}
	return nil
}

// requireManager refuses whoever may not manage an organization: not_found to
// those who do not belong to it, forbidden to members and viewers.
func requireManager(role string) error {
	switch {
	case ranks[role] == 0:
		return noOrganization()
	case ranks[role] < ranks[RoleAdmin]:
		return fault.New(api.CodeForbidden, "only owners and admins may do this")
	default:
		return nil
	}
}

// requirePower refuses a manager who would touch somebody, or make somebody,
// of a higher role than their own.
func requirePower(own, others string) error {
	if err := requireManager(own); err != nil {
		return err
	}
	if ranks[others] > ranks[own] {
		return fault.New(api.CodeForbidden, "only owners may do this to an owner or make one")
	}
	return nil
}

func noOrganization() error {
	return fault.New(api.CodeNotFound, "there is no such organization")
}
