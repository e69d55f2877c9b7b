package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// ListMembers implements account.MemberStore.
func (s *Store) ListMembers(ctx context.Context, organizationID, after string, limit int) ([]account.Member, error) {
	rows, err := s.db.Read().ListMembers(ctx, sqldb.ListMembersParams{
		OrganizationID: organizationID, UserID: after, Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read members: %w", err)
	}
	all := make([]account.Member, 0, len(rows))
	for _, row := range rows {
		all = append(all, memberOf(sqldb.FindMemberRow(row)))
	}
	return all, nil
}

// ChangeMember implements account.MemberStore.
func (s *Store) ChangeMember(
	ctx context.Context, m account.MemberQuery, decide func(account.MemberState) (account.MemberChange, error),
) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if _, found, err = lockOrganization(ctx, q, m.OrganizationID); err != nil || !found {
			return err
		}
		state, err := memberState(ctx, q, m)
		if err != nil {
			return err
		}
		c, err := decide(state)
		if err != nil {
			return err
		}
		return changeMember(ctx, q, m, c)
	})
	return found, err
}

func memberState(ctx context.Context, q *sqldb.Queries, m account.MemberQuery) (state account.MemberState, err error) {
	row, err := q.FindMember(ctx, sqldb.FindMemberParams{OrganizationID: m.OrganizationID, UserID: m.UserID})
	row, found, err := optional(row, err, "read a member")
	if err != nil {
		return state, err
	}
	if found {
		state.Member = memberOf(row)
	}
	if state.ActorRole, err = roleIn(ctx, q, m.OrganizationID, m.ActorID); err != nil {
		return state, err
	}
	owners, err := q.CountOwners(ctx, m.OrganizationID)
	if err != nil {
		return state, fmt.Errorf("count owners: %w", err)
	}
	state.Owners = int(owners)
	return state, nil
}

func changeMember(ctx context.Context, q *sqldb.Queries, m account.MemberQuery, c account.MemberChange) error {
	if c.Role != "" {
		err := q.SetRole(ctx, sqldb.SetRoleParams{Role: c.Role, OrganizationID: m.OrganizationID, UserID: m.UserID})
		if err != nil {
			return fmt.Errorf("change a role: %w", err)
		}
	}
	if !c.RemovedAt.IsZero() {
		if err := removeMember(ctx, q, m, c.RemovedAt); err != nil {
			return err
		}
	}
	if !c.DisownedAt.IsZero() {
		err := q.RevokeInvitationsOf(ctx, sqldb.RevokeInvitationsOfParams{
			RevokedAt: sqldb.NullTime(c.DisownedAt), OrganizationID: m.OrganizationID, CreatedBy: sqldb.NullString(m.UserID),
		})
		if err != nil {
			return fmt.Errorf("revoke invitations: %w", err)
		}
	}
	return createEntries(ctx, q, c.Entries...)
}

// removeMember ends what a member has in an organization. Sessions come before
// tokens, as everywhere, so that nobody waits in a circle.
func removeMember(ctx context.Context, q *sqldb.Queries, m account.MemberQuery, at time.Time) error {
	err := q.DeleteMembership(ctx, sqldb.DeleteMembershipParams{OrganizationID: m.OrganizationID, UserID: m.UserID})
	if err != nil {
		return fmt.Errorf("delete a membership: %w", err)
	}
	err = q.RevokeSessionsOfMember(ctx, sqldb.RevokeSessionsOfMemberParams{
		RevokedAt: sqldb.NullTime(at), UserID: m.UserID, OrganizationID: m.OrganizationID,
	})
	if err != nil {
		return fmt.Errorf("revoke sessions: %w", err)
	}
	err = q.RevokeTokensOfMember(ctx, sqldb.RevokeTokensOfMemberParams{
		RevokedAt: sqldb.NullTime(at), UserID: sqldb.NullString(m.UserID), OrganizationID: m.OrganizationID,
	})
	if err != nil {
		return fmt.Errorf("revoke access tokens: %w", err)
	}
	return nil
}

func memberOf(row sqldb.FindMemberRow) account.Member {
	return account.Member{
		UserID: row.ID, Email: row.Email, Role: row.Role, Since: time.UnixMicro(row.CreatedAt).UTC(),
	}
}
