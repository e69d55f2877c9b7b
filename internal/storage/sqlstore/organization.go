package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// ListOrganizations implements account.OrganizationStore.
func (s *Store) ListOrganizations(
	ctx context.Context, userID, after string, limit int,
) ([]account.OwnOrganization, error) {
	rows, err := s.db.Read().ListOrganizations(ctx, sqldb.ListOrganizationsParams{
		UserID: userID, ID: after, Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read organizations: %w", err)
	}
	all := make([]account.OwnOrganization, 0, len(rows))
	for _, row := range rows {
		all = append(all, ownOrganizationOf(sqldb.FindOrganizationRow(row)))
	}
	return all, nil
}

// ListAllOrganizations implements account.OrganizationStore.
func (s *Store) ListAllOrganizations(ctx context.Context, after string, limit int) ([]account.Organization, error) {
	rows, err := s.db.Read().ListAllOrganizations(ctx, sqldb.ListAllOrganizationsParams{ID: after, Limit: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read all organizations: %w", err)
	}
	all := make([]account.Organization, 0, len(rows))
	for _, row := range rows {
		all = append(all, organizationOf(row))
	}
	return all, nil
}

// FindOrganization implements account.OrganizationStore.
func (s *Store) FindOrganization(
	ctx context.Context, userID, organizationID string,
) (account.OwnOrganization, bool, error) {
	row, err := s.db.Read().FindOrganization(ctx, sqldb.FindOrganizationParams{UserID: userID, ID: organizationID})
	row, found, err := optional(row, err, "read an organization")
	return ownOrganizationOf(row), found, err
}

// CreateOrganization implements account.OrganizationStore.
func (s *Store) CreateOrganization(
	ctx context.Context, o account.Organization, ownerID string, e auditlog.Entry,
) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		if err := createOrganization(ctx, q, o, ownerID); err != nil {
			return err
		}
		return createEntries(ctx, q, e)
	})
}

func createOrganization(ctx context.Context, q *sqldb.Queries, o account.Organization, ownerID string) error {
	at := o.CreatedAt.UnixMicro()
	err := q.CreateOrganization(ctx, sqldb.CreateOrganizationParams{ID: o.ID, Name: o.Name, CreatedAt: at})
	if err != nil {
		return fmt.Errorf("create an organization: %w", err)
	}
	return createMembership(ctx, q, sqldb.CreateMembershipParams{
		OrganizationID: o.ID, UserID: ownerID, Role: account.RoleOwner, CreatedAt: at,
	})
}

func createMembership(ctx context.Context, q *sqldb.Queries, p sqldb.CreateMembershipParams) error {
	if err := q.CreateMembership(ctx, p); err != nil {
		return fmt.Errorf("create a membership: %w", err)
	}
	return nil
}

// ChangeOrganization implements account.OrganizationStore.
func (s *Store) ChangeOrganization(
	ctx context.Context, organizationID, userID string,
	decide func(account.Organization, string) (account.OrganizationChange, error),
) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		var o account.Organization
		if o, found, err = lockOrganization(ctx, q, organizationID); err != nil || !found {
			return err
		}
		role, err := roleIn(ctx, q, organizationID, userID)
		if err != nil {
			return err
		}
		c, err := decide(o, role)
		if err != nil {
			return err
		}
		err = q.SetOrganization(ctx, sqldb.SetOrganizationParams{
			Name: c.Name, SuspendedAt: sqldb.NullTime(c.SuspendedAt), Plan: sqldb.NullString(c.Plan), ID: o.ID,
		})
		if err != nil {
			return fmt.Errorf("change an organization: %w", err)
		}
		return createEntries(ctx, q, c.Entries...)
	})
	return found, err
}

// lockOrganization keeps others from changing an organization, or who belongs
// to it, until the transaction ends.
func lockOrganization(ctx context.Context, q *sqldb.Queries, organizationID string) (account.Organization, bool, error) {
	row, err := q.LockOrganization(ctx, organizationID)
	row, found, err := optional(row, err, "lock an organization")
	return organizationOf(row), found, err
}

// roleIn returns a user's role in an organization, empty if there is none.
func roleIn(ctx context.Context, q *sqldb.Queries, organizationID, userID string) (string, error) {
	role, err := q.FindMembership(ctx, sqldb.FindMembershipParams{OrganizationID: organizationID, UserID: userID})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read a membership: %w", err)
	}
	return role, nil
}

func organizationOf(row sqldb.Organization) account.Organization {
	return account.Organization{
		ID: row.ID, Name: row.Name, CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), SuspendedAt: sqldb.TimeOf(row.SuspendedAt),
		Plan: row.Plan.String,
	}
}

func ownOrganizationOf(row sqldb.FindOrganizationRow) account.OwnOrganization {
	return account.OwnOrganization{
		Organization: organizationOf(sqldb.Organization{
			ID: row.ID, Name: row.Name, CreatedAt: row.CreatedAt, SuspendedAt: row.SuspendedAt, Plan: row.Plan,
		}),
		Role: row.Role,
	}
}
