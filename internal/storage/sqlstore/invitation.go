package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// CreateInvitation implements account.InvitationStore.
func (s *Store) CreateInvitation(
	ctx context.Context, n account.NewInvitation, decide func(creator, invited string) error,
) (bool, error) {
	i, found := n.Invitation, false
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if _, found, err = lockOrganization(ctx, q, i.OrganizationID); err != nil || !found {
			return err
		}
		creator, err := roleIn(ctx, q, i.OrganizationID, i.CreatedBy)
		if err != nil {
			return err
		}
		invited, err := q.FindRoleByEmail(ctx, sqldb.FindRoleByEmailParams{OrganizationID: i.OrganizationID, Email: i.Email})
		if invited, _, err = optional(invited, err, "read a membership"); err != nil {
			return err
		}
		if err := decide(creator, invited); err != nil {
			return err
		}
		err = q.CreateInvitation(ctx, sqldb.CreateInvitationParams{
			ID: i.ID, OrganizationID: i.OrganizationID, Email: i.Email, Role: i.Role, SecretHash: n.Hash[:],
			CreatedBy: sqldb.NullString(i.CreatedBy), CreatedAt: i.CreatedAt.UnixMicro(), ExpiresAt: i.ExpiresAt.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create an invitation: %w", err)
		}
		return createEntries(ctx, q, n.Entry)
	})
	return found, err
}

// ListInvitations implements account.InvitationStore.
func (s *Store) ListInvitations(
	ctx context.Context, organizationID, before string, limit int,
) ([]account.Invitation, error) {
	rows, err := s.db.Read().ListInvitations(ctx, sqldb.ListInvitationsParams{
		OrganizationID: organizationID, Before: before, Size: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read invitations: %w", err)
	}
	all := make([]account.Invitation, 0, len(rows))
	for _, row := range rows {
		all = append(all, invitationOf(sqldb.FindInvitationRow(row)))
	}
	return all, nil
}

// RevokeInvitation implements account.InvitationStore.
func (s *Store) RevokeInvitation(
	ctx context.Context, iq account.InvitationQuery, decide func(account.Invitation, string) (auditlog.Entry, error),
) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		row, err := q.LockInvitation(ctx, sqldb.LockInvitationParams{OrganizationID: iq.OrganizationID, ID: iq.ID})
		if row, found, err = optional(row, err, "lock an invitation"); err != nil || !found {
			return err
		}
		actor, err := roleIn(ctx, q, iq.OrganizationID, iq.ActorID)
		if err != nil {
			return err
		}
		e, err := decide(invitationOf(sqldb.FindInvitationRow(row)), actor)
		if err != nil || e.ID == "" {
			return err
		}
		err = q.RevokeInvitation(ctx, sqldb.RevokeInvitationParams{RevokedAt: sqldb.NullTime(e.At), ID: iq.ID})
		if err != nil {
			return fmt.Errorf("revoke an invitation: %w", err)
		}
		return createEntries(ctx, q, e)
	})
	return found, err
}

// FindInvitation implements account.InvitationStore.
func (s *Store) FindInvitation(
	ctx context.Context, hash credential.Hash,
) (account.Invitation, account.User, bool, error) {
	return findInvitation(ctx, s.db.Read(), hash)
}

func findInvitation(
	ctx context.Context, q *sqldb.Queries, hash credential.Hash,
) (account.Invitation, account.User, bool, error) {
	row, err := q.FindInvitation(ctx, hash[:])
	row, found, err := optional(row, err, "read an invitation")
	if err != nil || !found {
		return account.Invitation{}, account.User{}, false, err
	}
	user, err := q.FindUser(ctx, row.Email)
	user, found, err = optional(user, err, "read a user")
	if err != nil || !found {
		return invitationOf(row), account.User{}, err == nil, err
	}
	return invitationOf(row), userOf(user), true, nil
}

// AcceptInvitation implements account.InvitationStore. The organization is
// locked first, as by all that change who belongs to it.
func (s *Store) AcceptInvitation(
	ctx context.Context, hash credential.Hash, decide func(account.AcceptState) (account.Acceptance, error),
) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		var state account.AcceptState
		i, _, ok, err := findInvitation(ctx, q, hash)
		if found = ok; err != nil || !found {
			return err
		}
		var o account.Organization
		if o, found, err = lockOrganization(ctx, q, i.OrganizationID); err != nil || !found {
			return err
		}
		state.Suspended = !o.SuspendedAt.IsZero()
		row, err := q.LockInvitation(ctx, sqldb.LockInvitationParams{OrganizationID: i.OrganizationID, ID: i.ID})
		if row, found, err = optional(row, err, "lock an invitation"); err != nil || !found {
			return err
		}
		if _, state.User, _, err = findInvitation(ctx, q, hash); err != nil {
			return err
		}
		state.Invitation = invitationOf(sqldb.FindInvitationRow(row))
		if state.Role, err = roleIn(ctx, q, i.OrganizationID, state.User.ID); err != nil {
			return err
		}
		a, err := decide(state)
		if err != nil {
			return err
		}
		return acceptInvitation(ctx, q, state.Invitation, a)
	})
	return found, err
}

func acceptInvitation(ctx context.Context, q *sqldb.Queries, i account.Invitation, a account.Acceptance) error {
	if a.NewUser != nil {
		if err := createUser(ctx, q, *a.NewUser); err != nil {
			return err
		}
	}
	err := q.AcceptInvitation(ctx, sqldb.AcceptInvitationParams{AcceptedAt: sqldb.NullTime(a.At), ID: i.ID})
	if err != nil {
		return fmt.Errorf("accept an invitation: %w", err)
	}
	err = createMembership(ctx, q, sqldb.CreateMembershipParams{
		OrganizationID: i.OrganizationID, UserID: a.UserID, Role: i.Role, CreatedAt: a.At.UnixMicro(),
	})
	if err != nil {
		return err
	}
	return createEntries(ctx, q, a.Entry)
}

func invitationOf(row sqldb.FindInvitationRow) account.Invitation {
	return account.Invitation{
		ID: row.ID, OrganizationID: row.OrganizationID, Email: row.Email, Role: row.Role, CreatedBy: row.CreatedBy.String,
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), ExpiresAt: time.UnixMicro(row.ExpiresAt).UTC(),
		AcceptedAt: sqldb.TimeOf(row.AcceptedAt), RevokedAt: sqldb.TimeOf(row.RevokedAt),
	}
}
