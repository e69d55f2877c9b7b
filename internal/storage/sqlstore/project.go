package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// FindProject implements account.Store and account.ProjectStore.
func (s *Store) FindProject(ctx context.Context, organizationID, projectID string) (account.Project, bool, error) {
	row, err := s.db.Read().FindProject(ctx, sqldb.FindProjectParams{OrganizationID: organizationID, ID: projectID})
	row, found, err := optional(row, err, "read a project")
	if err != nil || !found {
		return account.Project{}, false, err
	}
	p, err := projectOf(row)
	return p, err == nil, err
}

// ListProjects implements account.ProjectStore.
func (s *Store) ListProjects(
	ctx context.Context, organizationID string, after uint32, limit int,
) ([]account.Project, error) {
	rows, err := s.db.Read().ListProjects(ctx, sqldb.ListProjectsParams{
		OrganizationID: organizationID, Number: int64(after), Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	all := make([]account.Project, 0, len(rows))
	for _, row := range rows {
		p, err := projectOf(row)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// CreateProject implements account.ProjectStore.
func (s *Store) CreateProject(ctx context.Context, p account.Project, e auditlog.Entry) (uint32, error) {
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if p.Number, err = nextProjectNumber(ctx, q); err != nil {
			return err
		}
		if err := createProject(ctx, q, p); err != nil {
			return err
		}
		return createEntries(ctx, q, e)
	})
	if err != nil {
		return 0, err
	}
	return p.Number, nil
}

func createProject(ctx context.Context, q *sqldb.Queries, p account.Project) error {
	err := q.CreateProject(ctx, sqldb.CreateProjectParams{
		ID: p.ID, Number: int64(p.Number), OrganizationID: p.OrganizationID, Name: p.Name, CreatedAt: p.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a project: %w", err)
	}
	return nil
}

// RenameProject implements account.ProjectStore.
func (s *Store) RenameProject(ctx context.Context, p account.Project, e auditlog.Entry) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.RenameProject(ctx, sqldb.RenameProjectParams{Name: p.Name, OrganizationID: p.OrganizationID, ID: p.ID})
		if err != nil {
			return fmt.Errorf("rename a project: %w", err)
		}
		if found = n > 0; !found {
			return nil
		}
		return createEntries(ctx, q, e)
	})
	return found && err == nil, err
}

func projectOf(row sqldb.Project) (account.Project, error) {
	number, err := projectNumber(row.Number)
	if err != nil {
		return account.Project{}, err
	}
	return account.Project{
		ID: row.ID, Number: number, Name: row.Name, OrganizationID: row.OrganizationID,
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(),
	}, nil
}
