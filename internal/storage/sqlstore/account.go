package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// CreateSetup implements account.Store.
func (s *Store) CreateSetup(ctx context.Context, r account.SetupRecord) (uint32, error) {
	var number uint32
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		// Taking the number first locks its row: of two setups at once, the
		// second sees the accounts of the first.
		if number, err = nextProjectNumber(ctx, q); err != nil {
			return err
		}
		n, err := q.CountAccounts(ctx)
		if err != nil {
			return fmt.Errorf("count accounts: %w", err)
		}
		if n > 0 {
			return account.ErrExists
		}
		if err := createOwner(ctx, q, r); err != nil {
			return err
		}
		if err := createProject(ctx, q, r, number); err != nil {
			return err
		}
		for _, d := range r.Credentials {
			if err := createCredential(ctx, q, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return number, nil
}

func nextProjectNumber(ctx context.Context, q *sqldb.Queries) (uint32, error) {
	n, err := q.NextNumber(ctx, sqldb.CounterProject)
	if err != nil {
		return 0, fmt.Errorf("take a project number: %w", err)
	}
	if n < 1 || n > math.MaxUint32 {
		return 0, fmt.Errorf("project number %d is outside of 32 bits", n)
	}
	return uint32(n), nil
}

func createOwner(ctx context.Context, q *sqldb.Queries, r account.SetupRecord) error {
	at := r.Organization.CreatedAt.UnixMicro()
	err := q.CreateOrganization(ctx, sqldb.CreateOrganizationParams{
		ID: r.Organization.ID, Name: r.Organization.Name, CreatedAt: at,
	})
	if err != nil {
		return fmt.Errorf("create an organization: %w", err)
	}
	err = q.CreateUser(ctx, sqldb.CreateUserParams{
		ID: r.Owner.ID, Email: r.Owner.Email, PasswordHash: r.Owner.PasswordHash, CreatedAt: r.Owner.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a user: %w", err)
	}
	err = q.CreateMembership(ctx, sqldb.CreateMembershipParams{
		OrganizationID: r.Organization.ID, UserID: r.Owner.ID, Role: account.RoleOwner, CreatedAt: at,
	})
	if err != nil {
		return fmt.Errorf("create a membership: %w", err)
	}
	return nil
}

func createProject(ctx context.Context, q *sqldb.Queries, r account.SetupRecord, number uint32) error {
	err := q.CreateProject(ctx, sqldb.CreateProjectParams{
		ID: r.Project.ID, Number: int64(number), OrganizationID: r.Organization.ID,
		Name: r.Project.Name, CreatedAt: r.Organization.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a project: %w", err)
	}
	return nil
}

// FindProject implements account.Store.
func (s *Store) FindProject(ctx context.Context, organizationID, projectID string) (account.Project, bool, error) {
	row, err := s.db.Read().FindProject(ctx, sqldb.FindProjectParams{OrganizationID: organizationID, ID: projectID})
	if errors.Is(err, sql.ErrNoRows) {
		return account.Project{}, false, nil
	}
	if err != nil {
		return account.Project{}, false, fmt.Errorf("read a project: %w", err)
	}
	if row.Number < 1 || row.Number > math.MaxUint32 {
		return account.Project{}, false, fmt.Errorf("project number %d is outside of 32 bits", row.Number)
	}
	return account.Project{
		ID: row.ID, Number: uint32(row.Number), Name: row.Name, OrganizationID: row.OrganizationID,
	}, true, nil
}
