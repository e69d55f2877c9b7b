package sqlstore

import (
	"context"
	"fmt"
	"math"
	"time"

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
		r.Project.Number = number
		if err := createProject(ctx, q, r.Project); err != nil {
			return err
		}
		for _, d := range r.Credentials {
			if err := createCredential(ctx, q, d); err != nil {
				return err
			}
		}
		return createEntries(ctx, q, r.Entries...)
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
	if err := createUser(ctx, q, r.Owner); err != nil {
		return err
	}
	return createOrganization(ctx, q, r.Organization, r.Owner.ID)
}

// createUser returns account.ErrStale when the email is taken.
func createUser(ctx context.Context, q *sqldb.Queries, u account.User) error {
	n, err := q.CreateUser(ctx, sqldb.CreateUserParams{
		ID: u.ID, Email: u.Email, PasswordHash: u.PasswordHash, CreatedAt: u.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a user: %w", err)
	}
	if n == 0 {
		return account.ErrStale
	}
	return nil
}

func userOf(row sqldb.User) account.User {
	return account.User{
		ID: row.ID, Email: row.Email, PasswordHash: row.PasswordHash, CreatedAt: time.UnixMicro(row.CreatedAt).UTC(),
	}
}
