package account

import (
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
)

var allRoles = []string{"", RoleViewer, RoleMember, RoleAdmin, RoleOwner}

func codeOf(err error) api.Code {
	if err == nil {
		return ""
	}
	return fault.CodeOf(err)
}

// TestWhoMaySetARole goes through every actor, member and new role, against
// the rules written another way.
func TestWhoMaySetARole(t *testing.T) {
	t.Parallel()
	for _, actor := range allRoles {
		for _, member := range allRoles {
			for _, role := range allRoles[1:] {
				state := MemberState{Member: Member{Role: member}, ActorRole: actor, Owners: 2}
				var want api.Code
				touchesOwner := member == RoleOwner || role == RoleOwner
				switch {
				case actor == "":
					want = api.CodeNotFound
				case actor != RoleOwner && actor != RoleAdmin:
					want = api.CodeForbidden
				case member == "":
					want = api.CodeNotFound
				case actor == RoleAdmin && touchesOwner:
					want = api.CodeForbidden
				}
				if got := codeOf(judgeRole(state, role, auditlog.Actor{UserID: "u"})); got != want {
					t.Errorf("%q makes %q %q: got %q, want %q", actor, member, role, got, want)
				}
			}
		}
	}
}

// TestWhoMayRemove does the same for removals, of others and of oneself.
func TestWhoMayRemove(t *testing.T) {
	t.Parallel()
	for _, actor := range allRoles {
		for _, member := range allRoles {
			p := MemberParams{Actor: auditlog.Actor{UserID: "u"}, UserID: "v"}
			state := MemberState{Member: Member{Role: member}, ActorRole: actor, Owners: 2}
			var want api.Code
			switch {
			case actor == "":
				want = api.CodeNotFound
			case actor != RoleOwner && actor != RoleAdmin:
				want = api.CodeForbidden
			case member == "":
				want = api.CodeNotFound
			case actor == RoleAdmin && member == RoleOwner:
				want = api.CodeForbidden
			}
			if got := codeOf(judgeRemoval(state, p)); got != want {
				t.Errorf("%q removes %q: got %q, want %q", actor, member, got, want)
			}
		}
		own := MemberState{Member: Member{Role: actor}, ActorRole: actor, Owners: 2}
		want := api.Code("")
		if actor == "" {
			want = api.CodeNotFound
		}
		p := MemberParams{Actor: auditlog.Actor{UserID: "u"}, UserID: "u"}
		if got := codeOf(judgeRemoval(own, p)); got != want {
			t.Errorf("%q leaves: got %q, want %q", actor, got, want)
		}
	}
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	state := MemberState{Member: Member{Role: RoleOwner}, ActorRole: RoleOwner, Owners: 1}
	for what, by := range map[string]auditlog.Actor{"an owner": {UserID: "u"}, "the operator": {}} {
		for _, role := range allRoles[1:4] {
			if got := codeOf(judgeRole(state, role, by)); got != api.CodeConflict {
				t.Errorf("%s makes the last owner %s: got %q, want conflict", what, role, got)
			}
		}
		if err := judgeRole(state, RoleOwner, by); err != nil {
			t.Errorf("%s makes an owner an owner: %v", what, err)
		}
		if got := codeOf(judgeRemoval(state, MemberParams{Actor: by, UserID: "u"})); got != api.CodeConflict {
			t.Errorf("%s removes the last owner: got %q, want conflict", what, got)
		}
	}
}
